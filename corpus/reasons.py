"""Reasons for people: a few kinds a run, each with the words of the error that was behind it.

What an error says is data from outside: one line of it, scrubbed of keys, escaped and clipped.
"""

from __future__ import annotations

import re
from typing import Final

from executors.errors import ContextExceeded, NotEncodable, RetriesExhausted, RlmError
from executors.secrets import scrub

__all__ = ["Reasons", "first_words", "gist"]

_CLIP: Final = 120
_READ: Final = 4_000  # more than is shown, so that no secret is cut in half and shown
_MOST: Final = 16
# Ids, times and counters: what differs between two tellings of the same error.
_CHANGING: Final = re.compile(r"(?=[\w-]*\d)[\w-]{6,}")


class Reasons:
    """Makes the reasons of one judge or scan, so that they stay few.

    Errors that differ in an id or a counter share the words of the first; after `most` different
    ones a reason is the kind of the error alone.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[tuple[str, str], str] = {}

    def call_failed(self, error: RlmError) -> str:
        """Return the reason of items whose call failed."""
        cause: RlmError = error
        kind = "the call failed"
        if isinstance(error, RetriesExhausted):
            cause, kind = error.last, "the call failed after all its tries"
        kind = f"{kind}: {cause.code}"
        if isinstance(cause, ContextExceeded | NotEncodable):
            return kind  # speaks of its own items: as many words as windows
        return self.told(kind, cause.what)

    def told(self, kind: str, words: str) -> str:
        """Return a kind of error with its first words."""
        shown = first_words(words)
        key = (kind, gist(shown))
        known = self._known.get(key)
        if known is None:
            if not shown or len(self._known) >= self._most:
                return kind
            known = self._known[key] = f"{kind}: {shown}"
        return known


def first_words(text: str, limit: int = _CLIP) -> str:
    """Return the first line of a foreign text, fit for a reason; "" where there is none."""
    lines = text[:_READ].strip().splitlines()
    line = scrub(" ".join(lines[0].split())) if lines else ""
    shown = "".join(
        ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in line
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def gist(words: str) -> str:
    """Return what is the same in two tellings of one error."""
    return _CHANGING.sub("#", words)
