"""Runs a count that was checked, shows its progress, writes and prints what came out."""

from __future__ import annotations

import sys
from dataclasses import replace

import anyio

from corpus.questions import Question
from corpus.results import Tally
from executors.errors import InternalError, RlmError
from rlm.cli.exits import Exit
from rlm.cli.printing import print_json
from rlm.cli.report import outcome_json, report
from rlm.cli.watch import Watch
from rlm.corpora import Corpus
from rlm.counting import CountOutcome, count_with
from rlm.options import CountOptions
from rlm.outcome import Completed
from rlm.outputs import Target, Written, write_result
from rlm.render.progress import Progress, Standing
from rlm.runs import data_home

__all__ = ["run_count"]


def run_count(
    question: Question,
    corpus: Corpus,
    options: CountOptions,
    target: Target | None,
    *,
    as_json: bool,
) -> int:
    """Count, print the result to standard output, and return the exit code."""
    with Watch(options.caps, stream=sys.stderr) as watch:
        watched = replace(options, on_event=watch)
        try:
            outcome = anyio.run(_counted, question, corpus, watched, watch)
        except KeyboardInterrupt:
            if watch.run is not None:
                directory = options.run or data_home() / watch.run
                watch.say(f"what was done until now: {directory}")
            raise
    written = _write(outcome, target)
    if as_json:
        print_json(outcome_json(outcome, written))
    else:
        report(outcome, written)
    return Exit.DONE if isinstance(outcome, Completed) else Exit.INCOMPLETE


async def _counted(
    question: Question, corpus: Corpus, options: CountOptions, watch: Watch
) -> CountOutcome:
    outcome: CountOutcome | None = None
    failed: RlmError | KeyboardInterrupt | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(watch.ticking)
        try:
            outcome = await count_with(question, corpus, options)
        except (RlmError, KeyboardInterrupt) as error:
            failed = error  # leaving the group it would be wrapped in a group of errors
        group.cancel_scope.cancel()
    if outcome is None:
        raise failed or InternalError("a count ended without an outcome")
    return outcome


def _write(outcome: CountOutcome, target: Target | None) -> Written | None:
    best = outcome.result if isinstance(outcome, Completed) else outcome.best
    if best is None or target is None:
        return None
    with Progress(f"write {target.path.name}", stream=sys.stderr) as progress:
        # A ranking leaves out what has no score.
        total = best.records if isinstance(best, Tally) else None
        progress.update(Standing(total=total, unit="rows", unresolved=None))
        return write_result(best, target, on_rows=progress.add)
