"""Files of rows: JSONL, JSON, CSV, TSV and plain lines; several files of one format are one source."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import HEAD, Columns, choose
from corpus.sources.delimited import DelimitedRows
from corpus.sources.formats import detect_format
from corpus.sources.json_array import json_rows
from corpus.sources.jsonl import jsonl_rows
from corpus.sources.lines import detect_encoding
from corpus.sources.options import Format, ReadOptions
from corpus.sources.origin import Origin
from corpus.sources.plain import line_rows
from corpus.sources.rows import Place, RowSource
from executors.errors import SourceError

__all__ = ["open_table", "open_tables"]

_HEAD_BYTES = 1 << 18
_LONGEST_HEAD = 1 << 30
_LONGEST_NAME = 100

_Rows = Iterator[tuple[int, Mapping[str, object]]]


def open_table(origin: Origin, options: ReadOptions) -> RowSource:
    """Open one file, or standard input.

    Raises:
        SourceError: the format cannot be told, or the columns cannot.
    """
    shape = _shape_of(origin, options)

    def places(warnings: SourceWarnings, complaints: Complaints) -> Iterator[Place]:
        name = origin.name
        for number, row in _rows(origin, shape, options.encoding, warnings, complaints):
            yield f"{name}:{number}", str(number), row

    info = _info(origin.name, shape, (origin.path,), ())
    return RowSource(info=info, columns=shape.columns, rows=places, on_bad=options.on_bad)


def open_tables(
    name: str,
    origins: Callable[[SourceWarnings], Iterable[Origin]],
    options: ReadOptions,
    *,
    said: str,
) -> RowSource:
    """Open files of one format as one source: the first one with rows decides the columns.

    Made ids carry the file's name. `origins` lists the files anew each time.

    Raises:
        SourceError: the columns cannot be told.
    """
    shape: _Shape | None = None
    for origin in origins(SourceWarnings()):
        found = _shape_of(origin, options)
        shape = found if shape is None or found.rows else shape
        if found.rows:
            break
    if shape is None:
        raise SourceError(f"no files in {name!r}")

    def places(warnings: SourceWarnings, complaints: Complaints) -> Iterator[Place]:
        for origin in origins(warnings):
            path = origin.name
            for number, row in _rows(origin, shape, options.encoding, warnings, complaints):
                where = f"{path}:{number}"
                yield where, where, row

    info = _info(name, shape, (name,), (said,))
    return RowSource(info=info, columns=shape.columns, rows=places, on_bad=options.on_bad)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What was found in the head of a file."""

    format: Format
    columns: Columns
    rows: int
    encoding: str
    delimiter: str | None


def _info(name: str, shape: _Shape, origins: tuple[str, ...], said: tuple[str, ...]) -> SourceInfo:
    if shape.delimiter not in (None, ",", "\t"):
        said = (*said, f"columns are parted by {shape.delimiter!r}")
    if not shape.encoding.startswith("utf-8"):
        said = (*said, f"encoding {shape.encoding}")
    return SourceInfo(
        name=name,
        format=shape.format,
        id_column=shape.columns.id,
        text_columns=shape.columns.texts,
        encoding=shape.encoding,
        said=(*shape.columns.said, *said),
        origins=origins,
    )


def _shape_of(origin: Origin, options: ReadOptions) -> _Shape:
    """Look at as much of the head as holds a row."""
    size = _HEAD_BYTES
    while True:
        head = _Head(origin, size)
        format_ = options.format or detect_format(origin.path, head.bytes)
        rows, header, delimiter = _first_rows(head, format_, options.encoding)
        if rows or not head.cut or size >= _LONGEST_HEAD:
            break
        size *= 8
    return _Shape(
        format=format_,
        columns=_columns(rows, header, format_, options, origin.name),
        rows=len(rows),
        encoding=options.encoding or detect_encoding(head.bytes),
        delimiter=delimiter,
    )


def _columns(
    rows: Sequence[Mapping[str, object]],
    header: Sequence[str] | None,
    format_: Format,
    options: ReadOptions,
    where: str,
) -> Columns:
    if format_ == "lines":
        options.refuse_columns("plain lines have no columns")
        said = "each line that is not blank is a record, its number is its id"
        return Columns(id=None, texts=("text",), said=(said,))
    found = choose(rows, header, id=options.id, text=options.text, where=where)
    if header is not None and (odd := next(filter(_is_like_data, header), None)) is not None:
        said = f"the first line was taken for the header, though it holds {odd[:40]!r}"
        return replace(found, said=(*found.said, said))
    return found


def _is_like_data(name: str) -> bool:
    """Whether a column's name looks like the cell of a row: the file may have no header."""
    return len(name) > _LONGEST_NAME or name.lstrip("+-").replace(".", "", 1).isdecimal()


def _rows(
    origin: Origin,
    shape: _Shape,
    encoding: str | None,
    warnings: SourceWarnings,
    complaints: Complaints,
) -> _Rows:
    wanted = shape.columns.wanted
    match shape.format:
        case "jsonl":
            return jsonl_rows(origin, encoding, warnings, complaints, wanted)
        case "json":
            return json_rows(origin, encoding, warnings, complaints, wanted)
        case "csv" | "tsv":
            delimited = DelimitedRows(origin, encoding, warnings, complaints, shape.delimiter)
            return delimited.rows(wanted)
        case _:
            return line_rows(origin, encoding, warnings)


def _first_rows(
    head: _Head, format_: Format, encoding: str | None
) -> tuple[list[Mapping[str, object]], Sequence[str] | None, str | None]:
    """Return the first rows, header and delimiter; oddities are left to the real reading."""
    scratch = SourceWarnings()
    complaints = Complaints(scratch, "skip")
    match format_:
        case "jsonl":
            rows = jsonl_rows(head, encoding, scratch, complaints, ())
        case "json":
            rows = json_rows(head, encoding, scratch, complaints, ())
        case "csv" | "tsv":
            tabs = "\t" if format_ == "tsv" else None
            delimited = DelimitedRows(head, encoding, scratch, complaints, tabs)
            found = _take(delimited.rows(), head)
            return found, delimited.header, delimited.delimiter
        case _:
            rows = line_rows(head, encoding, scratch)
    return _take(rows, head), None, None


def _take(rows: _Rows, head: _Head) -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = []
    try:
        for _, row in rows:
            found.append(row)
            if len(found) == HEAD:
                break
    except SourceError:
        # What is wrong in a whole file is told now; a head may just end inside a value.
        if not head.cut:
            raise
    return found


class _Head:
    """The first bytes of an origin, as an origin."""

    def __init__(self, origin: Origin, size: int) -> None:
        self.name = origin.name
        self.path = origin.path
        self.bytes = origin.head(size)
        self.cut = len(self.bytes) == size

    def head(self, size: int) -> bytes:
        return self.bytes[:size]

    def open(self) -> BinaryIO:
        raw = cast("io.RawIOBase", io.BytesIO(self.bytes))
        return cast(BinaryIO, io.BufferedReader(raw))
