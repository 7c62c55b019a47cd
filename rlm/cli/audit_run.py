"""Runs an audit that was checked, shows its tree, writes and prints what came out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from executors.engine.stop import Stop
from executors.errors import OutputError, RunDirError
from rlm.auditing.audit import AuditOutcome, audit
from rlm.auditing.files import AuditTarget, write_report
from rlm.checks.verdict import Satisfied
from rlm.cli.audit_report import AuditPrint
from rlm.cli.exits import Exit, exit_of
from rlm.cli.faults import say_error
from rlm.cli.interrupt import name_of, stopped_by
from rlm.cli.show import load_receipts
from rlm.cli.stoppable import stoppable
from rlm.cli.watch_tree import TreeWatch
from rlm.cli.wired import bounded
from rlm.outcome import Completed, Incomplete
from rlm.outputs import Written
from rlm.recursions.wiring import Wiring
from rlm.runs.exports import note_export
from rlm.runs.home import MANIFEST, data_home, named_run
from rlm.runs.manifest import Manifest

__all__ = ["AuditAsked", "run_audit", "wired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAsked:
    """An audit that was asked for."""

    folder: Path
    task: str
    wiring: Wiring
    options: Mapping[str, Any]
    """Of `audit`, those that were given."""
    target: AuditTarget | None
    as_json: bool


def wired(
    run: str | None, given: Mapping[str, object], bounds: Mapping[str, float | None]
) -> Wiring:
    """Return who works: what is given, then what the run that goes on has, then the defaults.

    Args:
        given: None leaves one open.
        bounds: calls, tokens, usd and seconds; None leaves one as it is.

    Raises:
        RunDirError: the run cannot be read.
        ValidationError: a value is wrong.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    record: Mapping[str, object] = {}
    if run is not None and (Path(run) / MANIFEST).is_file():
        manifest = Manifest.load(Path(run))
        # What came from elsewhere is trusted with nothing that spends or says where a key goes.
        record = {} if manifest.foreign else manifest.options
    calls, tokens, usd, seconds = (bounds[name] for name in ("calls", "tokens", "usd", "seconds"))
    return bounded(
        Wiring.of_record(record, **changes),
        calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        usd=usd,
        seconds=seconds,
    )


def run_audit(asked: AuditAsked) -> int:
    """Audit, print the findings to standard output, and return the exit code."""
    directory: str | None = asked.options.get("run")
    again = partial(_again, asked)
    with TreeWatch(asked.wiring.caps, stream=sys.stderr, directory=directory, again=again) as watch:
        try:
            outcome = anyio.run(_worked, asked, watch)
        except KeyboardInterrupt:
            watch.close()
            _show_stopped(asked, watch)
            raise
    printed = AuditPrint.of(outcome, again=again(outcome.receipts.directory))
    try:
        printed = replace(printed, written=_write(printed, asked))
    except OutputError as error:
        kept = f"{error.hint}; nothing is lost: {again(outcome.receipts.directory)} --out FILE"
        printed = replace(printed, unwritten=OutputError(error.what, where=error.where, hint=kept))
    printed.print(as_json=asked.as_json)
    sys.stdout.flush()
    if printed.unwritten is not None:
        say_error(printed.unwritten)
        return exit_of(printed.unwritten)
    return _code_of(outcome)


def _code_of(outcome: AuditOutcome) -> Exit:
    match outcome:
        case Completed(verdict=verdict):
            return Exit.DONE if isinstance(verdict, Satisfied) else Exit.NOT_SATISFIED
        case Incomplete():
            return Exit.INCOMPLETE


async def _worked(asked: AuditAsked, watch: TreeWatch) -> AuditOutcome:
    async def work(stop: Stop) -> AuditOutcome:
        wiring = replace(asked.wiring, on_event=watch, stop=stop)
        return await audit(asked.folder, asked.task, wiring, **asked.options)

    return await stoppable(work, watch.ticking)


def _again(asked: AuditAsked, run: str | Path) -> str:
    """Return the command that goes on with a run; what it has answered is not paid again."""
    words = ["rlm", "audit", str(asked.folder), asked.task]
    for name in ("include", "exclude"):
        for pattern in asked.options.get(name, ()):
            words += [f"--{name}", pattern]
    for name, option in (
        ("max_file_bytes", "--max-file-bytes"),
        ("worker_budget", "--worker-budget"),
        ("attempts", "--attempts"),
        ("max_tokens", "--answer-tokens"),
        ("context", "--context"),
    ):
        if name in asked.options:
            words += [option, str(asked.options[name])]
    return shlex.join([*words, "--run", str(named_run(run))])


def _write(printed: AuditPrint, asked: AuditAsked) -> Written | None:
    if asked.target is None:
        return None
    complete = printed.receipts.blocker is None
    written = write_report(printed.report, asked.target, task=asked.task, complete=complete)
    note_export(printed.receipts.directory, written.path)
    return written


def _show_stopped(asked: AuditAsked, watch: TreeWatch) -> None:
    """Show what was done until the signal, if the run came so far that it has a receipt."""
    if watch.run is None:
        return
    directory = Path(asked.options.get("run") or data_home() / watch.run)
    try:
        receipts = load_receipts(directory)
    except RunDirError:
        return
    missing = (f"stopped by {name_of(stopped_by())}", f"go on with: {_again(asked, directory)}")
    with suppress(BrokenPipeError, OutputError):  # a terminal that hung up reads no more
        AuditPrint(receipts=receipts, missing=missing).print(as_json=asked.as_json)
