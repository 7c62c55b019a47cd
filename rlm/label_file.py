"""Files of labels: read with every doubt named, appended so that each label survives a crash.

A file is CSV (`.tsv`: tabs) with a header that names at least `id` and `label`, or JSONL with these
keys. A later row with an empty label withdraws an earlier one: nothing is ever rewritten.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

import orjson

from executors.clock import Clock, SystemClock
from executors.errors import LabelsError
from rlm.labels import Label
from rlm.render.spreadsheet import CellGuard, restored

__all__ = ["LabelFile", "read_labels"]

_COLUMNS: Final = ("id", "label", "by", "at")
_HINT: Final = "a labels file has the columns id,label and may have by,at"


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
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(file))
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cells):
                continue
            if header is None:
                header = _header(file, cells)
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
        _header(file, list(cells), line)
        yield _Row(line=line, label=_label(file, line, cells))


def _spelled(value: object) -> str:
    """Spell true and false as CSV exports do; a number keeps its digits."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _header(file: Path, cells: list[str], line: int = 1) -> list[str]:
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
    )


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix.lower() in {".tsv", ".tab"} else ","


class LabelFile:
    """A CSV of labels that one person appends to; each row is on disk before `add` returns.

    The file is made when it does not exist. A last row that a crash cut short is cut off.

    Args:
        by: who labels.

    Raises:
        LabelsError: it is no labels file of ours, or somebody else is appending to it.
    """

    def __init__(self, path: str | Path, *, by: str, clock: Clock | None = None) -> None:
        self.path = Path(path)
        self.by = by
        self._clock = clock or SystemClock()
        self._guard = CellGuard()
        if self.path.suffix.lower() in {".jsonl", ".ndjson"}:
            raise LabelsError(
                f"labels are appended to CSV, not to {str(self.path)!r}",
                hint="name a .csv file with --labels",
            )
        try:
            self._file = self.path.open("a+b")
        except OSError as error:
            raise LabelsError(
                f"the labels file {str(self.path)!r} cannot be opened: {error.strerror}",
                hint="name a file that you may write to with --labels",
            ) from None
        try:
            self._header = self._take_over()
            self.known: tuple[Label, ...] = tuple(read_labels(self.path))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, id_: str, label: str) -> Label:
        """Append a label and return it once it is on disk."""
        at = self._clock.now().astimezone(UTC).isoformat(timespec="seconds")
        made = Label(id=id_, label=label, by=self.by, at=at)
        self._append({"id": id_, "label": label, "by": self.by, "at": at})
        return made

    def withdraw(self, id_: str) -> None:
        """Take the label of a record back."""
        self.add(id_, "")

    def _take_over(self) -> list[str]:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabelsError(
                f"somebody else is appending to {str(self.path)!r}",
                hint="wait for them, or name another file with --labels",
            ) from None
        self._file.seek(0)
        raw = self._file.read()
        if not raw.strip():
            self._write(_COLUMNS)
            return list(_COLUMNS)
        header = _header(self.path, _first_row(self.path, raw))
        if not raw.endswith(b"\n"):
            self._mend_tail(raw, len(header))
        return header

    def _mend_tail(self, raw: bytes, columns: int) -> None:
        """End the last row, or cut it off when a crash left only its beginning."""
        start = raw.rfind(b"\n") + 1
        while start and raw.count(b'"', 0, start) % 2:  # this line end stands inside a cell
            start = raw.rfind(b"\n", 0, start - 1) + 1
        if len(_first_row(self.path, raw[start:])) < columns:
            self._file.truncate(start)
        else:
            self._file.write(b"\r\n")
        self._sync()

    def _append(self, cells: Mapping[str, str]) -> None:
        self._write([self._safe(cells.get(name, "")) for name in self._header])

    def _safe(self, cell: str) -> str:
        return self._guard.inert(self._guard.encodable(cell))

    def _write(self, cells: tuple[str, ...] | list[str]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=_delimiter(self.path)).writerow(cells)
        self._file.write(text.getvalue().encode())
        self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _first_row(file: Path, raw: bytes) -> list[str]:
    text = raw.decode("utf-8-sig", "replace")
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(file)), [""])
