"""The front for `resume`: a run goes on where it stopped, and pays nothing twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from corpus.judges.base import JudgeKind
from corpus.questions import Question
from corpus.sources import SourceLike
from corpus.votes import Votes
from executors.endpoint.buckets import Limits
from executors.engine.stop import Stop
from executors.errors import ConfigError, ValidationError
from executors.events import Event
from executors.gate.allowance import Caps
from executors.models.base import Model
from executors.models.encoders.load import Encoder
from executors.models.prices import Price, PriceList
from rlm.corpora import Corpus, open_corpus
from rlm.counting import CountOutcome
from rlm.counts.run import CountRun
from rlm.options.gates import GateLike, Human
from rlm.options.options import CountOptions, LabelsLike, Predicate
from rlm.options.other_model import OF_MODEL, asked_by, asks_another
from rlm.options.top_up import BudgetChange, BudgetLike
from rlm.recursion import RecurseOutcome, recurse_with
from rlm.recursions.options import RecurseOptions
from rlm.recursions.rebuilding import rebuilt
from rlm.recursions.wiring import Wiring
from rlm.runs.home import named_run
from rlm.runs.label_file import kept_labels
from rlm.runs.manifest import Manifest, question_of
from rlm.sync import sync_twin

__all__ = ["keeps_key", "resume", "resume_sync", "resumed", "resumed_recursion"]

_OF_COUNTS: Final = ("judge", "encoder", "labels", "engine")
"""What a recursion has no use for, or names otherwise."""
_BOUNDING: Final = frozenset({"caps", "engine", "limits", "prices", "replay"})


async def resume(
    run: str | os.PathLike[str],
    *,
    corpus: SourceLike | Corpus | None = None,
    model: str | Model | None = None,
    key_env: str | None = None,
    judge: JudgeKind | Predicate | None = None,
    encoder: str | Encoder | None = None,
    labels: LabelsLike | None = None,
    passes: int | None = None,
    votes: Votes | None = None,
    window: int | None = None,
    concurrency: int | None = None,
    engine: str | None = None,
    caps: Caps | None = None,
    prices: Price | PriceList | None = None,
    limits: Limits | None = None,
    on_event: Callable[[Event], None] | None = None,
    stop: Stop | None = None,
    budget: BudgetLike | None = None,
    gate: GateLike | None = None,
    human: Human | None = None,
) -> CountOutcome | RecurseOutcome:
    """Go on with a run, a count or a recursion: killed, interrupted, halted, out of quota, unresolved, or finished.

    What was answered is not asked again; what was refused, cut, unreadable or failed is. A call
    that was in flight when a process died is possibly paid: it is charged at its worst case, told,
    and asked again. Nothing has to be given that the run knows itself; what is given here holds
    from now on, so that other votes, say, are counted without a single call.

    Args:
        run: the directory of the run, or its id.
        corpus: reads the corpus again, grown, shuffled or edited: only new contents are paid for.
            None takes the records as the run read them.
        model, judge, encoder, prices: needed where the run was given an object in memory; a run
            that was made on another machine is asked for its model again. A model on another
            server takes its key from the key_env that is named with it, and another model its
            price and limits: those of the one before are dropped.
        caps: bounds of the run as a whole, all sessions together, but for the seconds.
        stop: ask it to end, so that what is in flight is answered first.
        budget: what the run may have in all, as "usd=20,calls=5000": a person's word, which raises its
            bounds, and those of its gate, and is written down.
        gate: another gate than the one that the run has kept. A run that was made on another machine
            brings no gate along: it is asked for one.
        human: asked where the gate wants a person.

    A recursion grows the same tree again from what was answered, and goes on from there. It takes no
    judge, encoder, labels and engine; for other changes than these, call
    `recurse(task, ..., run=run)`.

    Returns:
        As `count`, or as `recurse`; totals are those of all sessions.

    Raises:
        RunDirError: there is no such run, or another process works on it.
        ConfigError: the run needs what only the caller has.
    """
    given: dict[str, object] = {
        "model": model,
        "key_env": key_env,
        "judge": judge,
        "encoder": encoder,
        "labels": labels,
        "passes": passes,
        "votes": votes,
        "window": window,
        "concurrency": concurrency,
        "engine": engine,
        "caps": caps,
        "prices": prices,
        "limits": limits,
        "on_event": on_event,
        "stop": stop,
        "top_up": None if budget is None else BudgetChange.read(budget),
        "gate": gate,
        "human": human,
    }
    if Manifest.load(named_run(run)).kind == "recurse":
        task, wiring, options_again = resumed_recursion(run, {**given, "corpus": corpus})
        return await recurse_with(task, wiring, options_again)
    question, again, options = resumed(run, given)
    opened = again if corpus is None else open_corpus(corpus)
    return await CountRun(question, options).outcome(opened)


resume_sync = sync_twin(resume)
"""`resume` for code that is not async; also in notebooks."""


def resumed(
    run: str | os.PathLike[str], given: Mapping[str, object]
) -> tuple[Question, Corpus | None, CountOptions]:
    """Return what a run is about, its corpus where that has to be read, and its options.

    Args:
        given: options that hold from now on, by name; None leaves one as it was.

    Raises:
        RunDirError: there is no such run.
        ConfigError: the run needs what only the caller has.
    """
    directory = named_run(run)
    manifest = Manifest.load(directory)
    changes = {name: value for name, value in given.items() if value is not None}
    if "labels" not in changes and (labels := kept_labels(directory)):
        changes["labels"] = labels
    if not keeps_key(manifest.options, changes):
        changes.setdefault("key_env", None)
    _require(manifest, directory, changes)
    if asks_another(asked_by(manifest), changes.get("model")):
        changes = {**dict.fromkeys(OF_MODEL), **changes}
    options = CountOptions.of_record(_trusted(manifest), run=directory, **changes)
    return question_of(manifest), _again(manifest, directory), options


def resumed_recursion(
    run: str | os.PathLike[str], given: Mapping[str, object]
) -> tuple[str, Wiring, RecurseOptions]:
    """Return the task of a recursion, who works at it, and how.

    Args:
        given: options that hold from now on, by name; None leaves one as it was.

    Raises:
        RunDirError: there is no such run.
        ConfigError: the run needs what only the caller has.
        ValidationError: an option that a recursion has no use for.
    """
    directory = named_run(run)
    manifest = Manifest.load(directory)
    changes = {name: value for name, value in given.items() if value is not None}
    for name in _OF_COUNTS:
        if name in changes:
            raise ValidationError(
                f"{name} has no effect: the run in {str(directory)!r} is a recursion",
                hint="leave it out, or go on with rlm.recurse(task, …, run=…)",
            )
    wired = {field.name for field in fields(Wiring)}
    wiring = {name: value for name, value in changes.items() if name in wired}
    options = {name: value for name, value in changes.items() if name not in wired}
    return manifest.question, *rebuilt(manifest, directory, options, wiring)


def keeps_key(record: Mapping[str, object], changes: Mapping[str, object]) -> bool:
    """Whether the key of a run may go where its model now is: to the same server alone."""
    was, now = record.get("model"), changes.get("model")
    return now is None or _server(was) == _server(now)


def _server(model: object) -> str | None:
    """Return a spec without the name of its model; None of what is no spec."""
    return model.rpartition(":")[0] if isinstance(model, str) else None


def _require(manifest: Manifest, directory: Path, given: Mapping[str, object]) -> None:
    """Refuse to go on without what only the caller has."""
    for name, was in manifest.objects.items():
        if name == "labels" and name not in given:  # they are kept once the records are read
            raise ConfigError(
                f"the run in {str(directory)!r} ended before it had kept its labels: {was}",
                hint="give them again: resume(run, labels=…), or: "
                "rlm count SOURCE QUESTION --run RUN_DIR --labels FILE",
            )
        if name not in given:
            raise ConfigError(
                f"the run in {str(directory)!r} was given an object as {name}: {was}",
                hint=f"give it again: resume(run, {name}=…)",
            )
    named = manifest.options.get("model")
    if manifest.foreign and named is not None and "model" not in given:
        raise ConfigError(
            f"the run in {str(directory)!r} was made elsewhere, and asks {named!r}",
            where="neither its model nor the name of a key is taken from there",
            hint="name the model yourself: resume(run, model=…) (--model), and key_env (--key-env)",
        )


def _trusted(manifest: Manifest) -> Mapping[str, object]:
    """Return what a run recorded; of one made elsewhere not who works, nor what bounds its spend."""
    if not manifest.foreign:
        return manifest.options
    return {name: value for name, value in manifest.options.items() if name not in _BOUNDING}


def _again(manifest: Manifest, directory: Path) -> Corpus | None:
    """Return None where the run has its records, else its source, opened again."""
    spec = manifest.source
    if spec is None or manifest.foreign or (directory / "spool" / "meta.json").exists():
        return None
    return open_corpus(
        spec.source,
        id=spec.id,
        text=spec.text,
        query=spec.query,
        format=spec.format,
        encoding=spec.encoding,
        on_bad=spec.on_bad,
    )
