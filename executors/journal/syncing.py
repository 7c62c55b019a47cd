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
_Job: TypeAlias = tuple[AbstractEventLoop, Done]

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
        self._named = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon: a run that is abandoned without having been closed must not hold up the exit.
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def sync(self, loop: AbstractEventLoop, done: Done) -> None:
        """Make durable what is written by now, then call `done` on the loop's thread."""
        self._jobs.put((loop, done))

    def end(self, loop: AbstractEventLoop, done: Done) -> None:
        """Close the file after what was asked for, call `done`, and let the thread end."""
        self._last = (loop, done)
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _tell(job, self._synced())
        os.close(self._fd)
        _tell(self._last, None)

    def _synced(self) -> OSError | None:
        try:
            if not self._named:
                sync_folder(self._folder)
                self._named = True
            _sync(self._fd)
        except OSError as error:
            return error
        return None


def _tell(job: _Job, fault: OSError | None) -> None:
    loop, done = job
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(done, fault)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
