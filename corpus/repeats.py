"""Equal digests among millions: sorted with numpy, 16 bytes each, no Python object a record."""

from __future__ import annotations

from bisect import bisect_left
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from corpus.identity import DIGEST_SIZE

__all__ = [
    "Digests",
    "Lookup",
    "Ordinals",
    "find_digest",
    "fingerprint",
    "first_of_each",
    "later_repeats",
    "sorted_order",
]

Digests = NDArray[np.uint8]
"""One digest a row, 16 bytes."""
Ordinals = NDArray[np.uint32]

_CHUNK = 1 << 16


def sorted_order(digests: Digests) -> tuple[Ordinals, NDArray[np.bool_]]:
    """Return ordinals by digest, equal ones in order, and whether each repeats the one before.

    O(n log n); about 40 bytes a record at its peak.
    """
    words = digests.view(">u8")
    order = np.argsort(words[:, 0].astype(np.uint64), kind="stable").astype(np.uint32)
    same_high, same_low = _equal_neighbours(words, order)
    if np.any(same_high & ~same_low):
        # Half a digest met by chance: sort by the whole of it.
        high, low = words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)
        order = np.lexsort((low, high)).astype(np.uint32)
        same_high, same_low = _equal_neighbours(words, order)
    repeats = np.zeros(len(order), dtype=np.bool_)
    repeats[1:] = same_high & same_low
    return order, repeats


def _equal_neighbours(
    words: NDArray[np.uint64], order: Ordinals
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether each half of a digest is that of the one before, in this order."""
    high, low = words[:, 0][order], words[:, 1][order]
    return high[1:] == high[:-1], low[1:] == low[:-1]


def find_digest(order: Ordinals, digests: Digests, digest: bytes) -> int | None:
    """Return the first ordinal with this digest; O(log n) looks, so the arrays may be files."""
    place = bisect_left(order, digest, key=lambda ordinal: digests[ordinal].tobytes())
    if place < len(order) and digests[order[place]].tobytes() == digest:
        return int(order[place])
    return None


class Lookup:
    """Finds ordinals by digest, many at a time.

    Args:
        digests: of all records.
        among: the ordinals that may be found, no two of them with the same digest.
    """

    def __init__(self, digests: Digests, among: Ordinals) -> None:
        order, _ = sorted_order(digests[among])
        self._ordinals = among[order].astype(np.int64)
        words = digests[self._ordinals].view(">u8")
        self._high, self._low = words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)

    def ordinals(self, digests: bytes) -> list[int]:
        """Return the ordinal of each digest, 16 bytes after 16 bytes; -1 where there is none."""
        if len(self._ordinals) == 0:
            return [-1] * (len(digests) // DIGEST_SIZE)
        words = np.frombuffer(digests, dtype=">u8").reshape(-1, 2).astype(np.uint64)
        places = np.searchsorted(self._high, words[:, 0])
        last = len(self._high) - 1
        while True:  # more than once only where halves of digests met by chance
            safe = np.minimum(places, last)
            same_high = (places <= last) & (self._high[safe] == words[:, 0])
            on = same_high & (self._low[safe] != words[:, 1])
            if not on.any():
                found: list[int] = np.where(same_high, self._ordinals[safe], -1).tolist()
                return found
            places = places + on


def first_of_each(order: Ordinals, repeats: NDArray[np.bool_]) -> Ordinals:
    """Return for each ordinal the first one with the same digest."""
    leaders = order[~repeats]
    first = np.empty(len(order), dtype=np.uint32)
    if len(order):
        first[order] = leaders[np.cumsum(~repeats, dtype=np.uint32) - 1]
    return first


def later_repeats(order: Ordinals, repeats: NDArray[np.bool_]) -> Ordinals:
    """Return the ordinals whose digest stood before, in order."""
    return np.sort(order[repeats])


def fingerprint(order: Ordinals, ids: Digests, texts: Digests) -> str:
    """Hash ids with texts in the order of ids, so that a corpus in another order is the same."""
    whole = blake2b(digest_size=DIGEST_SIZE)
    whole.update(len(order).to_bytes(8, "big"))
    for start in range(0, len(order), _CHUNK):
        chosen = order[start : start + _CHUNK]
        whole.update(np.concatenate((ids[chosen], texts[chosen]), axis=1).tobytes())
    return whole.hexdigest()
