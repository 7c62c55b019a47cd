"""Runs a recursion that was checked, shows its tree, writes and prints what came out."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio

from executors.engine.stop import Stop
from executors.errors import OutputError, RunDirError
from rlm.checks.verdict import Satisfied
from rlm.cli.exits import Exit, exit_of
from rlm.cli.faults import say_error
from rlm.cli.interrupt import name_of, stopped_by
from rlm.cli.recurse_report import RecurseReport
from rlm.cli.show import load_receipts, resume_hint
from rlm.cli.stoppable import stoppable
from rlm.cli.task import Asked
from rlm.cli.text_out import TextTarget, write_out
from rlm.cli.watch_tree import TreeWatch
from rlm.outcome import Completed, Incomplete
from rlm.outputs import Written
from rlm.recursion import RecurseOutcome, recurse_with
from rlm.runs.exports import note_export
from rlm.runs.home import data_home

__all__ = ["code_of", "run_recurse"]


def run_recurse(asked: Asked) -> int:
    """Do a task, print the result to standard output, and return the exit code."""
    directory = None if asked.options.run is None else str(asked.options.run)
    with TreeWatch(asked.wiring.caps, stream=sys.stderr, directory=directory) as watch:
        try:
            outcome = anyio.run(_worked, asked, watch)
        except KeyboardInterrupt:
            watch.close()
            _show_stopped(asked, watch)
            raise
    wanted = None if asked.target is None else str(asked.target.path)
    report = replace(RecurseReport.of(outcome), wanted=wanted)
    try:
        report = replace(report, written=_write(report, asked.target))
    except OutputError as error:
        report = replace(report, unwritten=_kept(error, report))
    except KeyboardInterrupt:
        _print(report, as_json=asked.as_json)
        raise
    _print(report, as_json=asked.as_json)
    if report.unwritten is None:
        return code_of(outcome)
    say_error(report.unwritten)
    return exit_of(report.unwritten)


def code_of(outcome: RecurseOutcome) -> Exit:
    """Return the exit code: a verdict that is not satisfied is an answer of its own."""
    match outcome:
        case Completed(verdict=verdict):
            satisfied = verdict is None or isinstance(verdict, Satisfied)
            return Exit.DONE if satisfied else Exit.NOT_SATISFIED
        case Incomplete():
            return Exit.INCOMPLETE


async def _worked(asked: Asked, watch: TreeWatch) -> RecurseOutcome:
    async def work(stop: Stop) -> RecurseOutcome:
        watch.stop = stop
        wiring = replace(asked.wiring, on_event=watch, stop=stop)
        return await recurse_with(asked.task, wiring, asked.options)

    return await stoppable(work, watch.ticking)


def _write(report: RecurseReport, target: TextTarget | None) -> Written | None:
    if target is None or report.value is None:
        return None
    written = write_out(report.value, report.text, target)
    note_export(report.receipts.directory, written.path)
    return written


def _kept(error: OutputError, report: RecurseReport) -> OutputError:
    """Say how the file can be had after all."""
    again = f"rlm show {shlex.quote(str(report.receipts.directory))} --out FILE"
    hint = f"{error.hint}; nothing is lost: {again}"
    return OutputError(error.what, where=error.where, hint=hint)


def _print(report: RecurseReport, *, as_json: bool) -> None:
    try:
        report.print(as_json=as_json)
        sys.stdout.flush()
    except OutputError as error:
        shown = f"rlm show {shlex.quote(str(report.receipts.directory))}"
        raise OutputError(error.what, hint=f"nothing is lost: {shown}") from None


def _show_stopped(asked: Asked, watch: TreeWatch) -> None:
    """Show what was done until the signal, if the run came so far that it has a receipt."""
    if watch.run is None:
        return
    directory = Path(asked.options.run or data_home() / watch.run)
    try:
        receipts = load_receipts(directory)
    except RunDirError:
        return
    missing = (f"stopped by {name_of(stopped_by())}", resume_hint(receipts))
    report = RecurseReport(receipts=receipts, value=None, missing=missing)
    with suppress(BrokenPipeError, OutputError):  # a terminal that hung up reads no more
        _print(report, as_json=asked.as_json)
