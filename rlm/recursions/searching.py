"""The search over the corpus of a run: by words, and by meaning where an encoder is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from corpus.search import Searcher, open_search
from corpus.shelf import Once
from corpus.spool import Spool
from executors.errors import MissingExtra

if TYPE_CHECKING:
    from executors.models.encoders.cache import CachedEncoder

__all__ = ["Searching"]

_ENCODED: Final = 5_000
"""Records up to which a search by meaning is worth the seconds that encoding them takes."""


class Searching:
    """Opened when it is first asked for, once a run.

    Args:
        fresh: derived files are built anew, since they were made elsewhere.
    """

    def __init__(self, spool: Spool, directory: Path, *, fresh: bool) -> None:
        self._spool = spool
        self._directory = directory
        self._fresh = fresh
        self._encoder: CachedEncoder | None = None
        self.open: Once[Searcher] = Once(self._opened)
        """Returns what searches."""

    async def _opened(self) -> Searcher:
        if len(self._spool) <= _ENCODED:
            self._encoder = await anyio.to_thread.run_sync(_encoder)
        return await open_search(
            self._spool, self._directory, encoder=self._encoder, fresh=self._fresh
        )

    async def aclose(self) -> None:
        """Let go of the encoder."""
        if self._encoder is not None:
            await anyio.to_thread.run_sync(self._encoder.close)


def _encoder() -> CachedEncoder | None:
    """Return the default encoder with the user's cache; None where it is not installed."""
    # numpy and the encoder's run time load only where something is searched.
    from executors.models.encoders.cache import CachedEncoder, default_cache_path
    from executors.models.encoders.load import load_encoder

    try:
        return CachedEncoder(load_encoder("encoder"), default_cache_path())
    except MissingExtra:
        return None
