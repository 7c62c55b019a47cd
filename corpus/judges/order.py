"""The order in which a window's items are shown: another one in each pass."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

from corpus.judges.base import Window

__all__ = ["in_place", "shown_order"]

T = TypeVar("T")


def shown_order(window: Window) -> list[int]:
    """Return the places of a window's items in the order in which they are shown.

    Pass 0 shows them as they come. Each further pass has its own order, decided by the pass and
    the texts alone, so that a resumed run asks the same again; with two items or more it is never
    the order of pass 0.
    """
    places = list(range(len(window.items)))
    if window.pass_index == 0 or len(places) < 2:
        return places
    salt = window.pass_index.to_bytes(8, "big")
    digests = [
        blake2b(part.text.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest()
        for part in window.items
    ]
    order = sorted(places, key=digests.__getitem__)
    return order if order != places else [*places[1:], places[0]]


def in_place(order: Sequence[int], shown: Sequence[T]) -> list[T]:
    """Return what was said of the items as they were shown, in the order of the window."""
    placed = dict(zip(order, shown, strict=True))
    return [placed[place] for place in range(len(order))]
