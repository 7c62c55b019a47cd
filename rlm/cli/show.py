"""`rlm show`: a run that ended, from its receipt."""

from __future__ import annotations

import shlex
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, get_args

import typer

from executors.errors import RunDirError, ValidationError
from rlm.cli.exits import Exit
from rlm.cli.looking import print_check, print_record
from rlm.cli.options import Json, OutFile, choose
from rlm.cli.unfinished import since_receipt, unfinished

if TYPE_CHECKING:
    from corpus.results import Row
    from rlm.cli.text_out import TextTarget
    from rlm.outputs import Target
    from rlm.receipts.receipts import Receipts
    from rlm.render.lines import Line

__all__ = ["RESUMABLE", "load_receipts", "resume_command", "resume_hint", "show"]

RESUMABLE: Final = frozenset(
    {"cancelled", "disk", "halted", "interrupted", "model-unusable", "out-of-quota"}
)
"""Blockers that stopped a run from outside, so that it can go on as it is."""
_TREE: Final = 500
"""Lines of a task tree."""


def show(
    directory: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="Directory of a run, its receipt, or its id.")
    ],
    *,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="List the records in this state, too."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="How many records to list.")
    ] = 20,
    record: Annotated[
        str | None,
        typer.Option("--record", metavar="ID", help="Show how this record was judged."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compute the roots of the run from its files.")
    ] = False,
    out: OutFile = None,
    json_: Json = False,
) -> int:
    """Show the result and the receipt of a run; nothing is asked or paid."""
    # Receipts need pydantic, records numpy; --help has no use for either.
    from rlm.render.lines import write_lines
    from rlm.runs.foreign import refuse_links
    from rlm.runs.home import named_run

    directory = named_run(directory)
    refuse_links(directory)
    if check:
        return print_check(directory, as_json=json_)
    if record is not None:
        return print_record(directory, record, as_json=json_)
    receipts = load_receipts(directory)
    recursion = _is_recursion(receipts)
    if recursion and state is not None and receipts.result.get("kind") != "tally":
        raise ValidationError(
            "--state has no effect: the result of this run is no count",
            hint="leave it out; --out FILE writes the result",
        )
    # The target is checked first; what it holds then comes last, since a disk may be full.
    target = None if out is None else _target(out, recursion=recursion)
    if json_:
        sys.stdout.write(receipts.to_json() + "\n")
    else:
        lines = _tree(receipts) if recursion else _summary(receipts)
        if state is not None:
            lines += _listing(directory, state, limit)
        write_lines(lines, sys.stdout)
    if (since := since_receipt(directory)) is not None:
        sys.stderr.write(f"warning: {since}\n")
    if target is not None:
        sys.stdout.flush()
        _export(directory, target)
    return Exit.DONE


def load_receipts(directory: Path) -> Receipts:
    """Read the receipt of a run directory, which may come from anywhere.

    Raises:
        RunDirError: there is none, or it is none of ours.
    """
    from rlm.receipts.receipts import Receipts

    try:
        return Receipts.load(directory)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and (said := unfinished(directory)) is not None:
            raise said from None
        raise RunDirError(
            f"{str(directory)!r} holds no receipt that can be read: {error.strerror}",
            hint="name the directory of a run, as `rlm count` prints it; see: rlm runs list",
        ) from None
    except (TypeError, ValueError) as error:  # no object, no JSON, or other fields than ours
        first = str(error).partition("\n")[0]
        raise RunDirError(
            f"the receipt in {str(directory)!r} is not one of this version: {first}",
            hint="it may be cut short, or made by another version of rlm",
        ) from None


def resume_hint(receipts: Receipts) -> str:
    """Return how to go on with a run."""
    return f"go on with: {resume_command(receipts)}"


def resume_command(receipts: Receipts) -> str:
    """Return the command that goes on with a run."""
    return f"rlm resume {shlex.quote(str(receipts.directory))}"


def _summary(receipts: Receipts) -> list[Line]:
    from rlm.render.lines import line
    from rlm.render.text import result_block, roots, tree

    missing: tuple[str, ...] = ()
    if receipts.blocker in RESUMABLE:
        higher = ", with a higher bound" if receipts.blocker == "halted" else ""
        missing = (f"{resume_hint(receipts)}{higher}",)
    return [
        *result_block(receipts, missing=missing),
        line(""),
        *tree(receipts),
        line(""),
        *roots(receipts),
    ]


def _is_recursion(receipts: Receipts) -> bool:
    """Whether a receipt is that of a task tree; a receipt alone does not name its kind."""
    kinds = ("text", "value", "nothing")
    return receipts.result.get("kind") in kinds or any(node.task for node in receipts.nodes)


def _tree(receipts: Receipts) -> list[Line]:
    from rlm.auditing.report import AuditReport
    from rlm.auditing.table import finding_lines, looked_at_lines
    from rlm.recursions.ending import read_result
    from rlm.render.lines import line
    from rlm.render.outcome import outcome_lines, result_lines
    from rlm.render.text import roots, tally_lines

    missing: tuple[str, ...] = ()
    if receipts.blocker in RESUMABLE:
        higher = ", with a higher bound" if receipts.blocker == "halted" else ""
        missing = (f"{resume_hint(receipts)}{higher}",)
    counted = receipts.result.get("kind") == "tally"
    value = None if counted else read_result(receipts.directory)
    report = AuditReport.read(value)
    audited = [] if report is None else [*finding_lines(report), *looked_at_lines(report)]
    return [
        *(tally_lines(receipts) if counted else audited or result_lines(value)),
        line(""),
        *outcome_lines(receipts, missing=missing, height=_TREE),
        line(""),
        *roots(receipts),
    ]


def _listing(directory: Path, state: str, limit: int) -> list[Line]:
    from corpus.records import RecordState
    from rlm.render.lines import Piece, line
    from rlm.runs.results import load_result

    chosen = choose(state, get_args(RecordState), option="--state")
    tally = load_result(directory)
    of = tally.states.get(chosen, 0)
    lines = [line(""), line(Piece(f"{chosen}: {of:,} records", "strong"))]
    rows = (row for row in tally.rows() if row.state == chosen)
    lines += [_row(row) for row in islice(rows, limit)]
    if of > limit:
        lines.append(line(Piece(f"… {of - limit:,} more; --limit N, or --out FILE for all", "dim")))
    return lines


def _row(row: Row) -> Line:
    from rlm.render.lines import Piece, line
    from rlm.render.safe import plain

    parts = [
        plain(row.id, 60),
        "" if row.label is None else plain(row.label, 60),
        "" if row.probability is None else f"{row.probability:.3f}",
        plain(row.reason, 100),
        "" if row.quote is None else f"“{plain(row.quote.text, 80)}”",
    ]
    facts = "  ".join(part for part in parts if part)
    return line(f"  {facts}  ", Piece(plain(row.where or "", 60), "dim"))


def _target(out: Path, *, recursion: bool) -> Target | TextTarget:
    from rlm.cli.text_out import check_text_target
    from rlm.outputs import check_target

    return check_text_target(str(out), source=None) if recursion else check_target(out)


def _export(directory: Path, target: Target | TextTarget) -> None:
    from rlm.cli.text_out import TextTarget, export_result
    from rlm.outputs import write_result
    from rlm.render.safe import plain
    from rlm.runs.exports import note_export
    from rlm.runs.results import load_result

    if isinstance(target, TextTarget):
        written = export_result(directory, target)
    else:
        written = write_result(load_result(directory), target)
    note_export(directory, written.path)
    for said in (f"{written.path}: {written.rows:,} rows", *written.notes):
        sys.stderr.write(plain(said) + "\n")
