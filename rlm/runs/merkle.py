"""Hashes over many things at once: a tree whose leaves can be proved one by one, and a chain.

The tree is that of RFC 6962 (Certificate Transparency), section 2.1, with BLAKE2b at 256 bits for
its hash: leaves begin with 0x00 and inner nodes with 0x01, so that neither passes for the other,
and n leaves split at the largest power of two below n. So one leaf is proved by log2(n) hashes.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

__all__ = ["Chain", "MerkleTree", "sized"]

_SIZE: Final = 32
_EMPTY: Final = blake2b(digest_size=_SIZE).hexdigest()


def sized(*parts: str | bytes) -> bytes:
    """Join parts, each behind its length, so that no two different sequences of parts meet."""
    found = bytearray()
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        found += len(raw).to_bytes(8, "big") + raw
    return bytes(found)


class MerkleTree:
    """Takes leaves one after another; holds log2(n) hashes, whatever n is."""

    def __init__(self) -> None:
        self._count = 0
        self._peaks: list[bytes] = []
        """Roots of the whole trees so far, the largest first: one for each 1 of the count."""

    def add(self, leaf: bytes) -> None:
        """Take one leaf."""
        found = blake2b(b"\x00" + leaf, digest_size=_SIZE).digest()
        left = self._count
        while left & 1:
            found = _inner(self._peaks.pop(), found)
            left >>= 1
        self._peaks.append(found)
        self._count += 1

    def root(self) -> str:
        """Return the hash over all leaves so far, as hex."""
        if not self._peaks:
            return _EMPTY
        found = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            found = _inner(peak, found)
        return found.hex()


class Chain:
    """A hash over lines in their order: each link over the one before and the next line."""

    def __init__(self) -> None:
        self._link = bytes(_SIZE)

    def add(self, line: bytes) -> None:
        """Take the next line."""
        self._link = blake2b(self._link + line, digest_size=_SIZE).digest()

    @property
    def root(self) -> str:
        """The last link, as hex."""
        return self._link.hex()


def _inner(left: bytes, right: bytes) -> bytes:
    return blake2b(b"\x01" + left + right, digest_size=_SIZE).digest()
