"""What every source is: records, what was decided about it, and what was odd in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from corpus.records import Record
from executors.errors import SourceError

__all__ = [
    "Complaints",
    "OnBad",
    "Source",
    "SourceInfo",
    "SourceWarning",
    "SourceWarnings",
    "WarningCode",
    "sound",
]

OnBad = Literal["refuse", "skip"]
"""What happens to rows that are no record: refuse the source, or leave them out and count them."""

_EXAMPLES = 5
_LISTED = 20

WarningCode = Literal[
    "bad-rows",
    "binary-files",
    "blank-lines",
    "hidden-files",
    "lenient-json",
    "lone-surrogates",
    "made-ids",
    "near-ids",
    "nested-text",
    "nul-characters",
    "other-arrays",
    "other-encoding",
    "other-parts",
    "outside-links",
    "quotes-inside",
    "renamed-ids",
    "replaced-bytes",
    "run-directories",
    "short-rows",
    "torn-last-line",
    "unreadable-files",
]

_SENTENCES: dict[WarningCode, str] = {
    "bad-rows": "row(s) left out that are no record",
    "binary-files": "binary file(s) passed over",
    "blank-lines": "blank line(s) passed over",
    "hidden-files": "hidden file(s) or folder(s) passed over",
    "lenient-json": "row(s) that are not strict JSON, read all the same",
    "lone-surrogates": "text(s) with halves of surrogate pairs or stray bytes, which became U+FFFD",
    "made-ids": "id(s) made, since the records have none",
    "near-ids": "id(s) that differ from an earlier one by Unicode form or white space alone",
    "nested-text": "text(s) that are lists or objects, read as JSON",
    "nul-characters": "text(s) with NUL characters, kept",
    "other-arrays": "other array(s) beside the one that was read, passed over",
    "other-encoding": "line(s) that are not UTF-8, read as Windows-1252",
    "other-parts": "attachment(s) passed over",
    "outside-links": "link(s) out of the folder, or to a folder, passed over",
    "quotes-inside": "field(s) with text after a closing quote, kept as written",
    "renamed-ids": "repeated or missing id(s), which were given a suffix",
    "replaced-bytes": "line(s) with bytes in no known encoding, which became U+FFFD",
    "run-directories": "run director(ies) of ours passed over",
    "short-rows": "row(s) with fewer fields than the header",
    "torn-last-line": "torn last line(s), left out",
    "unreadable-files": "file(s) that could not be read, passed over",
}
assert set(_SENTENCES) == set(get_args(WarningCode))


def sound(text: str) -> str:
    """Return the text as UTF-8 can hold it: halves of surrogate pairs joined, else U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """What was named or detected, for people and for the manifest."""

    name: str
    format: str
    id_column: str | None = None
    """None when ids are made from line numbers, paths or positions."""
    text_columns: tuple[str, ...] = ()
    encoding: str | None = None
    """As it stands in the head of the source; None for what is not bytes."""
    said: tuple[str, ...] = ()
    """Sentences that say what was decided: "id column 'id' (named so)"."""
    origins: tuple[str, ...] = ()
    """Paths that are read; empty for what lives in memory."""

    def __post_init__(self) -> None:
        # Names of files may hold any bytes; what is written down and shown cannot.
        object.__setattr__(self, "name", sound(self.name))
        object.__setattr__(self, "said", tuple(map(sound, self.said)))
        object.__setattr__(self, "origins", tuple(map(sound, self.origins)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWarning:
    """One kind of oddity, with how often it was met."""

    code: WarningCode
    count: int
    examples: tuple[str, ...]
    """The first places: `tickets.csv:17`, with what stood there where that helps."""

    @property
    def sentence(self) -> str:
        """What to tell a person: "3 torn last line(s), left out (a.jsonl:9, …)"."""
        more = ", …" if self.count > len(self.examples) else ""
        shown = f" ({', '.join(self.examples)}{more})" if self.examples else ""
        return f"{self.count} {_SENTENCES[self.code]}{shown}"


class SourceWarnings:
    """Counted oddities with their first places; filled while the source is read."""

    __slots__ = ("_counts", "_examples")

    def __init__(self) -> None:
        self._counts: Counter[WarningCode] = Counter()
        self._examples: dict[WarningCode, list[str]] = {}

    def add(self, code: WarningCode, where: str, what: str = "", *, count: int = 1) -> None:
        """Count one more, and keep its place while there are few."""
        self._counts[code] += count
        examples = self._examples.setdefault(code, [])
        if len(examples) < _EXAMPLES:
            examples.append(sound(f"{where}: {what}" if what else where))

    def clear(self) -> None:
        """Forget everything: the reading begins anew."""
        self._counts.clear()
        self._examples.clear()

    def count(self, code: WarningCode) -> int:
        """Return how often `code` was met."""
        return self._counts[code]

    def __iter__(self) -> Iterator[SourceWarning]:
        for code in sorted(self._counts):
            yield SourceWarning(
                code=code, count=self._counts[code], examples=tuple(self._examples[code])
            )

    def __len__(self) -> int:
        return len(self._counts)


class Complaints:
    """Rows that are no record: refused with the first 20 listed, or counted and left out.

    Args:
        warnings: where rows that are left out are counted.
        on_bad: "refuse" raises at the 20th row or when `settle` is called.
    """

    __slots__ = ("_found", "_hint", "_on_bad", "_warnings")

    def __init__(self, warnings: SourceWarnings, on_bad: OnBad = "refuse") -> None:
        self._warnings = warnings
        self._on_bad = on_bad
        self._found: list[str] = []
        self._hint: str | None = None

    def add(self, where: str, what: str, hint: str | None = None) -> None:
        """Note a row that is no record.

        Raises:
            SourceError: 20 such rows were met and they are refused.
        """
        if self._on_bad == "skip":
            self._warnings.add("bad-rows", where, what)
            return
        self._found.append(f"{where}: {what}")
        self._hint = self._hint or hint
        if len(self._found) >= _LISTED:
            self.settle()

    def settle(self) -> None:
        """End the reading.

        Raises:
            SourceError: some row was no record and they are refused.
        """
        if not self._found:
            return
        number, found = len(self._found), "; ".join(self._found)
        self._found = []
        raise SourceError(
            f"{number} row(s) are no record" + (" (stopped there)" if number >= _LISTED else ""),
            where=found,
            hint=self._hint
            or "repair them, or leave them out and have them counted: on_bad='skip' (--on-bad skip)",
        )


class Source(Protocol):
    """Records in order. `records` may be called again unless the source can be read but once."""

    @property
    def info(self) -> SourceInfo:
        """What was decided; of an asynchronous source it is complete once reading has begun."""
        ...

    @property
    def warnings(self) -> SourceWarnings:
        """Oddities, counted while the records are read."""
        ...

    @property
    def in_loop(self) -> bool:
        """Has to be read in the caller's own thread: the caller's iterables and connections."""
        ...

    def records(self) -> Iterator[Record] | AsyncIterator[Record]:
        """Return the records in order, lazily.

        Raises:
            SourceError: while reading; what cannot be read names its file and line.
        """
        ...
