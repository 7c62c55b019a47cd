"""Paths that are no regular files: pipes, named or not, and the descriptors of this process.

Each holds its bytes once, so all who ask for one path share one stream and its head.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, cast
from weakref import WeakValueDictionary, finalize

from corpus.sources.origin import StreamOrigin, cannot_open, standard_input
from corpus.sources.packed import BUFFER
from executors.errors import SourceError

__all__ = ["piped"]

_WRITER_SECONDS = 10.0
_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+))/fd/(\d+)")
# By device and inode, as long as somebody holds the source.
_shared: WeakValueDictionary[tuple[int, int], StreamOrigin] = WeakValueDictionary()


def piped(path: str) -> StreamOrigin | None:
    """Return the stream of a path that can be read but once; None for files, folders and nothing.

    Raises:
        SourceError: a device, a pipe that nobody writes to, or no right to read.
    """
    number = _descriptor(path)
    try:
        found = Path(path).stat() if number is None else os.fstat(number)
    except (OSError, OverflowError, ValueError):
        return standard_input() if number == 0 else None
    if stat.S_ISDIR(found.st_mode):
        return None
    if number == 0:
        return standard_input()
    if stat.S_ISREG(found.st_mode):
        return None
    if (known := _shared.get((found.st_dev, found.st_ino))) is not None:
        return known
    raw = os.fdopen(_opened(path, number, found.st_mode), "rb", buffering=BUFFER)
    stream = StreamOrigin(raw, name=Path(path).name, path=path)
    # Reading leaves it open, as it does with standard input.
    finalize(stream, raw.close)
    _shared[found.st_dev, found.st_ino] = stream
    return stream


def _descriptor(path: str) -> int | None:
    """Return the descriptor of this process that a path stands for."""
    if path == "/dev/stdin":
        return 0
    named = _DESCRIPTOR.fullmatch(path)
    if named is None or (path[1:5] == "proc" and not _is_own(path)):
        return None
    return int(named[1])


def _is_own(path: str) -> bool:
    return path.split("/")[2] in ("self", "thread-self", str(os.getpid()))


def _opened(path: str, number: int | None, mode: int) -> int:
    try:
        if number is not None:
            # Opening it by its path fails for sockets; the caller's own stays open.
            return os.dup(number)
        if stat.S_ISFIFO(mode):
            return _with_writer(path)
        if path == os.devnull:
            return os.open(path, os.O_RDONLY)
    except OSError as error:
        raise cannot_open(path, error) from error
    raise SourceError(
        f"{path!r} is a {'socket' if stat.S_ISSOCK(mode) else 'device'}, which is not read",
        hint="name a file, a folder or a pipe, or - for standard input",
    )


def _with_writer(path: str) -> int:
    """Open a named pipe; that waits for a writer, so another thread does it.

    Raises:
        OSError: no right to read.
        SourceError: nobody writes.
    """
    answers: SimpleQueue[int | OSError] = SimpleQueue()

    def wait() -> None:
        try:
            answers.put(os.open(path, os.O_RDONLY))
        except OSError as error:
            answers.put(error)

    Thread(target=wait, daemon=True, name="rlm-pipe").start()
    try:
        answer = answers.get(timeout=_WRITER_SECONDS)
    except Empty:
        # To open the other end lets the thread go.
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            os.close(cast(int, answers.get()))
        raise SourceError(
            f"nobody writes to the pipe {path!r}",
            where=f"waited {_WRITER_SECONDS:g} s for its other end to be opened",
            hint="start what writes to it first, or name a file",
        ) from None
    if isinstance(answer, OSError):
        raise answer
    return answer
