"""Each line bound to the one before it by the same writer.

The last field of a line, `link`, is a hash (BLAKE2b, 128 bits) over the link before and the bytes of
the line in front of it. So a line that was changed does not fit its own link, and one that was removed
or moved leaves a gap in the links and numbers of its writer. Whoever can write the file can compute
all links anew: without a link that was published elsewhere, lines that fit are consistent and no more.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

__all__ = ["BEGIN", "LINK_BYTES", "linked", "next_link", "unlinked"]

_SIZE: Final = 16
BEGIN: Final = bytes(_SIZE)
"""What the first line of a writer is bound to."""
_FIELD: Final = b',"link":"'
_END: Final = b'"}\n'
LINK_BYTES: Final = len(_FIELD) + 2 * _SIZE + len(_END)
"""By which a line grows, its brace included."""


def next_link(link: bytes, body: bytes) -> bytes:
    """Return the link of a line.

    Args:
        link: of the line before.
        body: the line up to its own link.
    """
    return blake2b(link + body, digest_size=_SIZE).digest()


def linked(body: bytes, link: bytes) -> bytes:
    """Return a whole line of its body, an object without its closing brace, and of its link."""
    return body + _FIELD + link.hex().encode() + _END


def unlinked(line: bytes) -> tuple[bytes, bytes] | None:
    """Return body and link of a line; None where it has none."""
    start = len(line) - LINK_BYTES
    if start < 1 or line[start : start + len(_FIELD)] != _FIELD or not line.endswith(_END):
        return None
    digits = line[start + len(_FIELD) : -len(_END)]
    try:
        return line[:start], bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        return None
