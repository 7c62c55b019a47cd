"""How rows become bytes: CSV, JSONL, Parquet. Each writer streams and returns the rows written."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from itertools import islice
from typing import IO, Final, Protocol, Self, cast

import orjson

from rlm.render.spreadsheet import CellGuard

__all__ = ["Fields", "write_csv", "write_jsonl", "write_parquet"]

Fields = dict[str, str | int | float | None]
"""One row: its cells by column, in the order of the columns."""

# What is no text. Parquet wants to know before the first row.
_NUMBERS: Final[Mapping[str, str]] = {
    "ordinal": "int64",
    "rank": "int64",
    "quote_start": "int64",
    "quote_end": "int64",
    "probability": "float64",
    "score": "float64",
}
_BATCH: Final = 16_384
# Line separators that are no line ends to JSON but are to many readers of lines.
_SPLITS_LINES: Final = re.compile("[\u0085\u2028\u2029]")


def write_csv(
    columns: Sequence[str], rows: Iterable[Fields], file: IO[bytes], guard: CellGuard
) -> int:
    """Write UTF-8 CSV with a header; None is an empty cell."""
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text)  # ends lines with \r\n, so that a lone \r in a cell is quoted too
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow([guard(v) if isinstance(v, str) else v for v in row.values()])
        count += 1
    text.detach()
    return count


def write_jsonl(rows: Iterable[Fields], file: IO[bytes]) -> int:
    """Write one JSON object a line; every text comes back equal."""
    count = 0
    for row in rows:
        file.write(_json_line(row))
        count += 1
    return count


def _json_line(row: Fields) -> bytes:
    try:
        raw = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a character: kept, as an escape
        return json.dumps(row).encode("ascii") + b"\n"
    if b"\xe2\x80" in raw or b"\xc2\x85" in raw:
        text = _SPLITS_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", raw.decode("utf-8"))
        return text.encode("utf-8")
    return raw


class _ArrowTable(Protocol):
    def from_pylist(self, mapping: list[Fields], schema: object) -> object: ...


class _Arrow(Protocol):
    """What is used of pyarrow, which has no types of its own."""

    @property
    def Table(self) -> _ArrowTable: ...  # noqa: N802
    def schema(self, fields: list[tuple[str, str]]) -> object: ...


class _Writer(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def write_table(self, table: object) -> None: ...


class _ArrowParquet(Protocol):
    def ParquetWriter(self, where: IO[bytes], schema: object) -> _Writer: ...  # noqa: N802


def write_parquet(
    columns: Sequence[str], rows: Iterable[Fields], file: IO[bytes], guard: CellGuard
) -> int:
    """Write Parquet, one row group a batch. Needs pyarrow, which the caller has checked."""
    arrow = cast(_Arrow, import_module("pyarrow"))
    parquet = cast(_ArrowParquet, import_module("pyarrow.parquet"))
    schema = arrow.schema([(name, _NUMBERS.get(name, "string")) for name in columns])
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in _batches(rows):
            clean = [_encodable(row, guard) for row in batch]
            writer.write_table(arrow.Table.from_pylist(clean, schema=schema))
            count += len(clean)
    return count


def _batches(rows: Iterable[Fields]) -> Iterator[list[Fields]]:
    source = iter(rows)
    while batch := list(islice(source, _BATCH)):
        yield batch


def _encodable(row: Fields, guard: CellGuard) -> Fields:
    return {k: guard.encodable(v) if isinstance(v, str) else v for k, v in row.items()}
