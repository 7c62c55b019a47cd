"""Parquet files and Arrow tables, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import HEAD, choose
from corpus.sources.options import ReadOptions
from corpus.sources.origin import Origin
from corpus.sources.rows import Place, RowSource
from executors.errors import MissingExtra, SourceError

__all__ = ["ArrowTable", "as_table", "open_arrow", "open_parquet"]

_BATCH = 1_000


class _Array(Protocol):
    def to_pylist(self) -> list[object]: ...
    def cast(self, target_type: str) -> _Array: ...


class _Batch(Protocol):
    @property
    def num_rows(self) -> int: ...
    def column(self, i: str, /) -> _Array: ...


class _Schema(Protocol):
    @property
    def names(self) -> list[str]: ...


class ArrowTable(Protocol):
    """What is used of an Arrow table."""

    @property
    def column_names(self) -> list[str]: ...
    def select(self, columns: Sequence[str], /) -> ArrowTable: ...
    def to_batches(self, *, max_chunksize: int) -> list[_Batch]: ...


class _ParquetFile(Protocol):
    @property
    def schema_arrow(self) -> _Schema: ...
    def iter_batches(self, *, batch_size: int, columns: Sequence[str]) -> Iterator[_Batch]: ...
    def close(self) -> None: ...


def as_table(stream: object) -> ArrowTable:
    """Return what offers its rows as an Arrow stream as a table.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    # Optional; whoever offers a stream may do so without it.
    try:
        arrow = import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra(extra="parquet", needed_for="reading an Arrow stream") from error
    return cast(ArrowTable, arrow.table(stream))


def open_arrow(table: ArrowTable, options: ReadOptions) -> RowSource:
    """Open a table in memory.

    Raises:
        SourceError: a column cannot be told.
    """
    names = table.column_names
    head = _dicts(table.to_batches(max_chunksize=HEAD)[:1], names)
    columns = choose(head, names, id=options.id, text=options.text, where="table")

    def places(_: SourceWarnings, __: Complaints) -> Iterator[Place]:
        chosen = table.select(list(columns.wanted)).to_batches(max_chunksize=_BATCH)
        for number, row in enumerate(_rows(chosen, columns.wanted), 1):
            yield f"row {number}", str(number), row

    info = SourceInfo(
        name="table",
        format="arrow",
        id_column=columns.id,
        text_columns=columns.texts,
        said=columns.said,
    )
    return RowSource(info=info, columns=columns, rows=places, on_bad=options.on_bad)


def open_parquet(
    name: str, origins: Callable[[SourceWarnings], Iterable[Origin]], options: ReadOptions
) -> RowSource:
    """Open Parquet files of the same columns; the first one decides them.

    Raises:
        MissingExtra: pyarrow is not installed.
        SourceError: a file cannot be read, or a column cannot be told.
    """
    parquet = _parquet(f"reading {name!r}")
    first, *others = origins(SourceWarnings())
    with _Opened(parquet, first) as file:
        names = file.schema_arrow.names
        head = _dicts(file.iter_batches(batch_size=HEAD, columns=names), names)
    columns = choose(head, names, id=options.id, text=options.text, where=name)

    def places(warnings: SourceWarnings, _: Complaints) -> Iterator[Place]:
        for origin in origins(warnings):
            with _Opened(parquet, origin) as file:
                _require(file.schema_arrow.names, columns.wanted, origin.name)
                batches = file.iter_batches(batch_size=_BATCH, columns=list(columns.wanted))
                for number, row in enumerate(_rows(batches, columns.wanted), 1):
                    made = f"{origin.name}:{number}" if others else str(number)
                    yield f"{origin.name}:row {number}", made, row

    info = SourceInfo(
        name=name,
        format="parquet",
        id_column=columns.id,
        text_columns=columns.texts,
        said=columns.said,
        origins=(name,) if others else (first.path,),
    )
    return RowSource(info=info, columns=columns, rows=places, on_bad=options.on_bad)


class _Opened:
    """A Parquet file while it is read; what Arrow raises becomes ours."""

    def __init__(self, parquet: ModuleType, origin: Origin) -> None:
        self._parquet = parquet
        self._origin = origin
        self._file: _ParquetFile | None = None

    def __enter__(self) -> _ParquetFile:
        try:
            self._file = cast(_ParquetFile, self._parquet.ParquetFile(self._origin.path))
        except (ValueError, OSError) as error:
            raise self._fault(error) from error
        return self._file

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._file is not None:
            self._file.close()
        if isinstance(error, ValueError | OSError):
            raise self._fault(error) from error

    def _fault(self, error: ValueError | OSError) -> SourceError:
        return SourceError(
            f"{self._origin.name!r} cannot be read as Parquet: {error}",
            hint="check that it is whole and not packed",
        )


def _require(names: Sequence[str], wanted: Sequence[str], where: str) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise SourceError(
            f"no column {missing[0]!r}",
            where=where,
            hint=f"the columns are: {', '.join(map(repr, names[:30]))}",
        )


def _dicts(batches: Iterable[_Batch], names: Sequence[str]) -> list[Mapping[str, object]]:
    """Return the first rows; columns whose name stands twice cannot be read by it."""
    once = [name for name in names if names.count(name) == 1]
    return list(_rows(batches, once, most=1))


def _rows(
    batches: Iterable[_Batch], names: Sequence[str], *, most: int | None = None
) -> Iterator[Mapping[str, object]]:
    for index, batch in enumerate(batches):
        if index == most:
            return
        cells = [_cells(batch.column(name)) for name in names]
        for row in zip(*cells, strict=True):
            yield dict(zip(names, row, strict=True))


def _cells(column: _Array) -> list[object]:
    """Return Python values; strings that are no UTF-8 keep their bytes as halves of pairs."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast("binary").to_pylist()
        return [
            cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell
            for cell in raw
        ]


def _parquet(needed_for: str) -> ModuleType:
    # Optional, and heavy: it loads once a path and its format are known to be right.
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra(extra="parquet", needed_for=needed_for) from error
