"""Results as files: one row a record, as CSV, JSONL or Parquet.

A file appears under its name when it is whole, or not at all: rows go to a neighbour that is
renamed at the end. Rows are streamed; nothing here grows with their number.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final, Literal, assert_never

from corpus.results import Ranked, Ranking, Row, Tally
from executors.errors import MissingExtra, OutputError, UsageError, ValidationError
from rlm.formats import Fields, write_csv, write_jsonl, write_parquet
from rlm.render.spreadsheet import CellGuard, restored

__all__ = [
    "FORMATS",
    "Format",
    "Target",
    "Written",
    "check_place",
    "check_target",
    "read_csv",
    "write_result",
    "write_text",
]

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: Final[tuple[Format, ...]] = ("csv", "jsonl", "parquet")

_ROW_COLUMNS: Final = (
    "ordinal", "id", "state", "label", "probability", "reason",
    "quote", "quote_start", "quote_end", "where",
)  # fmt: skip
_TELL_EVERY: Final = 4_096
_RANKED_COLUMNS: Final = ("rank", "id", "score", "where")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file that a result will be written to, checked before anything is spent."""

    path: Path
    format: Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, and what had to be changed for it."""

    path: Path
    rows: int
    formulas: int = 0
    """Cells that a spreadsheet would run and that got a leading apostrophe (CSV)."""
    replaced: int = 0
    """Cells with NUL or half a character, which the format cannot hold (CSV, Parquet)."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the file has to know, as sentences."""
        notes: list[str] = []
        if self.formulas:
            notes.append(
                f"{self.formulas:,} cell(s) start like a spreadsheet formula and were written "
                "with a leading apostrophe"
            )
        if self.replaced:
            notes.append(
                f"{self.replaced:,} cell(s) hold NUL or half a character, which this format "
                "cannot: written as U+2400 or U+FFFD (JSONL keeps them)"
            )
        return tuple(notes)


def check_target(
    path: str | Path, *, source: str | Path | None = None, labels: str | Path | None = None
) -> Target:
    """Check, before anything is spent, that a result can be written to a path.

    Raises:
        ValidationError: an ending that is no format of ours.
        MissingExtra: Parquet without its package.
        UsageError: no such folder, no right to write, a folder, the source itself or the labels.
    """
    target = Path(path)
    format_ = _format_of(target)
    if format_ is None:
        raise ValidationError(
            f"the output {str(target)!r} ends in {target.suffix!r}",
            where="--out",
            hint="choose an ending of: " + ", ".join(f".{known}" for known in FORMATS),
        )
    if format_ == "parquet" and find_spec("pyarrow") is None:
        raise MissingExtra(extra="parquet", needed_for=f"the output {str(target)!r}")
    check_place(target, source=source, labels=labels)
    return Target(path=target, format=format_)


def check_place(
    target: Path, *, source: str | Path | None = None, labels: str | Path | None = None
) -> None:
    """Check that a file can be written to a path, and that it is none of those that are read.

    Raises:
        UsageError: no such folder, no right to write, a folder, the source itself or the labels.
    """
    _check_place(target)
    for what, taken in (("the source", source), ("the labels file", labels)):
        if taken is not None and _same(target, Path(taken)):
            raise UsageError(
                f"the output {str(target)!r} is {what} itself",
                hint="name another file: an output replaces what has its name",
            )


def write_result(
    result: Tally | Ranking, target: Target, *, on_rows: Callable[[int], None] | None = None
) -> Written:
    """Write one row a record, whole or not at all; an older file of that name is replaced.

    Columns of a Tally: ordinal, id, state, label, probability, reason, quote, quote_start,
    quote_end, where. Columns of a Ranking: rank, id, score, where.

    Args:
        on_rows: is told every few thousand rows how many more were written.

    Raises:
        OutputError: the disk is full, or the folder went away; an older file is as it was.
    """
    tell = on_rows or _untold
    if isinstance(result, Tally):
        return _write(_ROW_COLUMNS, _told(map(_of_row, result.rows()), tell), target)
    return _write(_RANKED_COLUMNS, _told(map(_of_ranked, result.rows()), tell), target)


def write_text(text: str, path: Path) -> Written:
    """Write a text as a file, whole or not at all; it ends with the end of a line.

    Raises:
        OutputError: the disk is full, or the folder went away; an older file is as it was.
    """
    ended = text if text.endswith("\n") else f"{text}\n"
    try:
        with _whole_or_not(path) as file:
            file.write(ended.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _unwritable(path, error) from error
    return Written(path=path, rows=ended.count("\n"))


def read_csv(path: str | Path) -> Iterator[dict[str, str | None]]:
    """Yield the rows of a CSV of ours as they were before cells were guarded; "" is None."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {name: restored(cell) if cell else None for name, cell in row.items()}


def _of_row(row: Row) -> Fields:
    quote = row.quote
    return {
        "ordinal": row.ordinal,
        "id": row.id,
        "state": row.state,
        "label": row.label,
        "probability": row.probability,
        "reason": row.reason or None,
        "quote": quote.text if quote else None,
        "quote_start": quote.start if quote else None,
        "quote_end": quote.end if quote else None,
        "where": row.where,
    }


def _of_ranked(row: Ranked) -> Fields:
    return {"rank": row.rank, "id": row.id, "score": row.score, "where": row.where}


def _told(rows: Iterable[Fields], tell: Callable[[int], None]) -> Iterator[Fields]:
    since = 0
    for row in rows:
        yield row
        since += 1
        if since == _TELL_EVERY:
            tell(since)
            since = 0
    tell(since)


def _untold(_: int) -> None:
    """Nobody wants to know."""


def _write(columns: tuple[str, ...], rows: Iterable[Fields], target: Target) -> Written:
    guard = CellGuard()
    try:
        with _whole_or_not(target.path) as file:
            count = _format(columns, rows, target.format, file, guard)
    except OSError as error:
        raise _unwritable(target.path, error) from error
    return Written(path=target.path, rows=count, formulas=guard.formulas, replaced=guard.replaced)


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"the output {str(path)!r} cannot be written: {error.strerror or error}",
        where="--out",
        hint="make room, or name another place",
    )


def _format(
    columns: tuple[str, ...],
    rows: Iterable[Fields],
    format_: Format,
    file: IO[bytes],
    guard: CellGuard,
) -> int:
    match format_:
        case "csv":
            return write_csv(columns, rows, file, guard)
        case "jsonl":
            return write_jsonl(rows, file)
        case "parquet":
            return write_parquet(columns, rows, file, guard)
        case _:
            assert_never(format_)


def _check_place(target: Path) -> None:
    if target.exists() and not target.is_file():
        raise UsageError(
            f"the output {str(target)!r} exists and is no regular file",
            hint="name a file, new or to be replaced",
        )
    folder = target.resolve().parent
    if not folder.is_dir():
        raise UsageError(
            f"the output {str(target)!r} cannot be written: no folder {str(folder)!r}",
            hint="make the folder, or name another place",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"the output {str(target)!r} cannot be written: no right to write in {str(folder)!r}",
            hint="name another place",
        )


def _format_of(target: Path) -> Format | None:
    ending = target.suffix.lower()
    for known in FORMATS:
        if ending == f".{known}":
            return known
    return None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of the two does not exist, or is no path at all
        return False


@contextmanager
def _whole_or_not(path: Path) -> Generator[IO[bytes]]:
    """Yield a file that takes its name, durably, only when the block ends well."""
    final = path.resolve()  # a link keeps standing; what it leads to is replaced
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
