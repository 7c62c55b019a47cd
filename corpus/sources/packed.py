"""Packed bytes: gzip and zstd, told by what they begin with, and refused where they swell.

A few kilobytes can unpack to more than any disk holds. Texts that people keep shrink to a tenth, logs
to a hundredth, and copies of one page to what each format makes of copies; what grows beyond that,
and is large, is no source of anybody's.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from executors.errors import SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["BUFFER", "copied", "unpacked", "unpacking"]

BUFFER: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = b"\x2a\x4d\x18"
_ZSTD_WINDOW: Final = 1 << 27
"""Bytes that a frame may ask for: what the format's own program grants unless told otherwise."""
_READ: Final = 1 << 10
"""Bytes of a zstd frame unpacked at once: at its utmost growth that is 32 MB."""
_GROWTH_GZIP: Final = 500
"""Times its packed size; the utmost of the format is 1,032."""
_GROWTH_ZSTD: Final = 5_000
"""The utmost of the format is about 32,000."""
_SMALL: Final = 64 * 1024 * 1024
"""Bytes; what unpacks to less than this may grow as it likes."""


def unpacked(raw: BinaryIO) -> BinaryIO:
    """Return a stream of what `raw` holds, unpacked when its first bytes say that it is packed."""
    start = cast(io.BufferedReader, raw).peek(4)[:4]
    if start[:2] == _GZIP:
        return cast(BinaryIO, io.BufferedReader(_Gzip(raw), buffer_size=BUFFER))
    if start == _ZSTD or (start[1:] == _ZSTD_SKIPPABLE and start[0] >> 4 == 5):
        return cast(BinaryIO, io.BufferedReader(_Zstd(raw), buffer_size=BUFFER))
    return raw


@contextmanager
def unpacking(name: str) -> Generator[None]:
    """Turn faults of packed and damaged bytes into a SourceError that names the file."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            f"{name!r} is packed and damaged: {error}",
            where=name,
            hint="it may be cut short; fetch or pack it again",
        ) from error
    except _Swelling as error:
        raise SourceError(
            f"{name!r} unpacks to far more than texts do: {error}",
            where=name,
            hint="a small file can fill a disk that way; if it is meant, unpack it yourself first",
        ) from error
    except OSError as error:
        raise SourceError(f"{name!r} cannot be read: {error.strerror or error}") from error


def copied(chunk: bytes, buffer: WriteableBuffer) -> int:
    """Copy as much of the chunk as the buffer takes; return how much that was."""
    view = memoryview(buffer)
    taken = min(view.nbytes, len(chunk))
    view[:taken] = chunk[:taken]
    return taken


class _Swelling(Exception):
    """Packed bytes that unpack to far more than texts do."""


def _check_growth(taken: int, given: int, growth: int) -> None:
    if given > _SMALL and given > growth * taken:
        raise _Swelling(f"{taken:,} bytes gave {given:,}, and more were to come")


class _Counted(io.RawIOBase):
    """A stream that knows how much was read of it; leaves it open."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        chunk = self._raw.read(memoryview(buffer).nbytes)
        self.taken += len(chunk)
        return copied(chunk, buffer)


class _Gzip(io.RawIOBase):
    """gzip members, one after another, closing the file beneath with itself."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._counted = _Counted(raw)
        self._file = gzip.GzipFile(fileobj=self._counted, mode="rb")
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        given = self._file.readinto(buffer)
        self._given += given
        _check_growth(self._counted.taken, self._given, _GROWTH_GZIP)
        return given

    def close(self) -> None:
        self._file.close()
        self._raw.close()
        super().close()


class _Zstd(io.RawIOBase):
    """Frames, one after another. zstandard's own reader takes a cut frame for the end."""

    def __init__(self, raw: BinaryIO) -> None:
        # Loaded for packed sources alone.
        import zstandard

        self._error: type[Exception] = zstandard.ZstdError
        self._frames = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame = self._frames.decompressobj()
        self._raw = raw
        self._ready = b""
        self._inside = False
        self._taken = self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._ready:
            if not self._fill():
                return 0
        taken = copied(self._ready, buffer)
        self._ready = self._ready[taken:]
        return taken

    def _fill(self) -> bool:
        packed = self._frame.unused_data if self._frame.eof else b""
        if self._frame.eof:
            self._frame = self._frames.decompressobj()
            self._inside = False
        if not packed:
            packed = self._raw.read(_READ)
            self._taken += len(packed)
        if not packed:
            if self._inside:
                raise EOFError("the last frame ends too early")
            return False
        self._inside = True
        try:
            self._ready = self._frame.decompress(packed)
        except self._error as error:
            raise EOFError(str(error)) from error
        self._given += len(self._ready)
        _check_growth(self._taken, self._given, _GROWTH_ZSTD)
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()
