"""One append-only file a process: the place where lines become durable.

All writing happens on the loop's thread, in whole lines; a thread waits for the disk. A commit
starts whenever none is running and takes all that is written by then: no timer, so that a lone
call waits for one commit and many calls share one. Lines that nobody waits for ride along.

Once anything fails nothing more is written: what stands at the end may be half a line, and an
operating system that failed to write once does not say again what it lost.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import socket
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Final

import anyio

from executors.errors import DiskFault
from executors.journal.syncing import Syncer

__all__ = ["Segment", "host_name"]

_WRITES: Final = 1 << 20  # bytes that wait at most before they are written without being asked
_PATIENCE: Final = 60.0  # seconds that the last commit may take


class Segment:
    """The segment of this process. Its file is made by the first line.

    Args:
        folder: the `journal` folder of a run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = f"{host_name()}-{os.getpid()}-{time.time_ns()}.jsonl"
        self._fd = -1
        self._syncer: Syncer | None = None
        self._buffer: list[bytes] = []
        self._written = 0
        self._end = 0
        self._waiting: list[Future[None]] = []
        self._committing: list[Future[None]] | None = None
        self._started = False
        self._fault: DiskFault | None = None
        self.before: Callable[[], None] | None = None
        """Called before each commit, to write what belongs beside it; raises DiskFault."""

    # ---------------------------------------------------------------- lines

    def put(self, line: bytes) -> int:
        """Take a line for the next write; return where it begins.

        Raises:
            DiskFault: something could not be written before.
        """
        if self._fault is not None:
            raise copy(self._fault)
        begin = self._end
        self._buffer.append(line)
        self._end = begin + len(line)
        if self._end - self._written > _WRITES:
            self.write()
        return begin

    def write(self) -> None:
        """Hand all lines to the operating system: they outlive the process, not the machine.

        Raises:
            DiskFault: they could not be written.
        """
        if self._fault is not None:
            raise copy(self._fault)
        lines = self._buffer
        if not lines:
            return
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        try:
            if self._fd < 0:
                self._make()
            written = os.write(self._fd, data)
            while written < len(data):  # the rest, or the reason why not
                written += os.write(self._fd, data[written:])
        except OSError as error:
            raise self.fail(error) from error
        lines.clear()
        self._written += len(data)

    def durable(self) -> Future[None]:
        """Return what is done once all lines that were put by now are durable.

        Whoever stops waiting for it loses nothing: the commit goes on.
        """
        future: Future[None] = asyncio.get_running_loop().create_future()
        self.commit(future)
        return future

    def commit(self, future: Future[None]) -> None:
        """Resolve a future once all lines that were put by now are durable."""
        self._waiting.append(future)
        if self._committing is None and not self._started:
            self._started = True
            loop = future.get_loop()
            loop.call_soon(self._start, loop)  # those who come in the same turn share the commit

    def read(self, begin: int, length: int) -> bytes:
        """Return lines of this segment that were put before."""
        if begin + length > self._written:
            self.write()
        try:
            return os.pread(self._fd, length, begin)
        except OSError as error:
            raise self.fail(error) from error

    async def aclose(self) -> None:
        """Write and commit what is left, then end the thread and close the file.

        Raises:
            DiskFault: what was left could not be written.
        """
        try:
            if self._fault is None:
                self.write()
                with anyio.move_on_after(_PATIENCE, shield=True):
                    await self.durable()
        finally:
            self._fault = self._fault or DiskFault("the journal is closed", where=self.name)
            await self._close()

    async def _close(self) -> None:
        syncer, self._syncer, self._fd = self._syncer, None, -1
        if syncer is None:
            return
        loop = asyncio.get_running_loop()
        closed: Future[None] = loop.create_future()
        syncer.end(loop, lambda _: _resolve(closed))
        with anyio.move_on_after(_PATIENCE, shield=True):
            await closed

    # ---------------------------------------------------------------- commits

    def _start(self, loop: AbstractEventLoop) -> None:
        self._started = False
        if self._committing is not None:
            return
        try:
            if self.before is not None:
                self.before()
            self.write()
        except DiskFault as fault:
            self._refuse(fault)
            return
        self._committing, self._waiting = self._waiting, []
        if self._syncer is None:  # nothing was ever put
            self._done(loop, None)
        else:
            self._syncer.sync(loop, lambda error: self._done(loop, error))

    def _done(self, loop: AbstractEventLoop, error: OSError | None) -> None:
        done, self._committing = self._committing or [], None
        if error is not None:
            self._waiting = done + self._waiting
            self._refuse(self.fail(error))
            return
        if self._waiting:
            self._start(loop)
        for future in done:
            _resolve(future)

    def _refuse(self, fault: DiskFault) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_exception(copy(fault))

    def fail(self, error: OSError) -> DiskFault:
        """Write nothing any more; return what everybody is told from now on."""
        if self._fault is None:
            self._fault = DiskFault(
                f"the journal of the run cannot be written: {error.strerror or error}",
                where=str(error.filename or self._folder / self.name),
            )
        return copy(self._fault)

    # ---------------------------------------------------------------- the file

    def _make(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(self._folder / self.name, flags, 0o600)
        # Says for as long as the process lives that its segment is not to be repaired.
        with suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._syncer = Syncer(self._fd, self._folder)


def _resolve(future: Future[None]) -> None:
    if not future.done():  # whoever waited may have gone
        future.set_result(None)


def host_name() -> str:
    """Return the name of this machine, as it may stand in a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", socket.gethostname()) or "host"
