"""A type for secrets, and the one scrubber of everything we write."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final
from urllib.parse import urlsplit, urlunsplit

__all__ = ["Secret", "mask", "scrub", "scrub_url"]

_MASK: Final = "[secret]"
# Shapes of keys that no text of ours has a reason to hold, known or not.
_SHAPES: Final = re.compile(
    r"(?i)\b(?:sk|pk|rk|key)-[a-z0-9_-]{16,}|\bbearer\s+[a-z0-9._~+/-]{8,}=*|\bAIza[\w-]{20,}"
)
_known: set[str] = set()


class Secret:
    """A value that never shows itself; `reveal()` is called only where a header is written.

    Creating one registers its value with `scrub`, so that an echo of it from a server is masked.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        if len(value) >= 6:
            _known.add(value)

    def reveal(self) -> str:
        """Return the value itself."""
        return self._value

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that tell keys apart without showing them."""
        return blake2b(self._value.encode("utf-8", "replace"), digest_size=4).hexdigest()

    def __repr__(self) -> str:
        return f"Secret({_MASK})"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "a Secret is never pickled: read it from the environment where it is needed"
        )


def mask(text: str) -> str:
    """Mask each known secret and nothing else: what only looks like a key may be somebody's data."""
    for value in sorted(_known, key=len, reverse=True):
        if value in text:
            text = text.replace(value, _MASK)
    return text


def scrub(text: str) -> str:
    """Mask each known secret and whatever has the shape of a key."""
    return _SHAPES.sub(_MASK, mask(text))


def scrub_url(url: str) -> str:
    """Drop user info, query and fragment of a URL: keys hide in each of them."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return scrub(urlunsplit((parts.scheme, host, parts.path, "", "")))
