"""The front for `plan_count`: what a count would take, without taking it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from corpus.judges.base import JudgeKind
from corpus.questions import Question, as_question
from corpus.sources import SourceLike
from executors.endpoint.buckets import Limits
from executors.events import Event
from executors.gate.allowance import Caps
from executors.models.base import Model
from executors.models.encoders.load import Encoder
from executors.models.prices import Price, PriceList
from rlm.corpora import Corpus
from rlm.forecasts.forecast import CountPlan
from rlm.forecasts.rehearsal import Rehearsal
from rlm.options.options import CountOptions, OnDuplicate, Predicate
from rlm.sync import sync_twin

__all__ = ["LATENCY", "plan_count", "plan_count_sync", "plan_with"]

LATENCY: Final = 2.0
"""Seconds that a call is guessed to take."""


async def plan_count(
    question: str | Question,
    corpus: SourceLike | Corpus,
    *,
    model: str | Model | None = None,
    judge: JudgeKind | Predicate | None = None,
    encoder: str | Encoder | None = None,
    description: str | None = None,
    terms: tuple[str, ...] = (),
    passes: int = 2,
    window: int | None = None,
    window_tokens: int = 6_000,
    concurrency: int = 16,
    quotes: bool = False,
    caps: Caps | None = None,
    prices: Price | PriceList | None = None,
    limits: Limits | None = None,
    on_duplicate: OnDuplicate = "refuse",
    run: str | os.PathLike[str] | None = None,
    latency: float = LATENCY,
    on_event: Callable[[Event], None] | None = None,
) -> CountPlan:
    """Return what `count` with the same options would take: a dry run.

    The corpus is read and the requests are built, so that their number and their tokens are those
    of the count itself. No model is asked, no socket is opened and no key is needed. Replies that
    are cut, refused or unreadable, and calls that fail, cost more than is said here.

    Args:
        run: where this run has begun, what it has judged and paid is taken into account, and it is
            left as it is. Else the records are read into it, and `resume` counts them there; a pipe
            so needs to be read once only. None reads them into a temporary place.
        latency: seconds a call, for the time that it takes: a guess, and only for that.
        on_event: hears what is read, as in `count`.

    Raises:
        UsageError: an option, the source or the model are wrong.
    """
    options = CountOptions(
        model=model,
        judge=judge,
        encoder=encoder,
        description=description,
        terms=terms,
        passes=passes,
        window=window,
        window_tokens=window_tokens,
        concurrency=concurrency,
        quotes=quotes,
        caps=Caps() if caps is None else caps,
        prices=prices,
        limits=limits,
        on_duplicate=on_duplicate,
        run=run,
        on_event=on_event,
    )
    return await plan_with(as_question(question), corpus, options, latency=latency)


async def plan_with(
    question: Question,
    corpus: SourceLike | Corpus | None,
    options: CountOptions,
    *,
    latency: float = LATENCY,
) -> CountPlan:
    """Plan with options that were checked already; without a corpus, what the run has read."""
    return await Rehearsal(question, options, latency=latency).plan(corpus)


plan_count_sync = sync_twin(plan_count)
"""`plan_count` for code that is not async; also in notebooks."""
