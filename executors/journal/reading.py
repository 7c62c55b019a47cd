"""Segments as they are found: whole lines, whatever stands between or after them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SegmentFile", "cut_tail", "keep_bad", "segment_files", "whole_lines"]

_CHUNK: Final = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A segment in a folder, with what its name says."""

    path: Path
    host: str
    made: int
    """Nanoseconds since 1970."""


def segment_files(folder: Path) -> list[SegmentFile]:
    """Return the segments of a folder, the oldest first; none where there is no folder."""
    found: list[SegmentFile] = []
    for path in folder.glob("*.jsonl"):
        host, _, rest = path.stem.rpartition("-")[0].rpartition("-")
        made = path.stem.rpartition("-")[2]
        if host and rest.isdecimal() and made.isdecimal():
            found.append(SegmentFile(path=path, host=host, made=int(made)))
    return sorted(found, key=lambda file: (file.made, file.path.name))


def whole_lines(path: Path, begin: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield position and text of each line that has an end, from a position on."""
    with path.open("rb", buffering=0) as file:
        file.seek(begin)
        rest = b""
        while chunk := file.read(_CHUNK):
            if b"\n" not in chunk:  # joined once, not line by line
                parts = [rest, chunk]
                while (chunk := file.read(_CHUNK)) and b"\n" not in chunk:
                    parts.append(chunk)
                rest, chunk = b"", b"".join([*parts, chunk])
            else:
                chunk = rest + chunk
            lines = chunk.split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield begin, line
                begin += len(line) + 1


def cut_tail(file: SegmentFile, host: str) -> bool:
    """Take the half line away that a dead process of this machine left at the end; True if so.

    It is kept beside the segment. A segment whose writer lives, or may live on another machine, is
    left alone: what has no end is not read anyway.
    """
    if file.host != host:
        return False
    fd = os.open(file.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if not _is_abandoned(fd):
            return False
        whole, tail = _tail(fd)
        if not tail:
            return False
        keep_bad(file.path, [tail])
        os.ftruncate(fd, whole)
        return True
    finally:
        os.close(fd)


def keep_bad(segment: Path, pieces: list[bytes]) -> None:
    """Keep what could not be read beside its segment, once."""
    path = segment.with_suffix(".bad")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    with suppress(OSError):  # evidence for people; the run does not need it
        kept = path.read_bytes().split(b"\n") if path.exists() else []
        new = set(pieces).difference(kept)
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(b"".join(piece + b"\n" for piece in pieces if piece in new))


def _is_abandoned(fd: int) -> bool:
    """Say whether the writer of a segment is dead; where nobody can tell, it lives."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by the writer for life
    except OSError:
        return False
    return True


def _tail(fd: int) -> tuple[int, bytes]:
    """Return where the last whole line ends, and what stands after it."""
    begin = size = os.fstat(fd).st_size
    tail = b""
    while begin > 0:
        step = min(_CHUNK, begin)
        begin -= step
        tail = os.pread(fd, step, begin) + tail
        at = tail.rfind(b"\n", 0, step)
        if at >= 0:
            return begin + at + 1, tail[at + 1 :]
    return 0, tail if size else b""
