"""Writing a spool: append records, then find repeats by digest and finish."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from corpus.identity import DIGEST_SIZE, digest_of, normal_id
from corpus.records import Record
from corpus.repeats import (
    Digests,
    Ordinals,
    find_digest,
    fingerprint,
    first_of_each,
    later_repeats,
    sorted_order,
)
from corpus.sources.base import SourceInfo, SourceWarnings
from corpus.spool_format import MAX_RECORDS, ODD, Meta, pack, unpack, write_meta
from executors.errors import DuplicateIds, RunDirError, SourceError

__all__ = ["OnDuplicate", "SpoolWriter"]

OnDuplicate = Literal["refuse", "suffix"]
"""What happens to ids that are missing or stand twice."""

_FILES = ("records.bin", "offsets.bin", "texts.bin", "ids.bin", "empty.bin")
_BUFFER = 1 << 20
_LISTED = 20


class SpoolWriter:
    """Appends records to a folder that holds no finished spool.

    Raises:
        RunDirError: the folder holds one, or cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (directory / "meta.json").exists():
                raise RunDirError(
                    f"{str(directory)!r} holds a spool already", hint="open it, or name another"
                )
            opened = [(directory / name).open("wb", buffering=_BUFFER) for name in _FILES]
        except OSError as error:
            raise RunDirError(f"cannot write {str(directory)!r}: {error.strerror}") from error
        self._files: list[BinaryIO] = list(opened)
        self._offset = 0
        self._nameless = array("I")
        self._odd: list[tuple[bytes, int]] = []
        self.records = 0
        self._empty = 0

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
        bodies, offsets, texts, ids, empties = (file.write for file in self._files)
        for record in records:
            if self.records >= MAX_RECORDS:
                raise SourceError(f"more than {MAX_RECORDS} records", hint="count in several runs")
            text = record.text.encode("utf-8")
            if len(text) >> 32:
                raise SourceError(f"the text of {record.id!r} is longer than 4 GiB")
            body = pack(record, text)
            bodies(body)
            offsets(self._offset.to_bytes(8, "little"))
            texts(blake2b(text, digest_size=DIGEST_SIZE).digest())
            ids(digest_of(record.id))
            empty = record.empty
            empties(b"\1" if empty else b"\0")
            self._offset += len(body)
            self._empty += empty
            self._note_id(record.id)
            self.records += 1

    def _note_id(self, id_: str) -> None:
        normal = normal_id(id_)
        if not normal:
            self._nameless.append(self.records)
        elif normal != id_:
            self._odd.append((digest_of(normal), self.records))

    def finish(self, info: SourceInfo, warnings: SourceWarnings, on_duplicate: OnDuplicate) -> None:
        """Find repeats, refuse or rename them, and write the meta file.

        Raises:
            DuplicateIds: ids stand twice and `on_duplicate` is "refuse".
            SourceError: ids are missing and `on_duplicate` is "refuse".
        """
        self._files[1].write(self._offset.to_bytes(8, "little"))
        self._sync()
        renamed = self._settle_ids(warnings, on_duplicate)
        ids = self._rows("ids.bin")
        order, repeats = sorted_order(ids)
        assert not repeats.any(), "ids are unique from here on"
        order.tofile(self._directory / "order.bin")
        del repeats
        self._write_odd(order, ids, warnings)
        texts = self._rows("texts.bin")
        mark = fingerprint(order, ids, texts)
        del ids, order
        order, repeats = sorted_order(texts)
        first_of_each(order, repeats).tofile(self._directory / "first.bin")
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
        for name in (*_FILES, "order.bin", "first.bin", "odd.bin", "meta.json.new"):
            (self._directory / name).unlink(missing_ok=True)

    def _sync(self) -> None:
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def _rows(self, name: str) -> Digests:
        return np.fromfile(self._directory / name, dtype=np.uint8).reshape(-1, DIGEST_SIZE)

    def _settle_ids(self, warnings: SourceWarnings, on_duplicate: OnDuplicate) -> dict[int, str]:
        ids = self._rows("ids.bin")
        order, repeats = sorted_order(ids)
        nameless = np.array(self._nameless, dtype=np.uint32)
        twice = np.setdiff1d(later_repeats(order, repeats), nameless, assume_unique=True)
        if not len(twice) and not len(nameless):
            return {}
        if on_duplicate == "refuse":
            self._refuse(nameless, twice)
        return self._rename(nameless, twice, _Taken(order, ids), warnings)

    def _refuse(self, nameless: Ordinals, twice: Ordinals) -> None:
        if len(nameless):
            places = [record.where or "?" for record in self._read(nameless[:_LISTED])]
            raise SourceError(
                f"{len(nameless)} record(s) have no id",
                where=f"first {len(places)}: {', '.join(places)}",
                hint="name another id column, or go on with on_duplicate='suffix' (--on-duplicate suffix)",
            )
        shown = [(r.id, r.where or "?") for r in self._read(twice[:_LISTED])]
        raise DuplicateIds(shown, total=len(twice))

    def _rename(
        self, nameless: Ordinals, twice: Ordinals, taken: _Taken, warnings: SourceWarnings
    ) -> dict[int, str]:
        renamed: dict[int, str] = {}
        for ordinal, record in zip(nameless.tolist(), self._read(nameless), strict=True):
            renamed[ordinal] = taken.free(f"row-{ordinal + 1}", first=1)
            warnings.add("renamed-ids", record.where or "?", f"no id, now {renamed[ordinal]!r}")
        for ordinal, record in zip(twice.tolist(), self._read(twice), strict=True):
            renamed[ordinal] = taken.free(record.id, first=2)
            warnings.add("renamed-ids", record.where or "?", f"now {renamed[ordinal]!r}")
        self._odd = [(digest, ordinal) for digest, ordinal in self._odd if ordinal not in renamed]
        with (self._directory / "ids.bin").open("r+b") as file:
            for ordinal, id_ in sorted(renamed.items()):
                file.seek(ordinal * DIGEST_SIZE)
                file.write(digest_of(id_))
        return renamed

    def _read(self, ordinals: Ordinals) -> Iterator[Record]:
        offsets = np.memmap(self._directory / "offsets.bin", dtype="<u8", mode="r")
        with (self._directory / "records.bin").open("rb") as file:
            for ordinal in ordinals.tolist():
                start, end = int(offsets[ordinal]), int(offsets[ordinal + 1])
                file.seek(start)
                yield unpack(file.read(end - start), None)

    def _write_odd(self, order: Ordinals, ids: Digests, warnings: SourceWarnings) -> None:
        rows = np.array(sorted(self._odd), dtype=ODD)
        rows.tofile(self._directory / "odd.bin")
        if not self._odd:
            return
        taken, earlier = _Taken(order, ids), set[bytes]()
        for digest, ordinal in sorted(self._odd, key=lambda pair: pair[1]):
            if digest in taken or digest in earlier:
                (record,) = self._read(np.array([ordinal], dtype=np.uint32))
                warnings.add("near-ids", record.where or "?", repr(record.id))
            earlier.add(digest)


class _Taken:
    """Which ids exist, by digest: those that were read, and those that were given since."""

    def __init__(self, order: Ordinals, ids: Digests) -> None:
        self._order = order
        self._ids = ids
        self._given: set[bytes] = set()
        self._counts: dict[str, int] = {}

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._given or find_digest(self._order, self._ids, digest) is not None

    def free(self, id_: str, *, first: int) -> str:
        """Return the id with the first number that makes it new."""
        number = self._counts.get(id_, first)
        while (digest := digest_of(name := _numbered(id_, number))) in self:
            number += 1
        self._counts[id_] = number + 1
        self._given.add(digest)
        return name


def _numbered(id_: str, number: int) -> str:
    return id_ if number == 1 else f"{id_}#{number}"
