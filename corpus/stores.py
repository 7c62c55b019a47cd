"""Stores of memories as sources and as searches: what is remembered, page by page, or recalled.

A store is the caller's: it names its entries by paths and gives their bodies. Read whole, it is a
corpus like any other; asked for the best entries, it is a search.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Final, Protocol, cast

from corpus.records import Record
from corpus.search.base import Hit, require_limit
from corpus.search.passages import passage
from corpus.search.words import read_query
from corpus.sources.base import SourceInfo, SourceWarnings
from corpus.sources.intake import encodable
from executors.errors import SourceError, ValidationError

__all__ = ["PAGE", "PagedStore", "RecallSearch", "RecallStore", "StoreSource"]

PAGE: Final = 200
"""Entries that are asked for at once."""
_KINDS: Final = ("fact", "episode")

Entries = Sequence[object]
"""Mappings or objects with `path`, `body` and, of what was recalled, `kind`; a body may be None."""


class PagedStore(Protocol):
    """A store that gives all its entries, a page at a time."""

    def enumerate(self, *, kind: str, offset: int, limit: int) -> Entries | Awaitable[Entries]:
        """Return the entries from the `offset`-th on, at most `limit`; none behind the last one."""
        ...


class RecallStore(Protocol):
    """A store that gives the entries which fit a query best."""

    def recall(self, query: str, *, kinds: Sequence[str], n: int) -> Entries | Awaitable[Entries]:
        """Return at most `n` entries, best first."""
        ...


class StoreSource:
    """All entries of a kind as records: the path is the id, the body the text, "" where it is None.

    It is an asynchronous iterable, so that it is given wherever a corpus is. A store that is no
    asynchronous one answers in the loop's own thread, a page at a time.

    Args:
        kind: of the entries.
        page: entries that are asked for at once.

    Raises:
        ValidationError: it is no store, or `page` is no number of entries.
    """

    in_loop = True

    def __init__(self, store: PagedStore, *, kind: str = "fact", page: int = PAGE) -> None:
        if not callable(getattr(store, "enumerate", None)):
            raise ValidationError(
                f"what has the type {type(store).__name__!r} is no store",
                hint="give an object with enumerate(kind=…, offset=…, limit=…)",
            )
        if type(page) is not int or page < 1:
            raise ValidationError(f"page={page!r}", hint="give a number of entries, such as 200")
        self._store = store
        self._kind = kind
        self._page = page
        said = f"entries of the kind {kind!r}, {page} at a time: the path is the id"
        self.info = SourceInfo(name=f"store of {kind}s", format="store", said=(said,))
        self.warnings = SourceWarnings()

    def __aiter__(self) -> AsyncIterator[Record]:
        return self.records()

    async def records(self) -> AsyncIterator[Record]:
        """Yield the entries in the store's order, to its end.

        Raises:
            SourceError: an entry is none, or the store gives the same page again and again.
        """
        self.warnings.clear()
        offset, former = 0, None
        while entries := await self._entries(offset):
            first = _field(entries[0], "path")
            if first is not None and first == former:
                raise SourceError(
                    f"the store gave the page that begins with {first!r} twice",
                    where=f"offset {offset}",
                    hint="enumerate has to begin at the offset and return nothing behind the end",
                )
            former = first
            for number, entry in enumerate(entries, offset):
                yield self._record(entry, number)
            offset += len(entries)

    async def _entries(self, offset: int) -> Entries:
        return await _answer(
            self._store.enumerate(kind=self._kind, offset=offset, limit=self._page)
        )

    def _record(self, entry: object, number: int) -> Record:
        where = f"{self._kind} {number + 1}"
        path, body = _field(entry, "path"), _field(entry, "body")
        if path is not None and not isinstance(path, str):
            raise SourceError(f"the path {path!r} is no text", where=where)
        if body is not None and not isinstance(body, str):
            raise SourceError(f"the body of {path!r} is a {type(body).__name__}", where=where)
        text = encodable(body or "", self.warnings, where)
        if "\0" in text:
            self.warnings.add("nul-characters", where)
        # Without a path it is a record without an id, which pass 0 refuses or names.
        return Record(id=encodable(path or "", self.warnings, where), text=text, where=where)


class RecallSearch:
    """A store's own recall as a search.

    Args:
        kinds: of the entries that are asked for.
    """

    def __init__(self, store: RecallStore, *, kinds: Sequence[str] = _KINDS) -> None:
        if not callable(getattr(store, "recall", None)):
            raise ValidationError(
                f"what has the type {type(store).__name__!r} recalls nothing",
                hint="give an object with recall(query, kinds=…, n=…)",
            )
        self._store = store
        self._kinds = tuple(kinds)

    @property
    def name(self) -> str:
        return "memory"

    @property
    def records(self) -> None:
        """Not known: a store is asked for its best alone."""
        return

    async def search(self, query: str, *, limit: int = 8) -> tuple[Hit, ...]:
        require_limit(limit)
        terms = read_query(query).terms
        entries = await _answer(self._store.recall(query, kinds=self._kinds, n=limit))
        return tuple(
            _hit(entry, rank, terms) for rank, entry in enumerate(entries[:limit], start=1)
        )


def _hit(entry: object, rank: int, terms: Sequence[str]) -> Hit:
    path, body, kind = (_field(entry, name) for name in ("path", "body", "kind"))
    if not isinstance(path, str):
        raise SourceError(f"what was recalled has the path {path!r}", where=f"hit {rank}")
    text = body if isinstance(body, str) else ""
    start, end = passage(text, terms)
    return Hit(
        id=path,
        ordinal=None,
        score=1 / rank,
        snippet=text[start:end],
        span=(start, end),
        length=len(text),
        how="memory",
        kind=kind if isinstance(kind, str) else "memory",
    )


async def _answer(given: Entries | Awaitable[Entries]) -> Entries:
    entries: object = await given if inspect.isawaitable(given) else given
    if isinstance(entries, Sequence) and not isinstance(entries, str | bytes):
        return entries
    raise SourceError(
        f"the store returned a {type(entries).__name__}",
        hint="return a list of entries with path and body, or an awaitable of one",
    )


def _field(entry: object, name: str) -> object:
    if isinstance(entry, Mapping):
        return cast("Mapping[str, object]", entry).get(name)
    return cast("object", getattr(entry, name, None))
