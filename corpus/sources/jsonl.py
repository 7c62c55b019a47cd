"""JSON, one row a line: orjson for speed, the standard parser for what orjson refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from corpus.sources.base import Complaints, SourceWarnings
from corpus.sources.lines import Decoder, line_encoding, numbered
from corpus.sources.origin import Origin
from executors.errors import SourceError

__all__ = ["JsonRows", "as_row", "parse_line"]

_ESCAPED_ASCII = re.compile(rb"\\u00[2-7][0-9a-fA-F]")


class JsonRows:
    """Rows of a JSONL file.

    Args:
        origin: where the bytes come from.
        encoding: as told, None to detect.
    """

    def __init__(
        self,
        origin: Origin,
        encoding: str | None,
        warnings: SourceWarnings,
        complaints: Complaints,
    ) -> None:
        self._origin = origin
        self._encoding = encoding
        self._warnings = warnings
        self._complaints = complaints

    def rows(self, wanted: Sequence[str] = ()) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield line numbers and rows; `wanted` are the columns whose spelling matters."""
        decoder = Decoder(line_encoding(self._encoding), self._warnings)
        exact = _Exact(wanted)
        name = self._origin.name
        for number, line in numbered(self._origin, self._encoding, self._warnings):
            row = _quickly(line, exact)
            if row is None:
                row = self._slowly(line, f"{name}:{number}", decoder)
            if row is not None:
                yield number, row

    def _slowly(self, line: bytes, where: str, decoder: Decoder) -> dict[str, object] | None:
        """Parse what orjson refused or would round; None when it is no row (and was noted)."""
        if not line.strip():
            self._warnings.add("blank-lines", where)
            return None
        text = decoder.decode(line, where)
        try:
            value, lenient = parse_line(text)
            row = as_row(value)
        except SourceError as error:
            if not line.endswith(b"\n"):
                self._warnings.add("torn-last-line", where, f"{text[:40]!r}")
            else:
                self._complaints.add(where, error.what, error.hint)
            return None
        if lenient:
            self._warnings.add("lenient-json", where)
        return row


def _quickly(line: bytes, exact: _Exact) -> dict[str, object] | None:
    """Parse a line that is a plain object; None when it needs a closer look."""
    try:
        value: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if type(value) is not dict:
        return None
    row = cast("dict[str, object]", value)
    return None if exact.needed(line, row) else row


class _Exact:
    """Which rows have to be parsed again because orjson rounds numbers or drops repeated keys."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = tuple(wanted)
        self._spellings = tuple(
            {json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode()}
            for name in wanted
        )

    def needed(self, line: bytes, row: dict[str, object]) -> bool:
        for name, spellings in zip(self._wanted, self._spellings, strict=True):
            if type(row.get(name)) is float:
                return True
            for spelling in spellings:
                if line.count(spelling) > 1:
                    return True
        return b"\\u00" in line and _ESCAPED_ASCII.search(line) is not None


class _Number(str):
    """A number as it is spelled."""

    __slots__ = ()


def parse_line(text: str) -> tuple[object, bool]:
    """Parse one value; return it and whether it is JSON by the letter.

    Numbers keep their spelling. NaN, Infinity and raw control characters are read all the same.

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
            f"no JSON: {error.msg} at column {error.colno} in {text[:40]!r}",
            hint="each line must be one JSON object; for other formats say format='csv' and so on",
        ) from error
    except RecursionError as error:
        raise SourceError("nested deeper than can be read") from error
    return value, bool(odd) or any(char < " " for char in text.strip())


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise SourceError(f"the key {twice!r} stands twice", hint="keep one of them")
    return row


def as_row(value: object) -> dict[str, object]:
    """Return an object as a row, and a string as one with the column `text`.

    Raises:
        SourceError: it is neither.
    """
    if isinstance(value, _Number):
        raise SourceError(f"the number {value[:40]}, not an object")
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    kind = "a list" if isinstance(value, list) else json.dumps(value)
    raise SourceError(f"{kind}, not an object")
