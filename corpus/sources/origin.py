"""Bytes: files and standard input, unpacked by what they hold and not by what they are called."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from corpus.sources.base import sound
from corpus.sources.packed import BUFFER, copied, unpacked, unpacking
from executors.errors import SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "FileOrigin",
    "Origin",
    "StreamOrigin",
    "cannot_open",
    "standard_input",
]


class Origin(Protocol):
    """Where bytes come from."""

    @property
    def name(self) -> str:
        """What places are called after: the file's name."""
        ...

    @property
    def path(self) -> str:
        """The path as given; `-` for standard input."""
        ...

    def head(self, size: int) -> bytes:
        """Return the first bytes, unpacked, without using them up."""
        ...

    def open(self) -> BinaryIO:
        """Return the unpacked bytes from the start."""
        ...


class FileOrigin:
    """A regular file; gzip and zstd are unpacked whatever the file is called."""

    __slots__ = ("name", "path")

    def __init__(self, path: str | Path, *, name: str | None = None) -> None:
        self.path = str(path)
        self.name = sound(Path(path).name if name is None else name)

    def head(self, size: int) -> bytes:
        """Return the first bytes, unpacked."""
        with self.open() as stream, unpacking(self.name):
            return stream.read(size)

    def open(self) -> BinaryIO:
        """Return the unpacked bytes from the start."""
        try:
            raw = Path(self.path).open("rb", buffering=BUFFER)  # noqa: SIM115 - the caller closes it
        except OSError as error:
            raise cannot_open(self.path, error) from error
        return unpacked(raw)


class StreamOrigin:
    """A stream that can be read once; its head is kept for whoever looks before reading."""

    __slots__ = ("__weakref__", "_head", "_opened", "_raw", "_stream", "name", "path")

    def __init__(self, stream: BinaryIO, *, name: str, path: str = "-") -> None:
        self.name = sound(name)
        self.path = path
        self._raw = stream
        self._stream: BinaryIO | None = None
        self._head = b""
        self._opened = False

    def head(self, size: int) -> bytes:
        """Return the first bytes, unpacked; they are read again by `open`."""
        stream = self._unpacked()
        with unpacking(self.name):
            while len(self._head) < size and (more := stream.read(size - len(self._head))):
                self._head += more
        return self._head[:size]

    def open(self) -> BinaryIO:
        """Return the unpacked bytes from the start, once.

        Raises:
            SourceError: it was opened before.
        """
        if self._opened:
            raise SourceError(f"{self.name} can be read but once", hint="store it in a file first")
        self._opened = True
        return cast(
            BinaryIO, io.BufferedReader(_Chained(self._head, self._unpacked()), buffer_size=BUFFER)
        )

    def _unpacked(self) -> BinaryIO:
        if self._stream is None:
            chained = _Chained(_magic(self._raw), self._raw)
            buffered = io.BufferedReader(chained, buffer_size=BUFFER)
            self._stream = unpacked(cast(BinaryIO, buffered))
        return self._stream


_piped: dict[int, StreamOrigin] = {}


def standard_input() -> StreamOrigin:
    """Return what is piped in; it stays open. Asked for twice it is the same, and read but once.

    Raises:
        SourceError: it is closed.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError(
            "standard input is closed", hint="pipe records in, or name a file instead of '-'"
        )
    stream = sys.stdin.buffer
    return _piped.setdefault(id(stream), StreamOrigin(stream, name="stdin"))


def _magic(stream: BinaryIO) -> bytes:
    """Read the first four bytes, however few a pipe gives at once."""
    magic = b""
    while len(magic) < 4 and (more := stream.read(4 - len(magic))):
        magic += more
    return magic


def cannot_open(path: str, error: OSError) -> SourceError:
    """Return the error that says why a path cannot be opened."""
    return SourceError(
        f"cannot open {path!r}: {error.strerror or error}",
        hint="check the path and its permissions",
    )


class _Chained(io.RawIOBase):
    """A head that was read already, then the stream; leaves the stream open."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self._head:
            return copied(self._stream.read(memoryview(buffer).nbytes), buffer)
        taken = copied(self._head, buffer)
        self._head = self._head[taken:]
        return taken
