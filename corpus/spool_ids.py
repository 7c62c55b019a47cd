"""Ids of a spool: missing and repeated ones are refused or renamed, odd ones stay findable."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from corpus.identity import DIGEST_SIZE, digest_of, normal_id
from corpus.records import Record
from corpus.repeats import Digests, Ordinals, find_digest, later_repeats, sorted_order
from corpus.sources.base import SourceWarnings
from corpus.spool_format import ODD, unpack
from executors.errors import DuplicateIds, SourceError
from executors.private import open_private

__all__ = ["IdNotes", "OnDuplicate", "settle_ids", "write_odd_ids"]

OnDuplicate = Literal["refuse", "suffix"]
"""What happens to ids that are missing or stand twice."""

_LISTED = 20
_EXAMPLES = 5
_CHUNK = 1 << 16


class IdNotes:
    """What is noted of ids while records are appended: 4 bytes a missing one, 20 an odd one."""

    def __init__(self) -> None:
        self._nameless = array("I")
        self._odd = bytearray()

    def add(self, ids: Sequence[str], first: int) -> None:
        """Note ids that are missing, or that are not in normal form; the first has this ordinal."""
        for ordinal, id_ in enumerate(ids, first):
            normal = normal_id(id_)
            if not normal:
                self._nameless.append(ordinal)
            elif normal != id_:
                self._odd += digest_of(normal)
                self._odd += ordinal.to_bytes(4, "little")

    def nameless(self) -> Ordinals:
        """Return the ordinals of records without an id."""
        return np.array(self._nameless, dtype=np.uint32)

    def odd(self) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """Return digest of the normal form and ordinal of each odd id."""
        return np.frombuffer(self._odd, dtype=ODD)

    def forget(self, ordinals: Ordinals) -> None:
        """Drop odd ids that were renamed."""
        odd = self.odd()
        self._odd = bytearray(odd[~np.isin(odd["ordinal"], ordinals)].tobytes())


def settle_ids(
    directory: Path, notes: IdNotes, warnings: SourceWarnings, on_duplicate: OnDuplicate
) -> dict[int, str]:
    """Make ids unique; return the given ones by ordinal, and write their digests.

    Raises:
        DuplicateIds: ids stand twice and they are refused.
        SourceError: ids are missing and they are refused.
    """
    ids = np.fromfile(directory / "ids.bin", dtype=np.uint8).reshape(-1, DIGEST_SIZE)
    order, repeats = sorted_order(ids)
    nameless = notes.nameless()
    twice = np.setdiff1d(later_repeats(order, repeats), nameless, assume_unique=True)
    if not len(twice) and not len(nameless):
        return {}
    if on_duplicate == "refuse":
        _refuse(directory, nameless, twice)
    taken = _Taken(order, ids)
    renamed: dict[int, str] = {}
    for ordinal, record in _read(directory, nameless):
        renamed[ordinal] = taken.free(f"row-{ordinal + 1}", first=1)
        warnings.add("renamed-ids", record.where or "?", f"no id, now {renamed[ordinal]!r}")
    for ordinal, record in _read(directory, twice):
        renamed[ordinal] = taken.free(record.id, first=2)
        warnings.add("renamed-ids", record.where or "?", f"now {renamed[ordinal]!r}")
    notes.forget(np.array(sorted(renamed), dtype=np.uint32))
    with (directory / "ids.bin").open("r+b") as file:
        for ordinal, id_ in sorted(renamed.items()):
            file.seek(ordinal * DIGEST_SIZE)
            file.write(digest_of(id_))
    return renamed


def write_odd_ids(directory: Path, notes: IdNotes, warnings: SourceWarnings) -> None:
    """Write the odd ids, by digest, and count those that another id nearly is."""
    odd = notes.odd()
    digests = odd["digest"].copy().view(np.uint8).reshape(-1, DIGEST_SIZE)
    order, repeats = sorted_order(digests)
    with open_private(directory / "odd.bin", "wb") as file:
        starts = range(0, len(order), _CHUNK)
        file.writelines(odd[order[start : start + _CHUNK]].tobytes() for start in starts)
    if not len(odd):
        return
    near = np.sort(odd["ordinal"][order[repeats | _plain(directory, digests)[order]]])
    for _, record in _read(directory, near[:_EXAMPLES]):
        warnings.add("near-ids", record.where or "?", repr(record.id))
    if len(near) > _EXAMPLES:
        warnings.add("near-ids", "", count=len(near) - _EXAMPLES)


def _plain(directory: Path, digests: Digests) -> NDArray[np.bool_]:
    """Whether an id is the normal form itself; half a digest serves, since it only counts."""
    ids = np.fromfile(directory / "ids.bin", dtype=">u8")[::2].astype(np.uint64)
    ids.sort()
    wanted = digests.view(">u8")[:, 0].astype(np.uint64)
    places = np.searchsorted(ids, wanted)
    np.minimum(places, len(ids) - 1, out=places)
    found: NDArray[np.bool_] = ids[places] == wanted
    return found


def _refuse(directory: Path, nameless: Ordinals, twice: Ordinals) -> None:
    if len(nameless):
        places = [record.where or "?" for _, record in _read(directory, nameless[:_LISTED])]
        raise SourceError(
            f"{len(nameless)} record(s) have no id",
            where=f"first {len(places)}: {', '.join(places)}",
            hint="name another id column, or go on with on_duplicate='suffix' (--on-duplicate suffix)",
        )
    shown = [(r.id, r.where or "?") for _, r in _read(directory, twice[:_LISTED])]
    raise DuplicateIds(shown, total=len(twice))


def _read(directory: Path, ordinals: Ordinals) -> Iterator[tuple[int, Record]]:
    if not len(ordinals):
        return
    offsets = np.memmap(directory / "offsets.bin", dtype="<u8", mode="r")
    with (directory / "records.bin").open("rb") as file:
        for ordinal in ordinals.tolist():
            start, end = int(offsets[ordinal]), int(offsets[ordinal + 1])
            file.seek(start)
            yield ordinal, unpack(file.read(end - start), None)


class _Taken:
    """Which ids exist, by digest: those that were read, and those that were given since."""

    def __init__(self, order: Ordinals, ids: Digests) -> None:
        self._order = order
        self._ids = ids
        self._given: set[bytes] = set()
        self._counts: dict[str, int] = {}

    def free(self, id_: str, *, first: int) -> str:
        """Return the id with the first number that makes it new."""
        number = self._counts.get(id_, first)
        while self._exists(digest := digest_of(name := _numbered(id_, number))):
            number += 1
        self._counts[id_] = number + 1
        self._given.add(digest)
        return name

    def _exists(self, digest: bytes) -> bool:
        return digest in self._given or find_digest(self._order, self._ids, digest) is not None


def _numbered(id_: str, number: int) -> str:
    return id_ if number == 1 else f"{id_}#{number}"
