"""Records that the caller holds: texts, pairs, mappings, records; lazily, also asynchronously."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from functools import partial
from itertools import chain, islice
from typing import cast

from corpus.records import Record
from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import HEAD, Columns, choose
from corpus.sources.intake import Intake, encodable
from corpus.sources.options import ReadOptions
from executors.errors import SourceError

__all__ = ["AsyncMemorySource", "Item", "MemorySource", "Opener", "close_async"]

Item = Record | str | tuple[object, object] | Mapping[str, object]
"""What one record may be given as; a plain text gets its position as its id."""

Opener = Callable[[], Iterable[Item] | AsyncIterable[Item] | Awaitable[object]]


_PAIR = Columns(id="id", texts=("text",), said=())


class _Maker:
    """Makes records of items once their first ones have told the columns."""

    def __init__(self, head: list[Item], options: ReadOptions) -> None:
        rows = [item for item in head if isinstance(item, Mapping)]
        named = options.id is not None or bool(options.text)
        if rows or (named and not head):
            self.columns = choose(rows, id=options.id, text=options.text, where="in memory")
        elif named and head:
            raise SourceError(
                "columns are named, but the first items have none",
                where="in memory",
                hint="give mappings, or leave out id and text",
            )
        else:
            self.columns = Columns(id=None, texts=(), said=(_say(head),))
        self.warnings = SourceWarnings()
        self.complaints = Complaints(self.warnings, options.on_bad)
        self._intake = Intake(self.columns, self.warnings, self.complaints)
        self._pairs = Intake(_PAIR, self.warnings, self.complaints)

    def info(self) -> SourceInfo:
        return SourceInfo(
            name="in memory",
            format="memory",
            id_column=self.columns.id,
            text_columns=self.columns.texts,
            said=self.columns.said,
        )

    def record(self, item: object, position: int) -> Record | None:
        where = f"item {position}"
        if isinstance(item, Record) and _is_sound(item):
            return self._made(item.id, item.text, item.where or where)
        if isinstance(item, str):
            return self._made(str(position), item, where)
        row = _row_of(item)
        if row is not None and self.columns.texts:
            return self._intake.record(row, where, str(position))
        pair = _pair_of(item)
        if pair is not None:
            return self._pairs.record(pair, where, "")
        self._refuse(item, where)
        return None

    def _refuse(self, item: object, where: str) -> None:
        self.complaints.add(
            where,
            f"what has the type {type(item).__name__!r} is no record",
            "give texts, (id, text) pairs, mappings or records",
        )

    def _made(self, id_: str, text: str, where: str) -> Record:
        if "\0" in text:
            self.warnings.add("nul-characters", where)
        return Record(
            id=encodable(id_, self.warnings, where),
            text=encodable(text, self.warnings, where),
            where=encodable(where, self.warnings, where),
        )


def _row_of(item: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", item) if isinstance(item, Mapping) else None


def _is_sound(record: Record) -> bool:
    """Whether id and text are strings, which nothing checks when a record is made."""
    made: tuple[object, object] = (record.id, record.text)
    return isinstance(made[0], str) and isinstance(made[1], str)


def _pair_of(item: object) -> dict[str, object] | None:
    if not isinstance(item, tuple | list):
        return None
    pair = cast("Sequence[object]", item)
    return {"id": pair[0], "text": pair[1]} if len(pair) == 2 else None


def _say(head: list[Item]) -> str:
    match head[0] if head else None:
        case Record():
            return "records as given"
        case str():
            return "texts as given: ids are made from positions"
        case None:
            return "nothing given"
        case _:
            return "pairs of id and text as given"


class MemorySource:
    """An iterable of the caller's; read once when it is an iterator."""

    in_loop = True

    def __init__(
        self,
        items: Iterable[Item],
        options: ReadOptions,
    ) -> None:
        self._once = iter(items) is items
        self._items: Iterable[Item] | None = items
        iterator = iter(items)
        head = list(islice(iterator, HEAD))
        if self._once:
            self._items = chain(head, iterator)
        self._maker = partial(_Maker, head, options)
        maker = self._maker()
        self.info = maker.info()
        self.warnings = maker.warnings

    def records(self) -> Iterator[Record]:
        """Return the records in order.

        Raises:
            SourceError: an iterator was read before, or items are no records.
        """
        items = self._items
        if items is None:
            raise SourceError(
                "this iterator has been read before",
                hint="give a list, or a function that opens it",
            )
        if self._once:
            self._items = None
        maker = self._maker()
        self.warnings = maker.warnings
        for position, item in enumerate(items, 1):
            record = maker.record(item, position)
            if record is not None:
                yield record
        maker.complaints.settle()


class AsyncMemorySource:
    """An asynchronous iterable, or a function that returns an iterable of either kind."""

    in_loop = True

    def __init__(
        self,
        items: AsyncIterable[Item] | Opener,
        options: ReadOptions,
    ) -> None:
        self._items = items
        self._options = options
        self.info = SourceInfo(name="in memory", format="memory")
        self.warnings = SourceWarnings()

    async def records(self) -> AsyncIterator[Record]:
        """Yield the records in order; `info` is complete from the first one on."""
        items = await _opened(self._items)
        try:
            async with aclosing(self._made(items)) as made:
                async for record in made:
                    yield record
        finally:
            if items is not self._items:  # an iterator of the caller's is the caller's to close
                await close_async(items)

    async def _made(self, items: AsyncIterator[Item]) -> AsyncGenerator[Record]:
        head = [item async for item in _first(items, HEAD)]
        maker = _Maker(head, self._options)
        self.info, self.warnings = maker.info(), maker.warnings
        position = 0
        for position, item in enumerate(head, 1):
            if (record := maker.record(item, position)) is not None:
                yield record
        async for item in items:
            position += 1
            if (record := maker.record(item, position)) is not None:
                yield record
        maker.complaints.settle()


async def close_async(items: AsyncIterator[object]) -> None:
    """Close an asynchronous generator that may not have run to its end."""
    if isinstance(items, AsyncGenerator):
        await cast("AsyncGenerator[object]", items).aclose()


async def _opened(items: AsyncIterable[Item] | Opener) -> AsyncIterator[Item]:
    opened = cast("object", items if isinstance(items, AsyncIterable) else items())
    if inspect.isawaitable(opened):
        opened = cast("object", await opened)
    if isinstance(opened, AsyncIterable):
        return aiter(cast("AsyncIterable[Item]", opened))
    if isinstance(opened, Iterable) and not isinstance(opened, str | bytes):
        return _walk(cast("Iterable[Item]", opened))
    raise SourceError(
        f"the function returned a {type(opened).__name__}",
        hint="return an iterable of texts, pairs, mappings or records",
    )


async def _walk(items: Iterable[Item]) -> AsyncIterator[Item]:
    for item in items:
        yield item


async def _first(items: AsyncIterator[Item], number: int) -> AsyncIterator[Item]:
    for _ in range(number):
        try:
            yield await anext(items)
        except StopAsyncIteration:
            return
