"""Rows of one JSON array, a value at a time: `[…]`, or the array inside `{"records": […]}`.

Only the ends of values are found here, so that each value has its line and none but one is held;
what a value says is read by the same parser as a line of JSONL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import orjson

from corpus.sources.base import Complaints, SourceWarnings
from corpus.sources.json_rows import RowParser
from corpus.sources.lines import Decoder, line_encoding, transparent
from corpus.sources.origin import Origin
from executors.errors import SourceError

__all__ = ["json_rows"]

_ARRAY_NAMES = frozenset({"records", "data", "items", "rows", "documents", "entries", "results"})
_STRUCTURE = re.compile(rb'["\[\]{}]')
_IN_STRING = re.compile(rb'["\\]')
_SCALAR_END = re.compile(rb"[,\]}\s]")
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_CHUNK = 1 << 16


def json_rows(
    origin: Origin,
    encoding: str | None,
    warnings: SourceWarnings,
    complaints: Complaints,
    wanted: Sequence[str],
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the line on which each value begins, and its row.

    Raises:
        SourceError: the file holds no array, or several of which none is clearly the records.
    """
    decoder = Decoder(line_encoding(encoding), warnings)
    parse = RowParser(origin.name, decoder, warnings, complaints, wanted).row
    with transparent(origin, encoding, warnings) as stream:
        scanner = _Scanner(stream, origin.name)
        try:
            for line, raw in _values(scanner, warnings):
                row = parse(raw, line, torn=False)
                if row is not None:
                    yield line, row
        except EOFError:
            complaints.add(
                scanner.place(), "the file ends inside a value", "it is cut short: fetch it again"
            )


def _values(scanner: _Scanner, warnings: SourceWarnings) -> Iterator[tuple[int, bytes]]:
    """Yield line and bytes of each value of the records' array."""
    match scanner.next():
        case None:
            return
        case b"[":
            yield from scanner.array()
        case b"{":
            yield from _values_of_object(scanner, warnings)
        case other:
            raise SourceError(
                f"a JSON file that begins with {other.decode('latin-1')!r}",
                where=scanner.place(),
                hint="give an array of objects, an object that holds one, or one object a line",
            )
    if scanner.next() is not None:
        raise SourceError(
            "something follows the end of the JSON value",
            where=scanner.place(),
            hint="for one object a line say --format jsonl (format='jsonl')",
        )


def _values_of_object(scanner: _Scanner, warnings: SourceWarnings) -> Iterator[tuple[int, bytes]]:
    found: str | None = None
    for key in scanner.object_keys():
        if scanner.next() != b"[":
            scanner.skip()
        elif found is None and (key in _ARRAY_NAMES or scanner.holds_objects()):
            found = key
            yield from scanner.array()
        elif scanner.holds_objects() and found not in _ARRAY_NAMES:
            raise SourceError(
                f"two arrays of objects, {found!r} and {key!r}",
                where=scanner.place(),
                hint="give a file with one of them, or one object a line",
            )
        else:
            warnings.add("other-arrays", scanner.place(), repr(key))
            scanner.skip()
    if found is None:
        raise SourceError(
            "the JSON object holds no array of objects",
            where=scanner.place(),
            hint='give an array, {"records": […]}, or one object a line',
        )


class _Scanner:
    """Finds where values end, holding the bytes of one value at a time. Linear."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._held = bytearray()
        self._at = 0
        self._line = 1
        self._counted = 0

    def place(self) -> str:
        """Return file and line of what comes next."""
        return f"{self._name}:{self._here()}"

    def next(self) -> bytes | None:
        """Skip white space; return the byte that follows, None at the end."""
        while (found := _NOT_SPACE.search(self._held, self._at)) is None:
            self._at = len(self._held)
            if not self._more():
                return None
        self._at = found.start()
        return bytes(self._held[self._at : self._at + 1])

    def array(self) -> Iterator[tuple[int, bytes]]:
        """Yield the values of the array that begins here."""
        for _ in self._members(b"]"):
            line, start = self._here(), self._at
            self.skip()
            yield line, bytes(self._held[start : self._at])
            self._drop()

    def object_keys(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; the caller takes or skips each value."""
        for opening in self._members(b"}"):
            start = self._at
            if opening != b'"':
                raise self._unexpected(opening)
            self.skip()
            key = bytes(self._held[start + 1 : self._at - 1])
            self._expect(b":")
            yield key.decode("utf-8", "replace")

    def holds_objects(self) -> bool:
        """Whether the array that begins here has an object as its first value; takes nothing."""
        before = self._at
        self._at += 1
        found = self.next() == b"{"
        self._at = before
        return found

    def skip(self) -> None:
        """Go to the end of the value that begins here."""
        opening = self.next()
        if opening is None:
            raise EOFError
        if opening == b'"':
            self._at = self._string_end(self._at + 1)
        elif opening in b"[{":
            flat = self._flat_end(self._at) if opening == b"{" else 0
            self._at = flat or self._nested_end(self._at)
        else:
            self._at = self._search(_SCALAR_END, self._at).start()

    def _members(self, closing: bytes) -> Iterator[bytes]:
        """Stop at each member between the brackets, on its first byte."""
        self._at += 1
        following = self.next()
        while following != closing:
            if following is None:
                raise EOFError
            yield following
            following = self.next()
            if following == b",":
                self._at += 1
                following = self.next()
                if following == closing:
                    raise self._unexpected(closing)
            elif following not in (closing, None):
                raise self._unexpected(following)
        self._at += 1

    def _expect(self, wanted: bytes) -> None:
        found = self.next()
        if found is None:
            raise EOFError
        if found != wanted:
            raise self._unexpected(found)
        self._at += 1

    def _unexpected(self, found: bytes) -> SourceError:
        return SourceError(
            f"no JSON: {found.decode('latin-1')!r} where none can stand",
            where=self.place(),
            hint="repair the file; for one object a line say --format jsonl (format='jsonl')",
        )

    def _flat_end(self, start: int) -> int:
        """Return where an object ends whose first closing brace is its last; 0 for others.

        No whole object is the beginning of another one, so what parses is the value.
        """
        end = self._held.find(b"}", start) + 1
        if end:
            try:
                orjson.loads(self._held[start:end])
            except orjson.JSONDecodeError:
                return 0
        return end

    def _nested_end(self, start: int) -> int:
        at, depth = start, 0
        while True:
            found = self._search(_STRUCTURE, at)
            at = found.end()
            match found.group():
                case b'"':
                    at = self._string_end(at)
                case b"[" | b"{":
                    depth += 1
                case _:
                    depth -= 1
                    if depth == 0:
                        return at

    def _string_end(self, at: int) -> int:
        while True:
            found = self._search(_IN_STRING, at)
            if found.group() == b'"':
                return found.end()
            at = found.end() + 1  # whatever is escaped

    def _search(self, what: re.Pattern[bytes], at: int) -> re.Match[bytes]:
        while (found := what.search(self._held, at)) is None:
            at = max(at, len(self._held))
            if not self._more():
                raise EOFError
        return found

    def _more(self) -> bool:
        chunk = self._stream.read(_CHUNK)
        self._held += chunk
        return bool(chunk)

    def _here(self) -> int:
        self._line += self._held.count(b"\n", self._counted, self._at)
        self._counted = max(self._counted, self._at)
        return self._line

    def _drop(self) -> None:
        """Forget what was read, now and then."""
        if self._at >= _CHUNK:
            self._here()
            del self._held[: self._at]
            self._at = self._counted = 0
