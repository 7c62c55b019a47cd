"""Pass 0: a source is read once, before any call; ids, blanks and repeats are known from here on."""

from __future__ import annotations

import os
import weakref
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from anyio import move_on_after, to_thread
from numpy.typing import DTypeLike, NDArray

from corpus.identity import DIGEST_SIZE, digest_of, normal_id
from corpus.records import Part, Record
from corpus.repeats import Digests, Ordinals, find_digest
from corpus.sources.base import Source, SourceInfo, SourceWarning
from corpus.sources.memory import close_async
from corpus.spool_format import ODD, read_meta, unpack, unpack_id, unpack_parts
from corpus.spool_ids import OnDuplicate
from corpus.spool_sums import HINT, check_sums
from corpus.spool_writer import SpoolWriter
from executors.errors import RunDirError, SourceError
from executors.threads import to_its_end

__all__ = ["OnDuplicate", "Spool", "build_spool"]

_SLICE = 2_000
"""Records between two looks at cancellation."""
_CLEAN_UP_SECONDS = 10.0
_SLICE_CHARACTERS = 1 << 22
_RUN_BYTES = 8 << 20
"""Bytes of records that are read at once."""
_SKIPPED_BYTES = 4_096
"""What lies between two records that are read at once; another read would cost more."""


async def build_spool(
    source: Source,
    directory: Path,
    *,
    on_duplicate: OnDuplicate = "refuse",
    on_progress: Callable[[int], None] | None = None,
) -> Spool:
    """Read a source once into a folder, which is made with mode 0700.

    Files are read in a worker thread; iterables and connections of the caller's in this one, a
    slice at a time. A build that fails or is cancelled leaves no file.

    Args:
        on_duplicate: "refuse" ids that are missing or stand twice, or give them a "suffix".
        on_progress: is told how many records were read so far.

    Raises:
        SourceError: the source cannot be read, or records have no id.
        DuplicateIds: ids stand twice.
        RunDirError: the folder holds a spool already, or cannot be written.
    """
    writer = await to_thread.run_sync(SpoolWriter, directory)
    tell = on_progress or _untold
    try:
        await _fill(writer, source, tell)
        finish = partial(writer.finish, source.info, source.warnings, on_duplicate)
        await to_its_end(finish)
    except BaseException:
        # Bounded, since a full or vanished disk may not answer; what is left is written over.
        with move_on_after(_CLEAN_UP_SECONDS, shield=True):
            await to_thread.run_sync(writer.abandon, abandon_on_cancel=True)
        raise
    return await to_thread.run_sync(Spool.open, directory)


def _untold(_: int) -> None:
    """Nobody wants to know."""


async def _fill(writer: SpoolWriter, source: Source, tell: Callable[[int], None]) -> None:
    records = source.records()
    if isinstance(records, AsyncIterator):
        try:
            await _fill_from_async(writer, records, tell)
        finally:
            with move_on_after(_CLEAN_UP_SECONDS, shield=True):
                await close_async(records)
        return
    try:
        more = True
        while more:
            if source.in_loop:
                batch = _slice_of(records)
                await to_its_end(partial(writer.add, batch))
                more = bool(batch)
            else:
                more = await to_its_end(partial(writer.take, records, _SLICE))
            tell(writer.records)
    finally:
        _close(records)


def _slice_of(records: Iterator[Record]) -> list[Record]:
    """Take records until they are many or long; none when there are no more."""
    taken: list[Record] = []
    characters = 0
    for record in records:
        taken.append(record)
        characters += len(record.text)
        if len(taken) == _SLICE or characters >= _SLICE_CHARACTERS:
            break
    return taken


async def _fill_from_async(
    writer: SpoolWriter, records: AsyncIterator[Record], tell: Callable[[int], None]
) -> None:
    batch: list[Record] = []
    characters = 0
    async for record in records:
        batch.append(record)
        characters += len(record.text)
        if len(batch) == _SLICE or characters >= _SLICE_CHARACTERS:
            await to_its_end(partial(writer.add, batch))
            tell(writer.records)
            batch.clear()
            characters = 0
    await to_its_end(partial(writer.add, batch))
    tell(writer.records)


def _named(part: Part, given: str | None) -> Part:
    return part if given is None else replace(part, id=given)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RunDirError(
            f"the spool is damaged: no {path.name}", where=str(path), hint=HINT
        ) from error


def _close(records: Iterator[Record]) -> None:
    """Close the files that a half-read generator holds."""
    close = getattr(records, "close", None)
    if close is not None:
        close()


class Spool:
    """Records on disk, by ordinal (from 0, in the order of the source). Safe for threads.

    Nothing of it is held in memory but views of its files, about 25 bytes a record when used.
    """

    def __init__(self, directory: Path) -> None:
        self._meta = read_meta(directory)
        self._directory = directory
        count = self._meta.records
        self._offsets = self._array("offsets.bin", "<u8", count + 1)
        self._file = _opened(directory / "records.bin")
        self._closing = weakref.finalize(self, os.close, self._file)
        if os.fstat(self._file).st_size != int(self._offsets[count]):
            what = "the spool is damaged: records.bin has another size than it had"
            raise RunDirError(what, where=str(directory), hint=HINT)
        self._ids = self._digests("ids.bin", count)
        self._texts = self._digests("texts.bin", count)
        self._order = cast("Ordinals", self._array("order.bin", "<u4", count))
        self._odd = self._array("odd.bin", ODD, None)
        self.representative: Ordinals = self._array("first.bin", "<u4", count)
        """For each record the first one with the same text, itself when it is that."""
        self.is_empty: NDArray[np.bool_] = self._array("empty.bin", "?", count)

    @classmethod
    def open(cls, directory: Path, *, checked: bool = False) -> Spool:
        """Open a finished spool.

        Args:
            checked: compare every byte with what was written, about 1 s a GB.

        Raises:
            RunDirError: there is none, or its files do not fit together.
        """
        if checked:
            check_sums(directory, read_meta(directory).sums)
        return cls(directory)

    def close(self) -> None:
        """Close the file; reading afterwards is an error."""
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._meta.records

    @property
    def info(self) -> SourceInfo:
        """What was decided about the source."""
        return self._meta.info

    @property
    def warnings(self) -> tuple[SourceWarning, ...]:
        """Oddities that were met, counted."""
        return self._meta.warnings

    @property
    def identical(self) -> int:
        """Records whose text stood before."""
        return self._meta.identical

    @property
    def empty(self) -> int:
        """Records with nothing to judge."""
        return self._meta.empty

    @property
    def forgotten(self) -> Ordinals:
        """Records whose text was erased on request, in their order."""
        return np.array(self._meta.forgotten, dtype=np.uint32)

    @property
    def fingerprint(self) -> str:
        """Hash over all ids and texts, whatever their order."""
        return self._meta.fingerprint

    @property
    def renamed(self) -> dict[int, str]:
        """Ids that were given in place of missing or repeated ones, by ordinal."""
        return self._meta.renamed

    def record(self, ordinal: int) -> Record:
        """Return one record."""
        raw = self._raw(self._checked(ordinal), ordinal + 1)
        return unpack(raw, self._meta.renamed.get(ordinal))

    def id(self, ordinal: int) -> str:
        """Return the id of a record."""
        given = self._meta.renamed.get(ordinal)
        return unpack_id(self._raw(ordinal, ordinal + 1)) if given is None else given

    def where(self, ordinal: int) -> str | None:
        """Return where a record stands in its source."""
        return self.record(ordinal).where

    def digest(self, ordinal: int) -> bytes:
        """Return the 16 bytes that identify a record's text."""
        digest: bytes = self._texts[self._checked(ordinal)].tobytes()
        return digest

    @property
    def digests(self) -> Digests:
        """What `digest` returns, of all records; a view of the file."""
        return self._texts

    @property
    def id_digests(self) -> Digests:
        """The 16 bytes that identify a record's id, of all records; a view of the file."""
        return self._ids

    @property
    def by_id(self) -> Ordinals:
        """All ordinals, in the order of their ids' digests, whatever the order of the source."""
        return self._order

    def read(self, ordinals: Sequence[int]) -> list[Record]:
        """Return records in the order asked for; neighbours are read at once."""
        renamed = self._meta.renamed
        return [
            unpack(raw, renamed.get(ordinal), at)
            for some, raw, places in self._read(ordinals)
            for ordinal, at in zip(some, places, strict=True)
        ]

    def parts(self, ordinals: Sequence[int]) -> Iterator[list[Part]]:
        """Yield records as whole parts, in the order asked for, some megabytes at a time."""
        renamed = self._meta.renamed
        for some, raw, places in self._read(ordinals):
            parts = unpack_parts(raw, some, places)
            if renamed:
                parts = [_named(part, renamed.get(part.ordinal)) for part in parts]
            yield parts

    def __iter__(self) -> Iterator[Record]:
        for start in range(0, len(self), 256):
            yield from self.read(range(start, min(start + 256, len(self))))

    def find(self, id: str) -> int | None:  # noqa: A002 - the caller's own word for it
        """Return the ordinal of an id: exactly, else by the normal form of ids.

        Raises:
            SourceError: several ids have this normal form and none is exactly it.
        """
        try:
            id.encode("utf-8")
        except UnicodeEncodeError:  # half a character: no id has one
            return None
        exact = find_digest(self._order, self._ids, digest_of(id))
        if exact is not None:
            return exact
        digest = digest_of(normal_id(id))
        found = self._odd_with(digest)
        plain = find_digest(self._order, self._ids, digest)
        found += [] if plain is None else [plain]
        if len(found) > 1:
            shown = ", ".join(repr(self.id(ordinal)) for ordinal in found[:20])
            raise SourceError(f"{id!r} may mean several ids: {shown}", hint="write it exactly")
        return found[0] if found else None

    def _odd_with(self, digest: bytes) -> list[int]:
        """Ordinals of ids that have this normal form and another spelling."""
        place = bisect_left(self._odd, digest, key=lambda row: row["digest"].tobytes())
        found: list[int] = []
        while place < len(self._odd) and self._odd[place]["digest"].tobytes() == digest:
            found.append(int(self._odd[place]["ordinal"]))
            place += 1
        return found

    def _read(self, ordinals: Sequence[int]) -> Iterator[tuple[list[int], bytes, list[int]]]:
        """Yield some of the ordinals, bytes that hold them, and where in these each begins."""
        asked = np.asarray(ordinals, dtype=np.int64)
        if len(asked) == 0:
            return
        self._checked(int(asked.min()))
        self._checked(int(asked.max()))
        starts = self._offsets[asked].astype(np.int64)
        ends = self._offsets[asked + 1].astype(np.int64)
        between = starts[1:] - ends[:-1]
        breaks = np.flatnonzero((between < 0) | (between > _SKIPPED_BYTES)) + 1
        for first, last in pairwise((0, *breaks.tolist(), len(asked))):
            at = first
            while at < last:
                most = int(starts[at]) + _RUN_BYTES
                fits = int(np.searchsorted(ends[at:last], most, side="right"))
                end = at + max(1, fits)
                raw = self._bytes(int(starts[at]), int(ends[end - 1]))
                yield asked[at:end].tolist(), raw, (starts[at:end] - starts[at]).tolist()
                at = end

    def _checked(self, ordinal: int) -> int:
        if not 0 <= ordinal < len(self):
            raise IndexError(f"no record {ordinal!r}: there are {len(self)}")
        return ordinal

    def _raw(self, first: int, last: int) -> bytes:
        return self._bytes(int(self._offsets[self._checked(first)]), int(self._offsets[last]))

    def _bytes(self, start: int, end: int) -> bytes:
        raw = os.pread(self._file, end - start, start)
        if len(raw) != end - start:
            raise RunDirError("the spool is damaged: records.bin ends too early", hint=HINT)
        return raw

    def _digests(self, name: str, count: int) -> Digests:
        whole = self._array(name, "u1", count * DIGEST_SIZE)
        return cast("Digests", whole.reshape(-1, DIGEST_SIZE))

    def _array(self, name: str, dtype: DTypeLike, count: int | None) -> NDArray[Any]:
        path = self._directory / name
        kind = np.dtype(dtype)
        try:
            size = path.stat().st_size
        except OSError as error:
            what = f"the spool is damaged: no {name}"
            raise RunDirError(what, where=str(path), hint=HINT) from error
        if size % kind.itemsize or (count is not None and size != count * kind.itemsize):
            what = f"the spool is damaged: {name} has another size"
            raise RunDirError(what, where=str(path), hint=HINT)
        if not size:  # an empty file cannot be mapped
            return np.empty(0, dtype=kind)
        # As a plain array: each index into a memmap makes an object of that class first.
        return np.memmap(path, dtype=kind, mode="r").view(np.ndarray)
