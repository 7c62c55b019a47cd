"""Derived files on their way: each build writes its own draft, and the last one finished stays."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from anyio import move_on_after, to_thread

from executors.private import open_private

__all__ = ["drafted"]

_ABANDONED_SECONDS: Final = 24 * 3600.0
_CLEAN_UP_SECONDS: Final = 10.0


@asynccontextmanager
async def drafted(path: Path) -> AsyncGenerator[Path]:
    """Make an empty private file beside a path; it takes its place when the block ends well.

    Builders of the same file do not meet. What a killed one left goes after a day.

    Raises:
        OSError: it cannot be made or moved.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    await to_thread.run_sync(_begin, draft, path)
    try:
        yield draft
        await to_thread.run_sync(draft.replace, path)
    finally:
        # Bounded, since a full or vanished disk may not answer.
        with move_on_after(_CLEAN_UP_SECONDS, shield=True):
            await to_thread.run_sync(partial(draft.unlink, missing_ok=True), abandon_on_cancel=True)


def _begin(draft: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    oldest = time.time() - _ABANDONED_SECONDS
    for left in path.parent.glob(f"{path.name}.*.new"):
        with suppress(OSError):
            if left.stat().st_mtime < oldest:
                left.unlink()
    open_private(draft, "wb").close()
