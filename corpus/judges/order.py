"""The order in which a window's items are shown: another one in each pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import TypeVar

from corpus.judges.base import Window

__all__ = ["in_place", "shown_order"]

T = TypeVar("T")
_DRAW_BYTES = 2


def shown_order(window: Window) -> list[int]:
    """Return the places of a window's items in the order in which they are shown.

    Pass 0 shows them as they come. Each further pass has its own order, decided by the pass and
    the texts alone, so that a resumed run asks the same again; with two items or more it is never
    the order of pass 0.
    """
    places = list(range(len(window.items)))
    if window.pass_index == 0 or len(places) < 2:
        return places
    order = sorted(places, key=_draws(window).__getitem__)
    return order if order != places else [*places[1:], places[0]]


def _draws(window: Window) -> Sequence[int]:
    """Return a number for each place, drawn from the pass and all texts together."""
    salt = window.pass_index.to_bytes(8, "big")
    texts = "\0".join([part.text for part in window.items])
    drawn = blake2b(texts.encode("utf-8", "surrogatepass"), salt=salt).digest()
    while len(drawn) < _DRAW_BYTES * len(window.items):
        drawn += blake2b(drawn, salt=salt).digest()
    # Few draws are equal, and those keep their order.
    return _numbers(len(window.items)).unpack_from(drawn)


@lru_cache(maxsize=64)
def _numbers(count: int) -> Struct:
    return Struct(f"<{count}H")


def in_place(order: Sequence[int], shown: Sequence[T]) -> list[T]:
    """Return what was said of the items as they were shown, in the order of the window."""
    placed = list(shown)
    for place, one in zip(order, shown, strict=True):
        placed[place] = one
    return placed
