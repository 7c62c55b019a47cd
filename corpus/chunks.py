"""Cutting a record that is longer than a window into parts that overlap, offsets kept."""

from __future__ import annotations

import re
import unicodedata

from corpus.records import Part, is_blank
from executors.errors import ValidationError
from executors.tokens import TokenCounter, estimate

__all__ = ["split"]

_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»)\]]*\s|[。！？]|\n")  # noqa: RUF001
_SPACE = re.compile(r"\s")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_LOOK_BACK = 64
"""Characters that are tried for a cut between two whole characters; a longer pile is cut anywhere."""
_PRECISION = 64
"""A part may stay this fraction under its bound; fewer texts are counted for it."""


def split(
    whole: Part,
    *,
    max_tokens: int,
    overlap_tokens: int,
    count: TokenCounter = estimate,
) -> tuple[Part, ...]:
    """Cut a record into parts of at most `max_tokens`, neighbours sharing about `overlap_tokens`.

    Cuts fall after a paragraph, a sentence or white space when one stands in the last third of a
    part, and never between a character and its marks. Each character stands in some part, but for
    parts of white space alone, which are left out: a record with nothing to judge has no parts.
    Each part's text is `whole.text[part.start : part.start + len(part.text)]`. A part is longer
    than `max_tokens` only where one character is. Linear in the record's length.

    Args:
        whole: the record, as the one part that it would be.
        max_tokens: tokens of a part, by `count`, which should not fall when a text grows.
        overlap_tokens: at most half of `max_tokens`.

    Raises:
        ValidationError: bounds that leave no way forward.
    """
    _check(max_tokens, overlap_tokens)
    text = whole.text
    spans = [
        (start, end)
        for start, end in _spans(text, max_tokens, overlap_tokens, count)
        if not is_blank(text[start:end])
    ]
    return tuple(
        Part(
            ordinal=whole.ordinal,
            id=whole.id,
            text=text[start:end],
            index=index,
            of=len(spans),
            start=start,
        )
        for index, (start, end) in enumerate(spans)
    )


def _check(max_tokens: int, overlap_tokens: int) -> None:
    if max_tokens < 1:
        raise ValidationError(f"max_tokens={max_tokens!r} leaves no room", hint="give at least 1")
    if not 0 <= overlap_tokens * 2 <= max_tokens:
        raise ValidationError(
            f"overlap_tokens={overlap_tokens!r} does not fit max_tokens={max_tokens!r}",
            hint="give 0 to half of max_tokens",
        )


def _spans(text: str, budget: int, overlap: int, count: TokenCounter) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = end = 0
    while end < len(text):
        reach = _reach(text, start, budget, count)
        if reach <= end:
            # The overlap alone fills the part: go on without it.
            start = end
            reach = _reach(text, start, budget, count)
        end = reach if reach == len(text) else _cut(text, max(start, end), reach)
        spans.append((start, end))
        start = _overlap_start(text, start, end, overlap, count) if overlap else end
    return spans


def _reach(text: str, start: int, budget: int, count: TokenCounter) -> int:
    """Return the furthest end (within the precision) of a text of `budget` tokens; one character at least."""
    fits, guess = start + 1, min(len(text), start + 2 * budget + 1)
    while count(text[start:guess]) <= budget:
        if guess == len(text):
            return guess
        fits, guess = guess, min(len(text), start + 2 * (guess - start))
    over = guess
    while over - fits > 1 + (over - start) // _PRECISION:
        middle = (fits + over) // 2
        if count(text[start:middle]) <= budget:
            fits = middle
        else:
            over = middle
    return fits


def _overlap_start(text: str, start: int, end: int, overlap: int, count: TokenCounter) -> int:
    """Return where the last `overlap` tokens of a part begin: at a word where one begins near."""
    over, fits = max(start, end - 4 * overlap - 4), end
    while fits - over > 1 + (end - over) // _PRECISION:
        middle = (fits + over) // 2
        if count(text[middle:end]) <= overlap:
            fits = middle
        else:
            over = middle
    space = _SPACE.search(text, fits, fits + (end - fits) // 3)
    return _whole(text, start, space.end() if space else fits) if fits < end else end


def _cut(text: str, start: int, reach: int) -> int:
    """Return the best place for a cut in the last third before `reach`."""
    low = start + 2 * (reach - start) // 3
    for boundary in (_BLANK_LINE, _SENTENCE, _SPACE):
        places = [match.end() for match in boundary.finditer(text, low, reach)]
        if places:
            return _whole(text, start, places[-1])
    return _whole(text, start, reach)


def _whole(text: str, start: int, end: int) -> int:
    """Return the last place up to `end` that parts no character from its marks."""
    for place in range(end, max(start, end - _LOOK_BACK), -1):
        if place == len(text) or not _joined(text[place - 1], text[place]):
            return place
    return end


def _joined(before: str, after: str) -> bool:
    return (
        unicodedata.category(after)[0] == "M"
        or after == "\u200d"
        or before == "\u200d"
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or (before == "\r" and after == "\n")
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )
