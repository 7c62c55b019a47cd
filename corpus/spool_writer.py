"""Writing a spool: append records, then find repeats by digest and finish."""

from __future__ import annotations

import os
from array import array
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import accumulate, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from corpus.identity import DIGEST_SIZE
from corpus.records import Record, is_blank
from corpus.repeats import fingerprint, first_of_each, sorted_order
from corpus.sources.base import SourceInfo, SourceWarnings
from corpus.spool_format import MAX_RECORDS, Meta, pack_all, write_meta
from corpus.spool_ids import IdNotes, OnDuplicate, settle_ids, write_odd_ids
from executors.errors import RunDirError, SourceError
from executors.private import open_private

__all__ = ["SpoolWriter"]

_WRITTEN = ("records.bin", "offsets.bin", "texts.bin", "ids.bin", "empty.bin")
_DERIVED = ("order.bin", "first.bin", "odd.bin", "meta.json.new")
_HELD_BYTES = 1 << 20
_SLICE = 256
"""Records that are hashed and packed at once, when they are short."""
_SLICE_CHARACTERS = 1 << 18


class SpoolWriter:
    """Appends records to a folder that holds no finished spool.

    Raises:
        RunDirError: the folder holds one, or cannot be written; later too, when the disk is full.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: list[BinaryIO] = []
        with self._writing():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.chmod(0o700)
            if (directory / "meta.json").exists():
                raise RunDirError(
                    f"{str(directory)!r} holds a spool already", hint="open it, or name another"
                )
            self._files = [open_private(directory / name, "wb", buffering=0) for name in _WRITTEN]
        self._notes = IdNotes()
        self._offset = 0
        self._empty = 0
        self.records = 0
        # What is not written yet, file by file.
        self._bodies: list[bytes] = []
        self._starts = array("Q")
        self._texts, self._ids, self._empties = bytearray(), bytearray(), bytearray()
        self._held = 0

    def take(self, records: Iterator[Record], limit: int) -> bool:
        """Append up to `limit` records; return whether there may be more."""
        before = self.records
        self.add(islice(records, limit))
        return self.records - before == limit

    def add(self, records: Iterable[Record]) -> None:
        """Append records.

        Raises:
            SourceError: more records than ordinals, or a text of 4 GiB.
        """
        for some in _slices(records):
            self._add(some)
            if self._held >= _HELD_BYTES:
                self._write()

    def _add(self, records: list[Record]) -> None:
        texts = [record.text.encode("utf-8") for record in records]
        ids = [record.id.encode("utf-8") for record in records]
        self._check(records, texts)
        bodies = pack_all(ids, [record.where for record in records], texts)
        *starts, end = accumulate(map(len, bodies), initial=self._offset)
        self._bodies += bodies
        self._starts.extend(starts)
        self._texts += b"".join(map(_digest, texts))
        self._ids += b"".join(map(_digest, ids))
        empties = bytes([is_blank(record.text) for record in records])
        self._empties += empties
        self._empty += sum(empties)
        self._notes.add([record.id for record in records], self.records)
        self._held += end - self._offset
        self._offset = end
        self.records += len(records)

    def _check(self, records: list[Record], texts: list[bytes]) -> None:
        room = MAX_RECORDS - self.records
        for place, text in enumerate(texts):
            if place >= room or len(text) >> 32:
                raise SourceError(
                    f"record {records[place].id!r} is past what a spool can hold",
                    where=records[place].where,
                    hint=f"the bounds are {MAX_RECORDS} records and 4 GiB a text",
                )

    def finish(self, info: SourceInfo, warnings: SourceWarnings, on_duplicate: OnDuplicate) -> None:
        """Find repeats, refuse or rename them, and write the meta file.

        Raises:
            DuplicateIds: ids stand twice and `on_duplicate` is "refuse".
            SourceError: ids are missing and `on_duplicate` is "refuse".
        """
        self._starts.append(self._offset)
        self._write()
        with self._writing():
            for file in self._files:
                os.fsync(file.fileno())
                file.close()
            renamed = settle_ids(self._directory, self._notes, warnings, on_duplicate)
            write_odd_ids(self._directory, self._notes, warnings)
            del self._notes
            ids = np.fromfile(self._directory / "ids.bin", dtype=np.uint8).reshape(-1, DIGEST_SIZE)
            order, repeats = sorted_order(ids)
            assert not repeats.any(), "ids are unique from here on"
            self._save("order.bin", order)
            texts = np.fromfile(self._directory / "texts.bin", dtype=np.uint8)
            texts = texts.reshape(-1, DIGEST_SIZE)
            mark = fingerprint(order, ids, texts)
            del ids, order, repeats
            order, repeats = sorted_order(texts)
            self._save("first.bin", first_of_each(order, repeats))
            meta = Meta(
                records=self.records,
                identical=int(np.count_nonzero(repeats)),
                empty=self._empty,
                fingerprint=mark,
                renamed=renamed,
                info=info,
                warnings=tuple(warnings),
            )
            write_meta(self._directory, meta)

    def abandon(self) -> None:
        """Close and delete what was written."""
        for file in self._files:
            file.close()
        for name in (*_WRITTEN, *_DERIVED):
            (self._directory / name).unlink(missing_ok=True)

    def _save(self, name: str, array: NDArray[np.uint32]) -> None:
        with open_private(self._directory / name, "wb") as file:
            array.tofile(file)

    def _write(self) -> None:
        starts = np.frombuffer(self._starts, dtype=np.uint64).astype("<u8")
        held: tuple[bytes | bytearray, ...] = (
            b"".join(self._bodies),
            starts.tobytes(),
            self._texts,
            self._ids,
            self._empties,
        )
        del starts  # it holds the array's memory, which must be free to change
        with self._writing():
            for file, content in zip(self._files, held, strict=True):
                _write_all(file, content)
        self._bodies.clear()
        self._starts = array("Q")
        self._texts, self._ids, self._empties = bytearray(), bytearray(), bytearray()
        self._held = 0

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise RunDirError(
                f"cannot write {str(self._directory)!r}: {error.strerror or error}",
                hint="free some space, or name another directory",
            ) from error


def _slices(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield some records at a time, few where they are long."""
    taken: list[Record] = []
    characters = 0
    for record in records:
        taken.append(record)
        characters += len(record.text)
        if len(taken) == _SLICE or characters >= _SLICE_CHARACTERS:
            yield taken
            taken, characters = [], 0
    if taken:
        yield taken


_BEGUN = blake2b(digest_size=DIGEST_SIZE)
"""To copy it takes less than to begin anew."""


def _digest(content: bytes) -> bytes:
    digest = _BEGUN.copy()
    digest.update(content)
    return digest.digest()


def _write_all(file: BinaryIO, content: bytes | bytearray) -> None:
    """Write to a file without a buffer, which may take a part at a time."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
