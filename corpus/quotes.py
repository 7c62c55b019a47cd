"""Whether the words that a judge quotes stand in the text, and where. Code looks, models do not."""

from __future__ import annotations

import re
from typing import Final

from corpus.records import Part
from corpus.verdicts import Quote

__all__ = ["find_quote"]

_QUOTATION_MARKS: Final = "\"' \t\r\n\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"


def find_quote(part: Part, words: str) -> Quote | None:
    """Return the passage of a part that reads like `words`, None when there is none.

    White space may differ, since models fold lines, and quotation marks around the whole may be
    the model's own; every other character has to be there. The offsets are those of the record,
    the text is the record's own.
    """
    for wanted in (words, words.strip(_QUOTATION_MARKS)):
        pieces = wanted.split()
        if not pieces:
            continue
        at = part.text.find(wanted)
        if at >= 0:
            return _quote(part, at, at + len(wanted))
        match = re.search(r"\s++".join(map(re.escape, pieces)), part.text)
        if match is not None:
            return _quote(part, match.start(), match.end())
    return None


def _quote(part: Part, start: int, end: int) -> Quote:
    return Quote(text=part.text[start:end], start=part.start + start, end=part.start + end)
