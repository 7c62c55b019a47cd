"""Search by words: BM25 over a full-text index of SQLite.

Records that hold every term of a query come first. Where they are fewer than asked for, records that
hold some of them follow, and each hit says which of the two it is. Words that stand in a fifth of a
large corpus tell nothing apart and are passed over, unless the query has no others: so a question in
whole sentences is found by what it is about.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Self

import numpy as np
from anyio import to_thread

from corpus.search.base import Hit, How, require_limit
from corpus.search.index import ensure_index, open_index
from corpus.search.passages import passage
from corpus.search.words import Query, read_query
from corpus.spool import Spool
from executors.errors import RunDirError

__all__ = ["TermSearch", "shown"]

_FIND: Final = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?"

_Found = tuple[int, float, How]


class TermSearch:
    """Finds records of a spool by words. `open` makes one."""

    def __init__(self, spool: Spool, index: Path) -> None:
        self._spool = spool
        self._index = index

    @classmethod
    async def open(
        cls,
        spool: Spool,
        directory: Path,
        *,
        fresh: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Open the index of a spool in a folder, building it when it is not there.

        Args:
            fresh: build it whatever stands there: no file from elsewhere is opened.
            on_progress: is told how many records were read so far.

        Raises:
            RunDirError: it cannot be written.
            ConfigError: this Python's SQLite has no full-text search.
        """
        index = await ensure_index(spool, directory, fresh=fresh, on_progress=on_progress)
        return cls(spool, index)

    @property
    def name(self) -> str:
        return "words"

    @property
    def records(self) -> int:
        return len(self._spool)

    async def search(self, query: str, *, limit: int = 8) -> tuple[Hit, ...]:
        require_limit(limit)
        wanted = read_query(query)
        return await to_thread.run_sync(self._search, wanted, limit)

    def _search(self, query: Query, limit: int) -> tuple[Hit, ...]:
        found = self._find(query, limit)
        records = self._spool.read([ordinal for ordinal, _, _ in found])
        return tuple(
            shown(
                self._spool,
                ordinal,
                record.text,
                id_=record.id,
                score=score,
                how=how,
                terms=query.terms,
            )
            for (ordinal, score, how), record in zip(found, records, strict=True)
        )

    def _find(self, query: Query, limit: int) -> list[_Found]:
        """Return ordinal, score and how, best first."""
        try:
            with closing(open_index(self._index)) as file:
                common = _common(file)
                every = _rows(file, query.every(common), limit)
                some: list[tuple[int, float]] = []
                if len(every) < limit:
                    some = _rows(file, query.some(common), limit)
        except sqlite3.Error as error:
            raise RunDirError(
                f"the search index cannot be read: {error}",
                where=str(self._index),
                hint="delete the file: it is derived and built anew when asked for",
            ) from error
        held = {ordinal for ordinal, _ in every}
        rest = [(ordinal, rank) for ordinal, rank in some if ordinal not in held]
        return [*_marked(every, "all-words"), *_marked(rest, "some-words")][:limit]


def _rows(file: sqlite3.Connection, expression: str, limit: int) -> list[tuple[int, float]]:
    return file.execute(_FIND, (expression, limit)).fetchall()


def _common(file: sqlite3.Connection) -> frozenset[str]:
    rows: list[tuple[str]] = file.execute("SELECT word FROM common").fetchall()
    return frozenset(word for (word,) in rows)


def _marked(rows: Sequence[tuple[int, float]], how: How) -> list[_Found]:
    """Return rows with scores of which higher is better, and how they were found."""
    return [(ordinal, -rank, how) for ordinal, rank in rows]


def shown(
    spool: Spool, ordinal: int, text: str, *, id_: str, score: float, how: How, terms: Sequence[str]
) -> Hit:
    """Return a hit with the passage that shows it."""
    start, end = passage(text, terms)
    same = int(np.count_nonzero(spool.representative == spool.representative[ordinal]))
    return Hit(
        id=id_,
        ordinal=ordinal,
        score=score,
        snippet=text[start:end],
        span=(start, end),
        length=len(text),
        how=how,
        identical=same - 1,
    )
