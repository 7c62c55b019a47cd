"""Whether the words that a judge quotes stand in the text, and where. Code looks, models do not."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from corpus.records import Part
from corpus.verdicts import Quote

__all__ = ["find_quote"]

_QUOTATION_MARKS: Final = "\"' \t\r\n\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"
_SPACE: Final = re.compile(r"\s+")


def find_quote(part: Part, words: str) -> Quote | None:
    """Return the passage of a part that reads like `words`, None when there is none.

    White space may differ, since models fold lines, and quotation marks around the whole may be
    the model's own; every other character has to be there. An accent is the same one whether it is
    written with its letter or behind it: that cannot be seen. The offsets are those of the record,
    the text is the record's own. Takes time in proportion to the text, whatever the words are.
    """
    found = _find(part, words)
    if found is not None or part.text.isascii() or words.isascii():
        return found
    composed, places = _composed(part.text)
    found = _find(Part(ordinal=0, id=part.id, text=composed), unicodedata.normalize("NFC", words))
    if found is None:
        return None
    start, end = places[found.start], places[found.end]
    return None if start is None or end is None else _quote(part, start, end)


def _find(part: Part, words: str) -> Quote | None:
    folded: str | None = None
    for wanted in (words, words.strip(_QUOTATION_MARKS)):
        pieces = wanted.split()
        if not pieces:
            continue
        at = part.text.find(wanted)
        if at >= 0:
            return _quote(part, at, at + len(wanted))
        folded = _SPACE.sub(" ", part.text) if folded is None else folded
        joined = " ".join(pieces)
        at = folded.find(joined)
        if at >= 0:
            start, end = _unfolded(part.text, at, at + len(joined) - 1)
            return _quote(part, start, end + 1)
    return None


def _composed(text: str) -> tuple[str, list[int | None]]:
    """Return a text with its accents composed, and where each of its places stands in the text.

    The last place is that behind its end; None is one inside of a letter with its accents.
    """
    if unicodedata.is_normalized("NFC", text):
        return text, [*range(len(text) + 1)]
    pieces: list[str] = []
    places: list[int | None] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and _joins(text[end]):
            continue
        piece = unicodedata.normalize("NFC", text[start:end])
        pieces.append(piece)
        places += [start, *[None] * (len(piece) - 1)]
        start = end
    return "".join(pieces), [*places, len(text)]


def _joins(char: str) -> bool:
    """Whether a character may become one with that before it: marks, and the vowels of Hangul."""
    return char > "\u02ff" and (
        "\u1160" <= char <= "\u11ff" or unicodedata.category(char)[0] == "M"
    )


def _unfolded(text: str, *places: int) -> list[int]:
    """Return where characters of a text with its white space folded stand in the text itself."""
    found: list[int] = []
    taken = 0  # characters that folding took away so far
    gaps = _SPACE.finditer(text)
    gap = next(gaps, None)
    for place in places:
        while gap is not None and gap.end() - taken <= place + len(gap.group()) - 1:
            taken += len(gap.group()) - 1
            gap = next(gaps, None)
        found.append(place + taken)
    return found


def _quote(part: Part, start: int, end: int) -> Quote:
    return Quote(text=part.text[start:end], start=part.start + start, end=part.start + end)
