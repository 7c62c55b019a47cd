"""The front for `count`: how many records match, and which."""

from __future__ import annotations

import os
from collections.abc import Callable

from corpus.judges.base import JudgeKind
from corpus.questions import Question, as_question
from corpus.sources import SourceLike
from corpus.votes import Votes
from executors.endpoint.buckets import Limits
from executors.engine.stop import Stop
from executors.events import Event
from executors.gate.allowance import Caps
from executors.models.base import Model
from executors.models.encoders.load import Encoder
from executors.models.prices import Price, PriceList
from rlm.corpora import Corpus
from rlm.counts.ending import CountOutcome
from rlm.counts.run import CountRun
from rlm.labels import AskLabels
from rlm.options.gates import GateLike, Human
from rlm.options.options import LOCAL, CountOptions, LabelsLike, OnDuplicate, Predicate
from rlm.sync import sync_twin

__all__ = ["CountOutcome", "count", "count_sync", "count_with"]


async def count(
    question: str | Question,
    corpus: SourceLike | Corpus,
    *,
    model: str | Model | None = None,
    key_env: str | None = None,
    judge: JudgeKind | Predicate | None = None,
    encoder: str | Encoder | None = None,
    words: int = 60,
    labels: LabelsLike | None = None,
    positive: str | None = None,
    ask_labels: AskLabels | None = None,
    description: str | None = None,
    terms: tuple[str, ...] = (),
    passes: int = 2,
    votes: Votes = "any",
    window: int | None = None,
    window_tokens: int = 6_000,
    concurrency: int = 16,
    engine: str = LOCAL,
    quotes: bool = False,
    caps: Caps | None = None,
    prices: Price | PriceList | None = None,
    limits: Limits | None = None,
    on_duplicate: OnDuplicate = "refuse",
    run: str | os.PathLike[str] | None = None,
    replay: str | os.PathLike[str] | None = None,
    cache: bool = True,
    on_event: Callable[[Event], None] | None = None,
    stop: Stop | None = None,
    gate: GateLike | None = None,
    human: Human | None = None,
) -> CountOutcome:
    """Count the records of a corpus that match a question. Every record is judged, code counts.

    Args:
        question: text is a yes/no question, asked verbatim; or `YesNo`, `OneOf`.
        corpus: a path, a data frame, an iterable, or what `open_corpus` returned.
        model: a spec such as "openai:gpt-x" or "openai+http://localhost:8000/v1:name", or a Model.
            Without one the judge is the embedded encoder, also when a key is in the environment.
        key_env: name of the environment variable that holds the key of a custom URL.
        judge: "chat", "logprob", "encoder", "rule", or your own predicate; by default the encoder
            without a model and chat with one.
        encoder: a spec such as "encoder:minilm", or an Encoder.
        words: how many words of each record the encoder reads; what it did not read is counted.
        labels: what a person said of some records: a CSV file with id and label, the name of a
            column of the source, or a mapping by id. They teach the encoder's head, and they
            override any judge for these records.
        positive: for a yes/no question, the label that means yes; every other one means no.
        ask_labels: asks a person for labels once the corpus is read.
        description: what a match looks like, for ranking without labels.
        terms: words of which any one makes a match, for the rule judge.
        passes: how often each record is judged, each time among other neighbours; a
            deterministic judge runs once.
        votes: "any", "majority" or "all"; see `corpus.votes.fold_passes`.
        window: records shown at once; None takes the judge's own.
        window_tokens: estimated tokens of a window; a longer record is read in parts.
        concurrency: windows in flight, on all workers together.
        engine: who does the work: "local" is this process; "dask" starts one process a core,
            "dask:N" so many; "dask://HOST:PORT" joins a cluster, whose workers take the key from
            their own environment. A script that starts processes guards what it runs with
            `if __name__ == "__main__":`.
        quotes: ask a chat judge for a quote, which code looks up in the record.
        caps: bounds of the run; finite by default.
        prices: the price of the model's tokens, or a list of prices; None knows only that what
            runs here is free. What has no price draws nothing on the bound of USD.
        limits: calls and tokens a minute that the server allows, which are kept; None finds out
            from its refusals.
        on_duplicate: "refuse", or "suffix" to go on with repeated or empty ids.
        run: the directory of the run; a new one in the user's data directory when None. A run that
            is there already is gone on with: only contents without a verdict are paid for.
            Its options are those of this call; `resume(run, corpus=...)` keeps the run's own.
        replay: a recorded run whose answers are given again, failures too: no server is asked.
        cache: keep embeddings in the user's cache directory.
        on_event: called with each event on the loop's thread; must not block. Where it raises it
            is called no more, which the receipt tells, and the count goes on.
        stop: ask it to end, from any thread, so that what is in flight is answered first.
        gate: what every call of a model has to pass, and which keeps the books: a Gate, a
            configuration, or the file of one. It is kept in the run, and governs it from then on.
        human: asked where the gate wants a person, as where a bound is reached.

    Returns:
        `Completed` with a `Tally` that accounts for every record, or `Incomplete` with the best
        there is and what is missing.

    Raises:
        UsageError: an option, the source, the model or the labels are wrong; nothing was spent.
        ReplayMiss: a call was not recorded, since something else than before decides it, or since
            the recorded run had stopped early.

    A cancellation or KeyboardInterrupt that ends it carries a note that names the run to resume.
    """
    options = CountOptions(
        model=model,
        key_env=key_env,
        judge=judge,
        encoder=encoder,
        words=words,
        labels=labels,
        positive=positive,
        ask_labels=ask_labels,
        description=description,
        terms=terms,
        passes=passes,
        votes=votes,
        window=window,
        window_tokens=window_tokens,
        concurrency=concurrency,
        engine=engine,
        quotes=quotes,
        caps=Caps() if caps is None else caps,
        prices=prices,
        limits=limits,
        on_duplicate=on_duplicate,
        run=run,
        replay=replay,
        cache=cache,
        on_event=on_event,
        stop=stop,
        gate=gate,
        human=human,
    )
    return await count_with(question, corpus, options)


async def count_with(
    question: str | Question, corpus: SourceLike | Corpus | None, options: CountOptions
) -> CountOutcome:
    """Count with options that were checked already; without a corpus, what the run has read."""
    return await CountRun(as_question(question), options).outcome(corpus)


count_sync = sync_twin(count)
"""`count` for code that is not async; also in notebooks."""
