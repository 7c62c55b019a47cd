"""A corpus within reach of tools: read once when it is first asked for, searchable when it is searched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Generic, Self, TypeVar

import anyio

from corpus.search.base import Searcher
from corpus.search.hybrid import open_search
from corpus.sources.base import Source
from corpus.spool import OnDuplicate, Spool, build_spool
from executors.models.encoders.base import Encoder

__all__ = ["Once", "Shelf"]

T = TypeVar("T")


class Once(Generic[T]):
    """A value that is made when it is first asked for, whoever asks, and once.

    A making that fails or is cancelled is nobody's: its caller hears of it, the next one tries again.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._lock = anyio.Lock()
        self._made: list[T] = []

    async def __call__(self) -> T:
        async with self._lock:
            if not self._made:
                self._made.append(await self._make())
            return self._made[0]


class Shelf:
    """One corpus for all tools of a run: `reading` a source, or `holding` what was read already.

    Args:
        spool: gives the records.
        folder: where the derived files of a search are kept; best the spool's own.
        encoder: searches by meaning too.
        fresh: derived files are built anew, since the folder was made elsewhere.
    """

    def __init__(
        self,
        spool: Callable[[], Awaitable[Spool]],
        folder: Path,
        *,
        encoder: Encoder | None = None,
        fresh: bool = False,
    ) -> None:
        self.spool = Once(spool)
        self.searcher: Once[Searcher] = Once(self._open)
        self._folder = folder
        self._encoder = encoder
        self._fresh = fresh

    @classmethod
    def reading(
        cls,
        source: Source,
        folder: Path,
        *,
        encoder: Encoder | None = None,
        on_duplicate: OnDuplicate = "refuse",
    ) -> Self:
        """Return the shelf of a source, which is read into a folder at the first use of any tool."""
        build = partial(build_spool, source, folder, on_duplicate=on_duplicate)
        return cls(build, folder, encoder=encoder)

    @classmethod
    def holding(
        cls, spool: Spool, folder: Path, *, encoder: Encoder | None = None, fresh: bool = False
    ) -> Self:
        """Return the shelf of a spool that somebody else opened, and closes."""

        async def held() -> Spool:
            return spool

        return cls(held, folder, encoder=encoder, fresh=fresh)

    async def _open(self) -> Searcher:
        spool = await self.spool()
        return await open_search(spool, self._folder, encoder=self._encoder, fresh=self._fresh)
