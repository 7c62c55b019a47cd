"""Several searches as one, by reciprocal rank fusion, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from corpus.search.base import MAX_LIMIT, Hit, How, Searcher, require_limit
from corpus.search.terms import TermSearch
from corpus.search.vectors import VectorSearch
from corpus.spool import Spool
from executors.errors import ValidationError
from executors.models.encoders.base import Encoder

__all__ = ["HybridSearch", "open_search"]

_DAMPING: Final = 60  # the constant of the paper
_DEPTH: Final = 50  # hits of each search that are fused


class HybridSearch:
    """Fuses searches: each hit scores the sum of 1 / (60 + its rank) over those that found it.

    Ranks alone count, so scores of different kinds never have to be compared. Source: Cormack,
    Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods", SIGIR 2009.

    Raises:
        ValidationError: there is none to fuse.
    """

    def __init__(self, searchers: Sequence[Searcher]) -> None:
        if not searchers:
            raise ValidationError("there is no search to fuse", hint="give one or more")
        self._searchers = tuple(searchers)

    @property
    def name(self) -> str:
        return " and ".join(searcher.name for searcher in self._searchers)

    @property
    def records(self) -> int | None:
        known = [searcher.records for searcher in self._searchers]
        return None if None in known else known[0]

    async def search(self, query: str, *, limit: int = 8) -> tuple[Hit, ...]:
        require_limit(limit)
        depth = min(MAX_LIMIT, max(_DEPTH, limit))
        rankings = [await s.search(query, limit=depth) for s in self._searchers]
        return tuple(_fused(rankings)[:limit])


def _fused(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return all hits, best first; ties in the order in which they were first found."""
    scores: dict[tuple[str, str], float] = {}
    hits: dict[tuple[str, str], Hit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            key = hit.kind, hit.id
            scores[key] = scores.get(key, 0.0) + 1 / (_DAMPING + rank)
            known = hits.setdefault(key, hit)
            hits[key] = replace(known, how=_both(known.how, hit.how))
    best = sorted(hits, key=lambda key: -scores[key])
    return [replace(hits[key], score=scores[key]) for key in best]


def _both(first: How, second: How) -> How:
    return first if first == second else "words-and-meaning"


async def open_search(
    spool: Spool,
    directory: Path,
    *,
    encoder: Encoder | None = None,
    fresh: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Searcher:
    """Open what searches a spool: words, and meaning too where an encoder is given.

    Args:
        directory: where the derived files are kept; best the spool's own folder, so that whoever
            erases the one erases the other.
        fresh: build them whatever stands there: no file from elsewhere is opened.

    Raises:
        RunDirError: the derived files cannot be written.
        ConfigError: this Python's SQLite has no full-text search.
        ModelError: the encoder failed.
    """
    words = await TermSearch.open(spool, directory, fresh=fresh, on_progress=on_progress)
    if encoder is None:
        return words
    meaning = await VectorSearch.open(
        spool, directory, encoder, fresh=fresh, on_progress=on_progress
    )
    return HybridSearch([words, meaning])
