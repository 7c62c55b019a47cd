"""Erases contents from a journal: their notes, and the answers in which they were judged.

What the calls drew stays, since it was paid. Evidence that nobody can read, and blobs that nothing
names, go as a whole: they may hold what was to be erased.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from executors.errors import OutputError, RunDirError
from executors.ids import ContentKey
from executors.journal.index import drop_index
from executors.journal.lines import (
    CALL_PREFIX,
    Answered,
    Begun,
    Done,
    Noted,
    Unanswered,
    Voided,
    begun_line,
    failure_line,
    forgotten_line,
    note_lines,
    read_line,
    void_line,
)
from executors.journal.reading import segment_files, whole_lines
from executors.journal.records import NOTE_KEY_BYTES
from executors.journal.syncing import sync_folder
from executors.replies import JsonValue

__all__ = ["Forgotten", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was erased."""

    notes: int
    answers: int
    """Also failures, whose messages may quote what was asked, and what tools gave."""
    blobs: int


def forget(
    directory: Path,
    digests: AbstractSet[bytes],
    *,
    calls: AbstractSet[ContentKey] = frozenset(),
) -> Forgotten:
    """Rewrite the segments of a run without some contents. Blocks; the caller holds the run's lock.

    Each segment is replaced as a whole, so that a crash leaves the old one or the new one; asked
    again, the rest is erased. The index is dropped: the next session makes it again.

    Args:
        directory: the run directory.
        digests: the keys of the contents' notes.
        calls: further calls whose answers are erased, besides those that the notes name; of runs of
            tools, what they gave.

    Raises:
        RunDirError: a process still writes to a segment.
        OutputError: a segment cannot be rewritten.
    """
    journal = directory / "journal"
    segments = [file.path for file in segment_files(journal)]
    for segment in segments:
        _refuse_live(segment)
    eraser = _Eraser(digests, calls)
    try:
        drop_index(directory / "index.sqlite")
        for segment in segments:
            eraser.look(segment)
        # The oldest first: notes stand in no older segment than the answer they name, so that
        # what a crash leaves still names what is left to erase.
        for segment in segments:
            eraser.rewrite(segment)
        for bad in journal.glob("*.bad"):
            bad.unlink()
        blobs = eraser.sweep(directory / "blobs")
    except OSError as error:
        raise OutputError(
            f"the journal cannot be rewritten: {error.strerror or error}",
            where=str(error.filename or journal),
            hint="make room, or mend the disk, and ask again: what is left is erased then",
        ) from error
    return Forgotten(notes=eraser.notes, answers=eraser.answers, blobs=blobs)


class _Eraser:
    def __init__(self, digests: AbstractSet[bytes], calls: AbstractSet[ContentKey]) -> None:
        self._digests = digests
        self._calls = {bytes.fromhex(call) for call in calls}
        self._prefixes: set[str] = set()
        self._kept_blobs: set[str] = set()
        self.notes = self.answers = 0

    def look(self, segment: Path) -> None:
        """Find out which calls the contents were judged in."""
        for _, raw in whole_lines(segment):
            line = read_line(raw) if raw[2:3] == b"n" else None
            if isinstance(line, Noted) and line.call and any(map(self._erased, _keys(line))):
                self._prefixes.add(line.call)

    def rewrite(self, segment: Path) -> None:
        """Replace a segment by what is left of it; one that holds nothing of it stays."""
        half = segment.with_name(f".{segment.name}.half")
        changed = False
        try:
            with os.fdopen(_made(half), "wb") as file:
                end = 0
                for begin, raw in whole_lines(segment):
                    left = self._left(raw)
                    file.writelines(left)
                    end = begin + len(raw) + 1
                    changed = changed or left != [raw + b"\n"]
                changed = changed or end != segment.stat().st_size  # half a line at the end
                file.flush()
                os.fsync(file.fileno())
            if changed:
                half.replace(segment)
                sync_folder(segment.parent)
        finally:
            half.unlink(missing_ok=True)

    def sweep(self, folder: Path) -> int:
        """Delete the blobs that no line names any more."""
        gone = [path for path in folder.glob("*") if path.name not in self._kept_blobs]
        for path in gone:
            path.unlink()
        return len(gone)

    def _left(self, raw: bytes) -> list[bytes]:
        """Return what is left of a line."""
        whole = [raw + b"\n"]
        line = read_line(raw)
        match line:
            case None:
                return []
            case Answered(key, paid) if self._judged(key):
                self.answers += 1
                return [forgotten_line(ContentKey(key.hex()), paid)]
            case Done(key) if self._judged(key):  # that it ran stays known
                self.answers += 1
                return [begun_line(ContentKey(key.hex()), "")]
            case Answered() | Done():
                if line.blob is not None:
                    self._kept_blobs.add(line.blob)
                return whole
            case Begun(key, name) if name and self._judged(key):
                return [begun_line(ContentKey(key.hex()), "")]
            case Unanswered(key, paid) if line.error is not None and self._judged(key):
                self.answers += 1
                return [failure_line(ContentKey(key.hex()), None, paid)]
            case Voided(key) if self._judged(key):
                return [void_line(ContentKey(key.hex()), "")]
            case Noted():
                return self._notes_left(line, whole)
            case _:
                return whole

    def _notes_left(self, line: Noted, whole: list[bytes]) -> list[bytes]:
        keys: list[bytes] = []
        values: list[JsonValue] = []
        for key, value in zip(_keys(line), line.values, strict=True):
            if self._erased(key):
                self.notes += 1
            else:
                keys.append(key)
                values.append(value)
        if len(keys) == len(line.values):
            return whole
        return note_lines(ContentKey(line.scope), b"".join(keys), values, line.call) if keys else []

    def _erased(self, key: bytes) -> bool:
        return key in self._digests

    def _judged(self, call: bytes) -> bool:
        return call in self._calls or call.hex()[:CALL_PREFIX] in self._prefixes


def _keys(line: Noted) -> list[bytes]:
    size = NOTE_KEY_BYTES
    return [line.keys[n : n + size] for n in range(0, len(line.keys), size)]


def _made(path: Path) -> int:
    path.unlink(missing_ok=True)  # of a rewriting that a crash ended
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _refuse_live(segment: Path) -> None:
    """Refuse a segment whose writer lives, as far as this machine can tell."""
    fd = os.open(segment, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunDirError(
            "a process still writes to the journal of the run",
            where=str(segment),
            hint="wait until it ends, or end it, and ask again",
        ) from None
    except OSError:
        return  # the file system has no locks; the lock of the run has to do
    finally:
        os.close(fd)
