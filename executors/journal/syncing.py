"""The thread that waits for the disk, so that the loop never does."""

from __future__ import annotations

import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeAlias

__all__ = ["Syncer", "sync_folder"]

Done: TypeAlias = Callable[[OSError | None], None]

# Times and the like are not needed to read the file again; where there is no such call, all is sent.
_sync: Final = getattr(os, "fdatasync", os.fsync)


class Syncer:
    """Makes one file durable, again and again; closes it at the end.

    Args:
        fd: the file; owned from here on.
        folder: made durable first, so that the file's name is too.
    """

    def __init__(self, fd: int, folder: Path) -> None:
        self._fd = fd
        self._folder = folder
        self._jobs: SimpleQueue[tuple[AbstractEventLoop, Done] | None] = SimpleQueue()
        # A daemon: a run that is abandoned without having been closed must not hold up the exit.
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def sync(self, loop: AbstractEventLoop, done: Done) -> None:
        """Make durable what is written by now, then call `done` on the loop's thread."""
        self._jobs.put((loop, done))

    def end(self) -> None:
        """Let the thread end after what it was asked for."""
        self._jobs.put(None)

    def join(self) -> None:
        """Wait for the thread, which was told to end."""
        self._thread.join()

    def _work(self) -> None:
        named = False
        while (job := self._jobs.get()) is not None:
            loop, done = job
            fault: OSError | None = None
            try:
                if not named:
                    sync_folder(self._folder)
                    named = True
                _sync(self._fd)
            except OSError as error:
                fault = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(done, fault)
        os.close(self._fd)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
