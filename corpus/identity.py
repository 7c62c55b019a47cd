"""When two ids are the same: exactly, or for matching alone by a documented normal form."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

__all__ = ["DIGEST_SIZE", "digest_of", "normal_id"]

DIGEST_SIZE = 16
_ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))


def normal_id(id_: str) -> str:
    r"""Return NFC without zero-width characters and outer white space (no-break spaces too).

    It serves to find a record by what a person or a file calls it; the record keeps its own id.

    Example:
        >>> normal_id("\u200bA1\u00a0")
        'A1'
    """
    if id_.isascii():
        return id_.strip()
    return unicodedata.normalize("NFC", id_.translate(_ZERO_WIDTH)).strip()


def digest_of(text: str) -> bytes:
    """Return 128 bits of BLAKE2b of the text in UTF-8."""
    return blake2b(text.encode("utf-8"), digest_size=DIGEST_SIZE).digest()
