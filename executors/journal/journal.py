"""The journal of a run: earlier sessions through the index, this one in its own segment."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from executors.errors import DiskFault, InternalError, ModelError, RunDirError
from executors.ids import ContentKey
from executors.journal.blobs import LONGEST_LINE, write_blob
from executors.journal.filed_replies import answer_line, is_clean, long_answer, reply_of
from executors.journal.filed_tools import long_done, tool_of
from executors.journal.filesystems import refuse_remote
from executors.journal.index import Index, Lost, Place
from executors.journal.lines import (
    Answered,
    Begun,
    Done,
    Voided,
    begun_line,
    done_line,
    failure_line,
    intent_line,
    note_lines,
    read_line,
    void_line,
)
from executors.journal.reading import cut_tail, segment_files
from executors.journal.records import NOTE_KEY_BYTES, Filed, Paid, Spent, ToolBegun, ToolDone
from executors.journal.segment import Segment, host_name
from executors.messages import ModelReply
from executors.replies import JsonValue

__all__ = ["RunJournal"]

_LENGTH_BITS: Final = 32  # of a place in our own segment: where it begins above, its length below
_PATIENCE: Final = 60.0  # seconds that blobs in flight may take at the end


class RunJournal:
    """The durable side of a run's calls; opened by `open`, used on one loop, closed at the end.

    Attributes:
        spent: what earlier sessions drew.
        lost: their calls of which nothing is known.
        warnings: what a person should hear of: an index made again, lines skipped.
    """

    def __init__(self, directory: Path, *, index: Index | None) -> None:
        self._directory = directory
        self._blobs = directory / "blobs"
        self._segment = Segment(directory / "journal")
        self._index = index
        self._has_calls = index is not None and index.calls > 0
        self._own: dict[bytes, int | None] = {}
        self._tools: dict[bytes, int] = {}
        self._writing: set[Future[str]] = set()
        self.spent = Spent() if index is None else index.spent
        self.lost: tuple[Lost, ...] = () if index is None else index.lost
        self.warnings: tuple[str, ...] = () if index is None else tuple(index.warnings)

    @classmethod
    def open(cls, directory: Path, *, index: bool = True) -> RunJournal:
        """Open the journal of a run directory, which exists. Blocks while it reads what is new.

        Args:
            directory: the run directory.
            index: False for a worker, that sees what it files itself and nothing else.

        Raises:
            RunDirError: the directory cannot be read or written, or lies on a network file system.
        """
        if not index:
            return cls(directory, index=None)
        refuse_remote(directory)
        try:
            files = segment_files(directory / "journal")
            torn = [file.path.name for file in files if cut_tail(file, host_name())]
            journal = cls(directory, index=Index(directory / "index.sqlite", files))
        except OSError as error:
            raise RunDirError(
                f"the journal of the run cannot be opened: {error.strerror or error}",
                where=str(error.filename or directory),
                hint="name a run directory that you may read and write",
            ) from error
        if torn:
            told = (
                f"half a line at the end of {', '.join(map(repr, torn))} was cut and kept beside it"
            )
            journal.warnings = (*journal.warnings, told)
        return journal

    @property
    def segment(self) -> str:
        """The name of this session's file, which the first line makes."""
        return self._segment.name

    def before_commits(self, write: Callable[[], None]) -> None:
        """Have something written before each commit; where it raises DiskFault, nobody is answered."""
        self._segment.before = write

    # ---------------------------------------------------------------- the protocol

    def find(self, key: ContentKey) -> Filed | None:
        if self._own and (raw := bytes.fromhex(key)) in self._own:
            place = self._own[raw]
            if place is None:
                return None
            return self._filed(key, self._own_line(place))
        if not self._has_calls:
            return None
        assert self._index is not None
        found = self._index.place(key)
        return None if found is None else self._filed(key, _line_at(found))

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        self._segment.put(intent_line(key, tokens, usd))
        self._segment.write()

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        line, clean = answer_line(key, reply, paid), is_clean(reply)
        if len(line) > LONGEST_LINE:
            await self._long(line, long_answer, partial(self._file, bytes.fromhex(key), clean))
            return
        self._file(bytes.fromhex(key), clean, line)
        await self._segment.durable()

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        self._segment.put(failure_line(key, error, paid))

    def void(self, key: ContentKey, why: str) -> None:
        self._segment.put(void_line(key, why))
        self._own[bytes.fromhex(key)] = None

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        if len(keys) != NOTE_KEY_BYTES * len(values):
            raise InternalError(f"{len(values)} note(s) came with {len(keys)} bytes of keys")
        for line in note_lines(scope, keys, values, call):
            self._segment.put(line)

    def notes(self, scope: ContentKey) -> Iterable[tuple[bytes, JsonValue]]:
        return () if self._index is None else self._index.notes(scope)

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        place = self._tools.get(bytes.fromhex(key))
        if place is not None:
            return tool_of(key, self._own_line(place), self._blobs)
        if self._index is None or not self._index.tools:
            return None
        found = self._index.tool(key)
        return None if found is None else tool_of(key, _line_at(found), self._blobs)

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        self._file_tool(bytes.fromhex(key), begun_line(key, name))
        self._segment.write()

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        line = done_line(key, result, failed=failed)
        if len(line) > LONGEST_LINE:
            await self._long(line, long_done, partial(self._file_tool, bytes.fromhex(key)))
            return
        self._file_tool(bytes.fromhex(key), line)
        await self._segment.durable()

    # ---------------------------------------------------------------- the rest

    async def refresh(self) -> None:
        """Find from here on also what other processes have filed by now.

        Raises:
            RunDirError: the index cannot be made.
        """
        new = await anyio.to_thread.run_sync(_index, self._directory)
        old, self._index = self._index, new
        self._has_calls = new.calls > 0
        if old is not None:
            old.close()

    async def take(self, lines: bytes) -> None:
        """File lines that another process streams to this one; return once they are durable.

        Raises:
            DiskFault: they could not be written.
            InternalError: they are no lines of a journal.
        """
        *whole, rest = lines.split(b"\n")
        read = [read_line(raw) for raw in whole]
        if rest or None in read:
            raise InternalError("a worker streamed what is no line of a journal")
        waiting: list[Future[None]] = []
        for raw, line in zip(whole, read, strict=True):
            match line:
                case Answered() if len(raw) >= LONGEST_LINE:
                    file = partial(self._file, line.key, line.clean)
                    waiting.append(self._long(raw + b"\n", long_answer, file))
                case Answered():
                    self._file(line.key, line.clean, raw + b"\n")
                case Done() if len(raw) >= LONGEST_LINE:
                    file = partial(self._file_tool, line.key)
                    waiting.append(self._long(raw + b"\n", long_done, file))
                case Begun() | Done():
                    self._file_tool(line.key, raw + b"\n")
                case Voided(voided):
                    self._segment.put(raw + b"\n")
                    self._own[voided] = None
                case _:
                    self._segment.put(raw + b"\n")
        waiting.append(self._segment.durable())
        await asyncio.wait(waiting)
        for future in waiting:
            future.result()

    async def aclose(self) -> None:
        """Write, commit and close.

        Raises:
            DiskFault: what was left could not be written.
        """
        try:
            with anyio.move_on_after(_PATIENCE, shield=True):
                while self._writing:
                    await asyncio.wait(self._writing)
            await self._segment.aclose()
        finally:
            if self._index is not None:
                self._index.close()

    def _file(self, key: bytes, clean: bool, line: bytes) -> None:
        begin = self._segment.put(line)
        if clean:
            self._own[key] = begin << _LENGTH_BITS | (len(line) - 1)

    def _file_tool(self, key: bytes, line: bytes) -> None:
        self._tools[key] = self._segment.put(line) << _LENGTH_BITS | (len(line) - 1)

    def _own_line(self, place: int) -> bytes:
        return self._segment.read(place >> _LENGTH_BITS, place & ((1 << _LENGTH_BITS) - 1))

    def _filed(self, key: ContentKey, raw: bytes) -> Filed | None:
        """Return the answer of a line; None when the line is not what it was."""
        line = read_line(raw)
        if not isinstance(line, Answered) or line.key != bytes.fromhex(key):
            return None
        reply = reply_of(line, self._blobs)
        return None if reply is None else Filed(reply=reply, usd=line.paid.usd)

    def _long(
        self, line: bytes, short: Callable[[bytes, str], bytes], file: Callable[[bytes], None]
    ) -> Future[None]:
        """File a long line: its blob first, in a thread, then the short one that names it.

        Both come to pass also where nobody waits for them any more.
        """
        loop = asyncio.get_running_loop()
        done: Future[None] = loop.create_future()
        writing = loop.run_in_executor(None, write_blob, self._blobs, line)
        self._writing.add(writing)
        writing.add_done_callback(partial(self._named, partial(short, line), file, done))
        return done

    def _named(
        self,
        short: Callable[[str], bytes],
        file: Callable[[bytes], None],
        done: Future[None],
        writing: Future[str],
    ) -> None:
        self._writing.discard(writing)
        try:
            file(short(writing.result()))
            self._segment.commit(done)
        except OSError as error:
            self._segment.fail(error)
            self._segment.commit(done)
        except DiskFault:
            self._segment.commit(done)


def _index(directory: Path) -> Index:
    return Index(directory / "index.sqlite", segment_files(directory / "journal"))


def _line_at(place: Place) -> bytes:
    try:
        with place.segment.open("rb", buffering=0) as file:
            file.seek(place.begin)
            return file.read(place.length)
    except OSError as error:
        raise DiskFault(
            f"the journal of the run cannot be read: {error.strerror or error}",
            where=str(place.segment),
        ) from error
