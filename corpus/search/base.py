"""A hit, and the protocol of whatever finds some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from executors.errors import ValidationError

__all__ = ["MAX_LIMIT", "Hit", "How", "Searcher", "require_limit"]

MAX_LIMIT: Final = 1_000
"""Hits an answer may have: who wants more wants a scan."""

How = Literal["all-words", "some-words", "meaning", "words-and-meaning", "memory"]
"""Why a record was found: it holds every word of the query that tells records apart, some of them, it
means something near, both words and meaning speak for it, or a store of memories gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One record that was found."""

    id: str
    ordinal: int | None
    """Place of the record in the spool, from 0; None for what lies in no spool."""
    score: float
    """Higher is better, among the hits of one answer that were found the same way."""
    snippet: str
    """The passage that shows it, in the record's own characters."""
    span: tuple[int, int]
    """Where the passage begins and ends in the record's text, in characters."""
    length: int
    """Characters of the whole text."""
    how: How
    kind: str = "record"
    """What it is: "record", or what its store calls it."""
    identical: int = 0
    """Further records with the same text; they are not listed."""


class Searcher(Protocol):
    """Finds records. Any number of tasks may use one at once."""

    @property
    def name(self) -> str:
        """For people and models: "words", "meaning"."""
        ...

    @property
    def records(self) -> int | None:
        """Records that are searched; None where that is not known."""
        ...

    async def search(self, query: str, *, limit: int = 8) -> tuple[Hit, ...]:
        """Return the best hits, best first; none when nothing matches, which is no error.

        Raises:
            ValidationError: the query holds nothing to look for, or the limit is no number of hits.
            RunDirError: the index cannot be read.
        """
        ...


def require_limit(limit: int) -> None:
    """Refuse what is no number of hits.

    Raises:
        ValidationError: it is not within 1 and `MAX_LIMIT`.
    """
    given: object = limit
    if type(given) is not int or not 1 <= given <= MAX_LIMIT:
        raise ValidationError(f"limit={limit!r}", hint=f"choose 1 to {MAX_LIMIT} hits")
