"""Files of labels, read with every doubt named.

A file is CSV (`.tsv`: tabs) with a header that names at least `id` and `label`, or JSONL with these
keys. A later row with an empty label withdraws an earlier one: nothing is ever rewritten.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import orjson

from executors.errors import LabelsError
from rlm.labels import Label
from rlm.render.spreadsheet import restored

__all__ = ["COLUMNS", "delimiter_of", "header_of", "read_labels"]

COLUMNS: Final = ("id", "label", "by", "at", "weight")
_HINT: Final = "a labels file has the columns id,label and may have by,at,weight"


def read_labels(path: str | Path) -> list[Label]:
    """Return the labels of a file, in the order of their first rows; withdrawn ones are left out.

    Raises:
        LabelsError: no such file, no such columns, a row that is cut, or one id with two labels;
            the message names file and line.
    """
    file = Path(path)
    found: dict[str, tuple[Label, int]] = {}
    for row in _rows(file):
        label = row.label
        if not label.label:
            found.pop(label.id, None)
            continue
        earlier = found.get(label.id)
        if earlier is None:
            found[label.id] = (label, row.line)
        elif earlier[0].label.strip().casefold() != label.label.strip().casefold():
            raise LabelsError(
                f"record {label.id!r} is labelled both {earlier[0].label!r} and {label.label!r}",
                where=f"{file}:{earlier[1]} and {file}:{row.line}",
                hint="keep one of the two lines",
            )
    return [label for label, _ in found.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    line: int
    label: Label


def _rows(file: Path) -> Iterator[_Row]:
    text = _text_of(file)
    if file.suffix.lower() in {".jsonl", ".ndjson"}:
        return _json_rows(file, text)
    return _csv_rows(file, text)


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LabelsError(
            f"byte {error.object[error.start]:#04x} is not UTF-8",
            where=f"{file}, byte {error.start}",
            hint="save the labels file as UTF-8",
        ) from None
    except OSError as error:
        raise LabelsError(
            f"the labels file {str(file)!r} cannot be read: {error.strerror}", hint=_HINT
        ) from None


def _csv_rows(file: Path, text: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(file))
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cells):
                continue
            if header is None:
                header = header_of(file, cells)
                continue
            if len(cells) != len(header):
                raise LabelsError(
                    f"a row of {len(cells)} cell(s) under a header of {len(header)}",
                    where=f"{file}:{start}",
                    hint=_HINT,
                )
            texts = map(restored, cells)
            yield _Row(line=start, label=_label(file, start, dict(zip(header, texts, strict=True))))
    except csv.Error as error:
        raise LabelsError(f"no CSV: {error}", where=f"{file}:{line}", hint=_HINT) from None


def _json_rows(file: Path, text: str) -> Iterator[_Row]:
    for line, raw in enumerate(text.split("\n"), start=1):
        if not raw.strip():
            continue
        try:
            value: object = orjson.loads(raw)
        except ValueError as error:
            raise LabelsError(f"no JSON: {error}", where=f"{file}:{line}", hint=_HINT) from None
        if not isinstance(value, dict):
            raise LabelsError(
                f"no JSON object: {raw[:60]!r}", where=f"{file}:{line}", hint=_HINT
            ) from None
        cells = {
            key: "" if cell is None else _spelled(cell)
            for key, cell in cast(dict[str, object], value).items()
        }
        header_of(file, list(cells), line)
        yield _Row(line=line, label=_label(file, line, cells))


def _spelled(value: object) -> str:
    """Spell true and false as CSV exports do; a number keeps its digits."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def header_of(file: Path, cells: list[str], line: int = 1) -> list[str]:
    """Return the names of the columns in lower case.

    Raises:
        LabelsError: id or label are not among them exactly once.
    """
    header = [cell.strip().casefold() for cell in cells]
    for name in ("id", "label"):
        if header.count(name) != 1:
            raise LabelsError(
                f"{header.count(name)} column(s) named {name!r} among {header!r}",
                where=f"{file}:{line}",
                hint=_HINT,
            )
    return header


def _label(file: Path, line: int, cells: Mapping[str, str]) -> Label:
    if not cells["id"].strip():
        raise LabelsError(f"the id {cells['id']!r} is blank", where=f"{file}:{line}", hint=_HINT)
    return Label(
        id=cells["id"],
        label=cells["label"].strip(),
        by=cells.get("by", ""),
        at=cells.get("at", ""),
        weight=_weight(file, line, cells.get("weight", "")),
    )


def _weight(file: Path, line: int, cell: str) -> float | None:
    if not cell.strip():
        return None
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise LabelsError(
            f"the weight {cell!r} is no number above 0",
            where=f"{file}:{line}",
            hint="a weight says how many records a label stands for; leave it empty if unknown",
        )
    return weight


def delimiter_of(file: Path) -> str:
    """Return what stands between the cells of a file."""
    return "\t" if file.suffix.lower() in {".tsv", ".tab"} else ","
