"""Files of rows: JSONL, CSV, TSV and plain lines."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import HEAD, choose
from corpus.sources.delimited import DelimitedRows
from corpus.sources.jsonl import JsonRows
from corpus.sources.lines import detect_encoding
from corpus.sources.options import FORMATS, Format, ReadOptions
from corpus.sources.origin import Origin
from corpus.sources.plain import line_rows
from corpus.sources.rows import Place, RowSource
from executors.errors import SourceError

__all__ = ["detect_format", "open_table"]

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".log": "lines",
    ".ndjson": "jsonl",
    ".tab": "tsv",
    ".tsv": "tsv",
    ".txt": "lines",
}
_PACKED = (".gz", ".zst")
_HEAD_BYTES = 1 << 18

_Rows = Iterator[tuple[int, Mapping[str, object]]]


def open_table(origin: Origin, options: ReadOptions) -> RowSource:
    """Decide format and columns from the first rows.

    Raises:
        SourceError: the format cannot be told, or the columns cannot.
    """
    head = origin.head(_HEAD_BYTES)
    format_ = options.format or detect_format(origin.path, head)
    rows, names = _first_rows(_Head(origin, head), format_, options.encoding)
    columns = choose(rows, names, id=options.id, text=options.text, where=origin.name)
    info = SourceInfo(
        name=origin.name,
        format=format_,
        id_column=columns.id,
        text_columns=columns.texts,
        encoding=options.encoding or detect_encoding(head),
        said=columns.said,
        origins=(origin.path,),
    )
    wanted = (*columns.texts, *((columns.id,) if columns.id else ()))

    def places(warnings: SourceWarnings, complaints: Complaints) -> Iterator[Place]:
        name = origin.name
        reader = _Reader(origin, options.encoding, warnings, complaints)
        for number, row in reader.rows(format_, wanted):
            yield f"{name}:{number}", str(number), row

    return RowSource(info=info, columns=columns, rows=places, on_bad=options.on_bad)


def detect_format(path: str, head: bytes) -> Format:
    """Return the format that the name says, else the content.

    Raises:
        SourceError: neither does.
    """
    suffixes = [s.casefold() for s in Path(path).suffixes if s.casefold() not in _PACKED]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return "jsonl"
    if path == "-":
        return "lines"
    raise SourceError(
        f"cannot tell the format of {path!r}",
        hint=f"say it with --format (format=…), one of {', '.join(FORMATS)}",
    )


class _Reader:
    """Opens the rows of one origin, whatever their format."""

    def __init__(
        self,
        origin: Origin,
        encoding: str | None,
        warnings: SourceWarnings,
        complaints: Complaints,
    ) -> None:
        self._parts = (origin, encoding, warnings, complaints)
        self.header: Sequence[str] | None = None

    def rows(self, format_: Format, wanted: Sequence[str] | None) -> _Rows:
        origin, encoding, warnings, _ = self._parts
        match format_:
            case "jsonl":
                return JsonRows(*self._parts).rows(wanted or ())
            case "csv" | "tsv":
                delimited = DelimitedRows(*self._parts, "\t" if format_ == "tsv" else None)
                self.header = delimited.header
                return delimited.rows(wanted)
            case "lines":
                return line_rows(origin, encoding, warnings)


def _first_rows(
    head: _Head, format_: Format, encoding: str | None
) -> tuple[list[Mapping[str, object]], Sequence[str] | None]:
    """Return the first rows and the header, if there is one; oddities are told by the reading."""
    scratch = SourceWarnings()
    reader = _Reader(head, encoding, scratch, Complaints(scratch, "skip"))
    found: list[Mapping[str, object]] = []
    try:
        found.extend(row for _, row in islice(reader.rows(format_, None), HEAD))
    except SourceError:
        if not head.cut:
            raise
    return found, reader.header


class _Head:
    """The first bytes of an origin, as an origin."""

    def __init__(self, origin: Origin, head: bytes) -> None:
        self.name = origin.name
        self.path = origin.path
        self.cut = len(head) == _HEAD_BYTES
        self._head = head

    def head(self, size: int) -> bytes:
        return self._head[:size]

    def open(self) -> BinaryIO:
        return io.BytesIO(self._head)
