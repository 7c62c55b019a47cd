"""Data frames of pandas and polars, and all that offers an Arrow stream; nothing is imported here.

A frame comes from a library that is loaded already, so its own methods serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

from corpus.sources.arrow import ArrowTable, as_table, open_arrow
from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import HEAD, Columns, choose
from corpus.sources.options import ReadOptions
from corpus.sources.rows import Place, RowSource
from executors.errors import SourceError

__all__ = ["Frame", "frame_of", "open_frame"]

_BATCH = 1_000


class Frame(Protocol):
    """A data frame: it has columns, and its library says the rest."""

    @property
    def columns(self) -> Sequence[object]:
        """The columns, by name."""
        ...


def frame_of(source: object) -> object | None:
    """Return the source when it is a frame or a table, None when it is something else.

    Raises:
        SourceError: it is a frame of a kind that is not read as it is.
    """
    if _library(source) == "polars" and hasattr(source, "collect"):
        raise SourceError("a lazy frame holds no rows yet", hint="give frame.collect()")
    if _library(source) in ("pandas", "polars") and hasattr(source, "columns"):
        return source
    if hasattr(source, "__arrow_c_stream__") and not _is_series(source):
        return source
    if hasattr(source, "columns") and not isinstance(source, Mapping):
        # Iterating such a thing yields the names of its columns, which nobody wants counted.
        raise SourceError(
            f"a {type(source).__name__} of {_library(source)} is not read as it is",
            hint="give a pandas, polars or Arrow table, or rows as mappings",
        )
    return None


def open_frame(source: object, options: ReadOptions) -> RowSource:
    """Open what `frame_of` returned.

    Raises:
        SourceError: a column cannot be told.
    """
    match _library(source):
        case "pandas":
            return _open(_Pandas(cast("_PandasFrame", source)), options)
        case "polars":
            return _open(_Polars(cast("_PolarsFrame", source)), options)
        case "pyarrow" if hasattr(source, "column_names"):
            return open_arrow(cast(ArrowTable, source), options)
        case _:
            return open_arrow(as_table(source), options)


def _library(source: object) -> str:
    return type(source).__module__.partition(".")[0]


def _is_series(source: object) -> bool:
    return hasattr(source, "to_list") and not hasattr(source, "columns")


class _Reader(Protocol):
    name: str
    names: list[str]
    index: str | None

    def rows(self, names: Sequence[str]) -> Iterator[Mapping[str, object]]: ...


def _open(reader: _Reader, options: ReadOptions) -> RowSource:
    known = [*reader.names, *([reader.index] if reader.index else [])]
    once = [name for name in known if known.count(name) == 1]
    head = [row for row, _ in zip(reader.rows(once), range(HEAD), strict=False)]
    columns = choose(head, known, id=options.id, text=options.text, where=reader.name)
    if columns.id is None and reader.index is not None:
        said = ("ids are the frame's index", *columns.said[1:])
        columns = Columns(id=reader.index, texts=columns.texts, said=said)

    def places(_: SourceWarnings, __: Complaints) -> Iterator[Place]:
        for number, row in enumerate(reader.rows(columns.wanted), 1):
            yield f"row {number}", str(number), row

    info = SourceInfo(
        name=reader.name,
        format=reader.name.partition(" ")[0],
        id_column=columns.id,
        text_columns=columns.texts,
        said=columns.said,
    )
    return RowSource(info=info, columns=columns, rows=places, on_bad=options.on_bad, in_loop=True)


class _PandasSeries(Protocol):
    def astype(self, dtype: type[object], /) -> _PandasSeries: ...
    def notna(self) -> object: ...
    def where(self, cond: object, other: None, /) -> _PandasSeries: ...
    def tolist(self) -> list[object]: ...


class _PandasIndex(Protocol):
    @property
    def name(self) -> object: ...
    @property
    def nlevels(self) -> int: ...
    def to_series(self) -> _PandasSeries: ...


class _PandasFrame(Frame, Protocol):
    @property
    def index(self) -> _PandasIndex: ...
    @property
    def iloc(self) -> _Slices: ...
    def __len__(self) -> int: ...


class _Slices(Protocol):
    def __getitem__(self, key: object, /) -> object: ...


class _Pandas:
    def __init__(self, frame: _PandasFrame) -> None:
        self._frame = frame
        self.name = "pandas frame"
        self.names = [str(name) for name in frame.columns]
        self.index = _index_name(frame.index, self.names)

    def rows(self, names: Sequence[str]) -> Iterator[Mapping[str, object]]:
        for start in range(0, len(self._frame), _BATCH):
            some = cast("_PandasFrame", self._frame.iloc[start : start + _BATCH])
            cells = [_objects(self._column(some, name)) for name in names]
            for row in zip(*cells, strict=True):
                yield dict(zip(names, row, strict=True))

    def _column(self, frame: _PandasFrame, name: str) -> _PandasSeries:
        if name in self.names:
            return cast("_PandasSeries", frame.iloc[:, self.names.index(name)])
        return frame.index.to_series()


def _index_name(index: _PandasIndex, names: Sequence[str]) -> str | None:
    """Return what an index that says something is called, as a column."""
    if index.nlevels > 1 or _just_counts(index):
        return None
    name = "index" if index.name is None else str(index.name)
    return None if name in names else name


def _just_counts(index: _PandasIndex) -> bool:
    """Whether the index says no more than the number of the row."""
    start: object = getattr(index, "start", None)
    step: object = getattr(index, "step", None)
    return type(index).__name__ == "RangeIndex" and (start, step) == (0, 1)


def _objects(series: _PandasSeries) -> list[object]:
    """Return Python values, None for all that pandas calls missing."""
    return series.astype(object).where(series.notna(), None).tolist()


class _PolarsFrame(Frame, Protocol):
    def select(self, columns: Sequence[str], /) -> _PolarsFrame: ...
    def iter_rows(self, *, named: bool) -> Iterator[Mapping[str, object]]: ...


class _Polars:
    def __init__(self, frame: _PolarsFrame) -> None:
        self._frame = frame
        self.name = "polars frame"
        self.names = [str(name) for name in frame.columns]
        self.index: str | None = None

    def rows(self, names: Sequence[str]) -> Iterator[Mapping[str, object]]:
        return self._frame.select(list(names)).iter_rows(named=True)
