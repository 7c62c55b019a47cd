"""Appending labels to a file, so that each one survives a crash."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from types import TracebackType
from typing import Self

from executors.clock import Clock, SystemClock
from executors.errors import LabelsError
from rlm.labelling.file import COLUMNS, delimiter_of, header_of, read_labels
from rlm.labels import Label
from rlm.render.spreadsheet import CellGuard

__all__ = ["LabelFile"]


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

    def add(self, id_: str, label: str, *, weight: float | None = None) -> Label:
        """Append a label and return it once it is on disk."""
        at = self._clock.now().astimezone(UTC).isoformat(timespec="seconds")
        shown = "" if weight is None else f"{weight:g}"
        made = Label(id=id_, label=label, by=self.by, at=at, weight=float(shown) if shown else None)
        self._append({"id": id_, "label": label, "by": self.by, "at": at, "weight": shown})
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
            self._write(COLUMNS)
            return list(COLUMNS)
        header = header_of(self.path, _first_row(self.path, raw))
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
        csv.writer(text, delimiter=delimiter_of(self.path)).writerow(cells)
        self._file.write(text.getvalue().encode())
        self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _first_row(file: Path, raw: bytes) -> list[str]:
    text = raw.decode("utf-8-sig", "replace")
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(file)), [""])
