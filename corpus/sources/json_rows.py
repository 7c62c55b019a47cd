"""One JSON value becomes one row: orjson for speed, the standard parser for what orjson refuses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

import orjson

from corpus.sources.base import Complaints, SourceWarnings
from corpus.sources.lines import Decoder
from executors.errors import SourceError

__all__ = ["RowParser", "parse_json"]

_ESCAPED_ASCII = re.compile(rb"\\u00[2-7][0-9a-fA-F]")
_CONTROL = re.compile(r"[\x00-\x1f]")


class RowParser:
    """Turns bytes of JSON values into rows.

    orjson rounds long numbers and keeps the last of repeated keys. Where that could touch a wanted
    column the value is parsed again, with numbers as they are spelled and repeated keys refused.

    Args:
        name: the file's name, for places.
        decoder: for values that are not UTF-8.
        wanted: the columns whose spelling matters.
    """

    __slots__ = ("_complaints", "_decoder", "_name", "_spellings", "_wanted", "_warnings")

    def __init__(
        self,
        name: str,
        decoder: Decoder,
        warnings: SourceWarnings,
        complaints: Complaints,
        wanted: Sequence[str],
    ) -> None:
        self._name = name
        self._decoder = decoder
        self._warnings = warnings
        self._complaints = complaints
        self._wanted = tuple(wanted)
        self._spellings = tuple(
            spelling
            for name in wanted
            for spelling in {orjson.dumps(name), json.dumps(name).encode("ascii")}
        )

    def row(self, raw: bytes, line: int, *, torn: bool) -> dict[str, object] | None:
        """Return the row, or None when it is none (and that was noted).

        Args:
            raw: one JSON value, or white space.
            line: where it begins, from 1.
            torn: nothing follows, not even a line's end: a fault in it is the file's being cut.
        """
        try:
            value: object = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return self._slowly(raw, line, torn=torn)
        if not self._decoder.utf8_seen and not raw.isascii():
            self._decoder.utf8_seen = True
        if type(value) is not dict:
            return self._slowly(raw, line, torn=torn)
        row = cast("dict[str, object]", value)
        return self._slowly(raw, line, torn=torn) if self._inexact(raw, row) else row

    def _inexact(self, raw: bytes, row: dict[str, object]) -> bool:
        for name in self._wanted:
            if type(row.get(name)) is float:
                return True
        for spelling in self._spellings:
            if raw.count(spelling) > 1:
                return True
        # One byte is looked for first: that is several times as fast as looking for five.
        return b"\\" in raw and _ESCAPED_ASCII.search(raw) is not None

    def _slowly(self, raw: bytes, line: int, *, torn: bool) -> dict[str, object] | None:
        where = f"{self._name}:{line}"
        if not raw.strip():
            self._warnings.add("blank-lines", where)
            return None
        text = self._decoder.decode(raw, where)
        try:
            value, lenient = parse_json(text)
            row = _as_row(value)
        except SourceError as error:
            if torn:
                self._warnings.add("torn-last-line", where, f"{text[:40]!r}")
            else:
                self._complaints.add(where, error.what, error.hint)
            return None
        if lenient:
            self._warnings.add("lenient-json", where)
        return row


class _Number(str):
    """A number as it is spelled."""

    __slots__ = ()


def parse_json(text: str) -> tuple[object, bool]:
    """Parse one value; return it and whether it is less than JSON by the letter.

    Numbers become strings of their spelling. NaN, Infinity and raw control characters are read.

    Raises:
        SourceError: no JSON, a key that stands twice, or nesting deeper than the parser goes.
    """
    odd: list[str] = []
    try:
        value: object = json.loads(
            text,
            strict=False,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=odd.append,
            object_pairs_hook=_unrepeated,
        )
    except json.JSONDecodeError as error:
        raise SourceError(
            f"no JSON: {error.msg} at column {error.pos + 1} of {text[:40]!r}",
            hint="each row must be one JSON object; for other formats say --format (format='csv', …)",
        ) from error
    except RecursionError as error:
        raise SourceError("JSON nested deeper than can be read") from error
    return value, bool(odd) or _CONTROL.search(text.strip().replace("\n", "")) is not None


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise SourceError(f"the key {twice!r} stands twice in one object", hint="keep one of them")
    return row


def _as_row(value: object) -> dict[str, object]:
    """Return an object as a row, and a string as one with the column `text`."""
    if isinstance(value, _Number):
        raise SourceError(f"the number {value[:40]}, not an object")
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    kind = "a list" if isinstance(value, list) else json.dumps(value)
    raise SourceError(f"{kind}, not an object")
