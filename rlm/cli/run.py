"""Runs a count that was checked, shows its progress, writes and prints what came out."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, assert_never

import anyio

from corpus.questions import Question
from corpus.results import Ranking, Tally
from executors.engine.stop import Stop
from executors.errors import OutputError, RunDirError
from rlm.cli.exits import Exit, exit_of
from rlm.cli.faults import say_error
from rlm.cli.interrupt import name_of, stopped_by
from rlm.cli.report import Report
from rlm.cli.show import RESUMABLE, load_receipts, resume_hint
from rlm.cli.stoppable import stoppable
from rlm.cli.watch import Watch
from rlm.corpora import Corpus
from rlm.counting import CountOutcome, count_with
from rlm.options.options import CountOptions
from rlm.outcome import Completed, Incomplete
from rlm.outputs import Target, Written, write_result
from rlm.receipts.receipts import Receipts
from rlm.render.progress import Progress, Standing
from rlm.runs.exports import note_export
from rlm.runs.home import data_home
from rlm.runs.raising import raises

__all__ = ["run_count"]

# What a later session may not go past; each session has its own seconds.
_BOUND: Final = re.compile(r"\((--max-(?:calls|tokens|usd))\)")


def run_count(
    question: Question,
    corpus: Corpus | None,
    options: CountOptions,
    target: Target | None,
    *,
    as_json: bool,
) -> int:
    """Count, print the result to standard output, and return the exit code."""
    directory = None if options.run is None else str(options.run)
    with Watch(options.caps, stream=sys.stderr, directory=directory) as watch:
        try:
            outcome = anyio.run(_counted, question, corpus, options, watch)
        except KeyboardInterrupt:
            _show_stopped(options, watch, as_json=as_json)
            raise
    best: Tally | Ranking | None
    match outcome:
        case Completed():
            code, best = Exit.DONE, outcome.result
            report = Report(receipts=outcome.receipts)
        case Incomplete():
            code, best = Exit.INCOMPLETE, outcome.best
            report = Report(receipts=outcome.receipts, missing=_with_resume(outcome))
        case _:
            assert_never(outcome)
    try:
        report = replace(report, written=_write(best, target, outcome.receipts.directory))
    except OutputError as error:
        # The count is there: it is shown first, and then what became of the file.
        report = replace(report, unwritten=_kept(error, best, outcome.receipts))
    except KeyboardInterrupt:
        _print(report, as_json=as_json)
        raise
    _print(report, as_json=as_json)
    if report.unwritten is None:
        return code
    say_error(report.unwritten)
    return exit_of(report.unwritten)


def _print(report: Report, *, as_json: bool) -> None:
    try:
        report.print(as_json=as_json)
        sys.stdout.flush()
    except OutputError as error:
        shown = f"rlm show {shlex.quote(str(report.receipts.directory))}"
        raise OutputError(error.what, hint=f"nothing is lost: {shown}") from None


def _kept(error: OutputError, best: Tally | Ranking | None, receipts: Receipts) -> OutputError:
    """Say how the rows can be had after all; a ranking is not kept, but its embeddings are."""
    again = f"rlm show {shlex.quote(str(receipts.directory))} --out FILE"
    hint = f"nothing is lost: make room or name another place, then: {again}"
    if isinstance(best, Ranking):
        hint = "make room or name another place, then rank again"
    return OutputError(error.what, where=error.where, hint=hint)


def _with_resume(outcome: Incomplete[Tally | Ranking]) -> tuple[str, ...]:
    if outcome.blocker not in RESUMABLE or raises(outcome.missing):
        return outcome.missing
    # Past a bound the run goes on only with a higher one.
    bound = next(filter(None, map(_BOUND.search, outcome.missing)), None)
    higher = f" {bound[1]} MORE" if bound else ""
    return (*outcome.missing, f"{resume_hint(outcome.receipts)}{higher}")


def _show_stopped(options: CountOptions, watch: Watch, *, as_json: bool) -> None:
    """Show what was done until the signal, if the run came so far that it has a receipt."""
    if watch.run is None:
        return
    directory = Path(options.run or data_home() / watch.run)
    try:
        receipts = load_receipts(directory)
    except RunDirError:
        return
    missing = (f"stopped by {name_of(stopped_by())}", resume_hint(receipts))
    report = Report(receipts=receipts, missing=missing)
    with suppress(BrokenPipeError, OutputError):  # a terminal that hung up reads no more
        _print(report, as_json=as_json)


async def _counted(
    question: Question, corpus: Corpus | None, options: CountOptions, watch: Watch
) -> CountOutcome:
    async def work(stop: Stop) -> CountOutcome:
        return await count_with(question, corpus, replace(options, on_event=watch, stop=stop))

    return await stoppable(work, watch.ticking)


def _write(best: Tally | Ranking | None, target: Target | None, directory: Path) -> Written | None:
    if best is None or target is None:
        return None
    with Progress(f"write {target.path.name}", stream=sys.stderr) as progress:
        # A ranking leaves out what has no score.
        total = best.records if isinstance(best, Tally) else None
        progress.update(Standing(total=total, unit="rows", unresolved=None))
        written = write_result(best, target, on_rows=progress.add)
    note_export(directory, written.path)
    return written
