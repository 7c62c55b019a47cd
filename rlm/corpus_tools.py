"""Tools over a corpus for workers of your own: count it, search it, match it exactly.

`recurse` offers them by itself (`retrieval="tools"`). Made here they can be handed to any worker, and
hold a corpus that is another one than that of the task. The source is read once, when one of its tools
is first called.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypeGuard, cast

import corpus.tools as made
from corpus.results import Tally
from corpus.search.base import Searcher, require_limit
from corpus.shelf import Shelf
from corpus.sources import SourceLike
from corpus.tools import ScanFound
from executors.errors import Halted, ValidationError
from executors.gate.allowance import Caps
from executors.models.base import Model
from executors.models.prices import Price, PriceList
from executors.tools.base import Tool
from rlm.corpora import Corpus, open_corpus
from rlm.counting import count
from rlm.options.options import CountOptions
from rlm.outcome import Completed

__all__ = ["build_exact_tool", "build_scan_tool", "build_search_tool"]


def build_scan_tool(
    source: SourceLike | Corpus,
    *,
    model: str | Model,
    window: int = 8,
    passes: int = 2,
    concurrency: int = 16,
    caps: Caps | None = None,
    prices: Price | PriceList | None = None,
) -> Tool:
    """Return the tool `scan_count`: every record is judged by a model, code counts.

    Each call is a count of its own, with a run directory and a receipt of its own.

    Args:
        source: as in `count`.
        model: the judge.
        caps: bounds of one call of the tool.

    Raises:
        ValidationError: what is no source, no model or no bound: here, and not to the model that
            calls the tool.
    """
    if cast("object", model) is None:
        raise ValidationError(
            "model=None judges nothing", where="rlm.build_scan_tool", hint="name the judge"
        )
    CountOptions(
        model=model,
        window=window,
        passes=passes,
        concurrency=concurrency,
        caps=Caps() if caps is None else caps,
        prices=prices,
    )
    shelf = _shelf(source)

    async def counted(question: str) -> ScanFound:
        spool = await shelf.spool()
        outcome = await count(
            question,
            iter(spool),
            model=model,
            window=window,
            passes=passes,
            concurrency=concurrency,
            caps=caps,
            prices=prices,
        )
        found = outcome.result if isinstance(outcome, Completed) else outcome.best
        if not isinstance(found, Tally):
            missing = () if isinstance(outcome, Completed) else outcome.missing
            raise Halted(bound="scan", scope="scan_count", limit="; ".join(missing)[:200])
        return ScanFound.of(found, window=window)

    return made.build_scan_tool(counted)


def build_search_tool(source: SourceLike | Corpus | Searcher, *, limit: int = 8) -> Tool:
    """Return the tool `search_memory`: the few records that fit some words best.

    Args:
        source: as in `count`; or what searches already, such as a store of memories.
        limit: hits that are shown.

    Raises:
        ValidationError: what is no source, or no number of hits.
    """
    require_limit(limit)
    if _searches(source):
        return made.build_search_tool(source, limit=limit)
    return made.build_search_tool(_shelf(cast("SourceLike | Corpus", source)).searcher, limit=limit)


def build_exact_tool(source: SourceLike | Corpus) -> Tool:
    """Return the tool `exact_match`: the records that hold exact terms, compared by code."""
    return made.build_exact_tool(_shelf(source).spool)


def _searches(source: object) -> TypeGuard[Searcher]:
    return callable(getattr(source, "search", None))


def _shelf(source: SourceLike | Corpus) -> Shelf:
    opened = open_corpus(source)
    folder = tempfile.TemporaryDirectory(prefix="rlm-corpus-")
    shelf = Shelf.reading(opened.source, Path(folder.name) / "spool")
    _folders[id(shelf)] = folder  # it goes with the process
    return shelf


_folders: dict[int, tempfile.TemporaryDirectory[str]] = {}
