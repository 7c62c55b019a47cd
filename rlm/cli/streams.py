"""Standard streams that may be closed, full, or read by nobody.

What is told on standard error may be lost; a run never ends for it. A result that cannot be printed
is an error that says so, or the quiet end of a broken pipe.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO, cast

from executors.errors import OutputError, UsageError

if TYPE_CHECKING:
    # Buffers of bytes have this name for type checkers alone.
    from _typeshed import ReadableBuffer

__all__ = ["own_streams"]

_OUT, _ERR = 1, 2
# A message is short; what a terminal or a pipe takes at once is more.
_BUFFER: Final = 65_536


def own_streams() -> None:
    """Put streams of ours in the place of those that this process was started with.

    Streams that somebody put there, as tests and notebooks do, stay as they are.

    Raises:
        UsageError: standard output is closed.
    """
    # Python leaves None where a descriptor is closed; the type of a stream does not say so.
    closed = cast("TextIO | None", sys.stdout) is None
    _fill_gaps()
    encoding, err = _encoding(), _Lossy(_ERR, "wb", closefd=False)
    if sys.stderr is sys.__stderr__:
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(err, _BUFFER), encoding, "backslashreplace", line_buffering=True
        )
    if closed:
        sys.stdout = io.TextIOWrapper(io.BytesIO())
        raise UsageError(
            "standard output is closed, so no result could be printed",
            hint="send it somewhere, as in: rlm … > result.txt (or > /dev/null)",
        )
    if sys.stdout is sys.__stdout__:
        out = io.BufferedWriter(_Checked(_OUT, "wb", closefd=False), _BUFFER)
        sys.stdout = io.TextIOWrapper(out, encoding, "backslashreplace")


def _encoding() -> str:
    return getattr(sys.__stdout__, "encoding", None) or "utf-8"


def _fill_gaps() -> None:
    """Open what is closed of the descriptors 0, 1 and 2, or a file of the run would become one."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            found = os.open(os.devnull, os.O_RDWR)
            if found != descriptor:
                os.dup2(found, descriptor)
                os.close(found)


class _Lossy(io.FileIO):
    """A file that forgets what cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            written = super().write(data)
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written


class _Checked(io.FileIO):
    """A file that says once why it cannot be written, and then forgets: Python flushes again."""

    _broken = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._broken:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self._broken = True
            raise
        except OSError as error:
            self._broken = True
            raise OutputError(
                f"standard output cannot be written: {error.strerror or error}",
                hint="send it elsewhere; a run that was kept is shown by: rlm show RUN_DIR",
            ) from None
