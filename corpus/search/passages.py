"""The piece of a text that shows a hit: where most of the terms stand close together. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from corpus.scripts import UNSPACED
from corpus.search.words import bare

__all__ = ["WIDTH", "passage"]

WIDTH: Final = 1_000
"""Characters of a passage; a text that is no longer is its own passage."""
_LOOKED_AT: Final = 1_000_000  # characters of a text in which the terms are looked for
_MARGIN: Final = 120  # characters before the first term
_SNAP: Final = 40  # characters within which a passage moves to where a word begins

_WORD: Final = re.compile(rf"[^\W_{UNSPACED}]+")
_IN_UNSPACED: Final = re.compile(f"[{UNSPACED}]")


def passage(text: str, terms: Sequence[str], width: int = WIDTH) -> tuple[int, int]:
    """Return where the passage begins and ends, in characters; the beginning where no term stands.

    Linear in the text.
    """
    if len(text) <= width:
        return 0, len(text)
    places = sorted(_places(text[:_LOOKED_AT], terms))
    start = max(0, _densest(places, width - _MARGIN) - _MARGIN)
    start = min(start, len(text) - width)
    start = _snapped(text, start)
    return start, min(len(text), start + width)


def _places(text: str, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where terms stand, and which of them."""
    wanted: dict[str, int] = {}
    for number, term in enumerate(terms):
        if _IN_UNSPACED.search(term):
            found = text.find(term)
            while found >= 0:
                yield found, number
                found = text.find(term, found + len(term))
        for word in _WORD.findall(term):
            wanted.setdefault(bare(word), number)
    if wanted:
        for match in _WORD.finditer(text):
            which = wanted.get(bare(match.group()))
            if which is not None:
                yield match.start(), which


def _densest(places: Sequence[tuple[int, int]], width: int) -> int:
    """Return where the first window begins that holds the most different terms."""
    best, begin, most = 0, 0, 0
    inside: Counter[int] = Counter()
    for place, number in places:
        inside[number] += 1
        while place - places[begin][0] >= width:
            gone = places[begin][1]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            begin += 1
        if len(inside) > most:
            most, best = len(inside), places[begin][0]
    return best


def _snapped(text: str, start: int) -> int:
    """Move to where the next word begins, if that is near."""
    if start == 0 or text[start - 1].isspace():
        return start
    space = text.find(" ", start, start + _SNAP)
    return start if space < 0 else space + 1
