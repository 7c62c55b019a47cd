"""Whether the words that a judge quotes stand in the text, and where. Code looks, models do not."""

from __future__ import annotations

import re
from typing import Final

from corpus.records import Part
from corpus.verdicts import Quote

__all__ = ["find_quote"]

_QUOTATION_MARKS: Final = "\"' \t\r\n\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"
_SPACE: Final = re.compile(r"\s+")


def find_quote(part: Part, words: str) -> Quote | None:
    """Return the passage of a part that reads like `words`, None when there is none.

    White space may differ, since models fold lines, and quotation marks around the whole may be
    the model's own; every other character has to be there. The offsets are those of the record,
    the text is the record's own. Takes time in proportion to the text, whatever the words are.
    """
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
