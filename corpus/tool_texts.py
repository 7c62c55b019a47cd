"""What a model reads of a count, a search, an exact match and a record.

Numbers that code counted stand outside, ids and texts of records inside marks, each in one line:

    [record] t-17 (characters 300 to 1300 of 5400): the passage
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Self

from corpus.prompts import inert
from corpus.records import Record
from corpus.results import Tally
from corpus.search.base import Hit, How
from corpus.search.passages import passage
from corpus.search.words import read_query
from executors.fences import fenced

__all__ = ["ExactFound", "ScanFound", "exact_text", "record_text", "scan_text", "search_text"]

_LISTED: Final = 50  # ids that are named; the rest is counted
_SHOWN: Final = 8  # records whose passage is shown
_ID_CHARACTERS: Final = 200
_SPACES: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HARMFUL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_SAID: Final[dict[How, str]] = {
    "all-words": "hold every telling word of the query",
    "some-words": "hold some of its words",
    "meaning": "mean something near",
    "words-and-meaning": "fit by words and by meaning",
    "memory": "were recalled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFound:
    """What judging every record came to."""

    count: int
    """Records that matched."""
    ids: Sequence[str]
    """Of the records that matched, in corpus order; may be read lazily."""
    scanned: int
    """Records of the corpus."""
    window: int
    """Records a call was shown at most."""
    passes: int
    unsure: int = 0
    """Records that the judge looked at and could not tell."""
    unresolved: int = 0
    """Records that were never judged."""
    reason: str | None = None
    """Why some were not, where that is known."""

    @classmethod
    def of(cls, result: Tally, *, window: int, reason: str | None = None) -> Self:
        """Return what a finished or broken off count came to."""
        return cls(
            count=result.count,
            ids=result.matched_ids,
            scanned=result.records,
            window=window,
            passes=result.passes,
            unsure=result.states["unsure"],
            unresolved=result.states["unresolved"],
            reason=reason,
        )


def scan_text(found: ScanFound) -> str:
    """Return the result of a count as a model reads it."""
    shape = f"window={found.window}, passes={found.passes}"
    lines = [f"count={found.count} (scanned {found.scanned} records, {shape})"]
    if found.unresolved:
        why = "" if found.reason is None else f": {_line(found.reason)}"
        high = found.count + found.unsure + found.unresolved
        lines.append(
            f"INCOMPLETE: {found.unresolved} record(s) were never judged{why}. The count is a floor, "
            f"not exact: with these judged it could be as high as {high}."
        )
    if found.unsure:
        lines.append(f"unsure: {found.unsure} record(s) that the judge could not tell")
    return "\n".join([*lines, *_ids(found.ids, found.count)])


def search_text(query: str, hits: Sequence[Hit], records: int | None) -> str:
    """Return hits as a model reads them."""
    among = "" if records is None else f" among {records} record(s)"
    if not hits:
        terms = ", ".join(map(_line, read_query(query).terms))
        return (
            f"no hits{among} for: {terms}. The search worked and found nothing; try other words. "
            "It does not show that there is nothing."
        )
    counts = Counter(hit.how for hit in hits)
    how = ", ".join(f"{counts[key]} {said}" for key, said in _SAID.items() if key in counts)
    head = f"{len(hits)} hit(s){among}, the best ones only: {how}"
    entries = fenced("\n".join(map(_entry, hits)), "records")
    return f"{head}\n{entries}"


@dataclass(slots=True, kw_only=True)
class ExactFound:
    """What code found by exact terms: all of it counted, the first of it kept."""

    terms: Sequence[str]
    every: bool
    """Whether a record has to hold all terms, and not any."""
    looked_at: int
    count: int = 0
    ids: list[str] = field(default_factory=list[str])
    entries: list[str] = field(default_factory=list[str])

    def add(self, record: Record) -> None:
        """Count a record that matches."""
        self.count += 1
        if len(self.ids) < _LISTED:
            self.ids.append(record.id)
        if len(self.entries) < _SHOWN:
            span = passage(record.text, self.terms)
            text = record.text[slice(*span)]
            self.entries.append(_line_of("record", record.id, text, span, len(record.text)))


def exact_text(found: ExactFound) -> str:
    """Return an exact match as a model reads it."""
    named = (" and " if found.every else " or ").join(f'"{_line(term)}"' for term in found.terms)
    head = f"count={found.count} (looked at {found.looked_at} records, exact match of {named})"
    shown = [fenced("\n".join(found.entries), "records")] if found.entries else []
    return "\n".join([head, *_ids(found.ids, found.count), *shown])


def record_text(record: Record, start: int, characters: int) -> str:
    """Return a piece of a record as a model reads it, lines and all."""
    length = len(record.text)
    end = min(length, start + characters)
    if start >= length:
        return f"the text has {length} characters; nothing stands from {start} on"
    more = f"; read on from start={end}" if end < length else ""
    head = f"characters {start} to {end} of {length}{more}"
    lines = _HARMFUL.sub(" ", record.text[start:end])
    return f"{head}\n{fenced(inert(lines), 'record')}"


def _ids(ids: Iterable[str], count: int) -> list[str]:
    first = [_short_id(id_) for id_ in islice(ids, _LISTED)]
    if not first:
        return []
    rest = count - len(first)
    listed = ["ids:", fenced("\n".join(first), "ids")]
    return [*listed, f"and {rest} more ids, not listed"] if rest > 0 else listed


def _entry(hit: Hit) -> str:
    line = _line_of(hit.kind, hit.id, hit.snippet, hit.span, hit.length)
    return f"{line} [{hit.identical} further record(s) with this text]" if hit.identical else line


def _line_of(kind: str, id_: str, text: str, span: tuple[int, int], length: int) -> str:
    """Return `[record] id: text` in one line; a passage says where it stands."""
    start, end = span
    place = "" if end - start >= length else f" (characters {start} to {end} of {length})"
    return f"[{_line(kind)}] {_short_id(id_)}{place}: {_line(text)}"


def _line(text: str) -> str:
    """Return a text as one line of data; quotes from it are found again: white space may differ."""
    return inert(_SPACES.sub(" ", text).strip())


def _short_id(id_: str) -> str:
    line = _line(id_)
    return line if len(line) <= _ID_CHARACTERS else line[: _ID_CHARACTERS - 1] + "…"
