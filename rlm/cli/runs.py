"""`rlm runs`: which runs there are, which of them may go, and forgetting one record of one."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from executors.errors import UsageError, ValidationError
from rlm.cli.exits import Exit
from rlm.cli.options import Json
from rlm.cli.printing import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlm.render.lines import Line
    from rlm.runs.forgetting import Forgetting
    from rlm.runs.keeping import RunEntry

__all__ = ["forget", "list_", "prune", "runs"]

runs = typer.Typer(help="List, delete and edit runs.", add_completion=False)

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE: Final = re.compile(r"(\d{1,6})([mhdw])")


@runs.callback(invoke_without_command=True)
def _root(context: typer.Context) -> int:
    """List, delete and edit runs; without a command they are listed."""
    return Exit.DONE if context.invoked_subcommand else list_()


@runs.command("list", short_help="List the runs, the newest first.")
def list_(
    *,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="How many runs to list.")
    ] = 50,
    json_: Json = False,
) -> int:
    """List the runs under the data directory, the newest first.

    Those that --run put elsewhere are not among them.
    """
    # Manifests need pydantic; --help has no use for it.
    from rlm.render.lines import Piece, line, write_lines
    from rlm.runs.home import data_home
    from rlm.runs.keeping import list_runs
    from rlm.runs.told import with_told_calls

    entries = list_runs()
    if json_:
        entries = [with_told_calls(entry) for entry in entries]
        print_json({"runs": [_data(entry) for entry in entries]})
        return Exit.DONE
    lines: list[Line] = []
    for entry in entries[:limit]:
        lines += _entry_lines(with_told_calls(entry))
    total = sum(entry.bytes for entry in entries)
    where = f"{_counted(len(entries), 'run')}, {_size(total)} in {data_home()}"
    more = f"; {len(entries) - limit:,} are not listed: --limit N" if len(entries) > limit else ""
    lines.append(line(Piece(where + more, "dim")))
    write_lines(lines, sys.stdout)
    return Exit.DONE


@runs.command("prune", short_help="Delete runs that are old; says which, and asks first.")
def prune(
    *,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Last worked on longer ago: 30d, 12h, 6w, 90m."
        ),
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=0, help="Keep the N newest runs.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    json_: Json = False,
) -> int:
    """Delete old runs under the data directory, never one that is running.

    Without --yes it says what would go, and deletes where a person at a terminal says so. To have
    old runs go by themselves, set RLM_KEEP_RUNS_DAYS.
    """
    from rlm.runs.keeping import delete_run, list_runs, outdated, sweep_deleted

    if older_than is None and keep is None:
        raise UsageError(
            "nothing says which runs may go", hint="give --older-than 30d, --keep 20, or both"
        )
    age = None if older_than is None else _age(older_than)
    entries = outdated(list_runs(), datetime.now(UTC), older_than=age, keep=keep)
    gone = yes or (not json_ and _agreed(entries))
    if gone:
        sweep_deleted()
    deleted = [entry for entry in entries if gone and delete_run(entry.directory)]
    if json_:
        print_json({"deleted": gone, "runs": [_data(e) for e in (deleted if gone else entries)]})
        return Exit.DONE
    _say_pruned(entries, deleted, gone=gone)
    return Exit.DONE


@runs.command("forget", short_help="Erase one record of a run, for good.")
def forget(
    directory: Annotated[
        Path, typer.Argument(metavar="RUN", help="Directory of a run, its receipt, or its id.")
    ],
    record: Annotated[str, typer.Argument(metavar="RECORD", help="Id of the record.")],
    *,
    json_: Json = False,
) -> int:
    """Erase one record of a run: text, verdicts, answers about it, labels and embeddings.

    The run goes on without it: it counts as left out. Other runs, the source and written files are
    not touched; they are named.
    """
    from rlm.render.lines import line, write_lines
    from rlm.runs.forgetting import forget_record
    from rlm.runs.home import named_run

    forgotten = forget_record(named_run(directory), record, now=datetime.now(UTC))
    if json_:
        data = asdict(forgotten) | {"exports": [str(path) for path in forgotten.exports]}
        print_json(data)
        return Exit.DONE
    write_lines([line(text) for text in _forgotten_lines(forgotten)], sys.stdout)
    return Exit.DONE


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise ValidationError(
            f"--older-than={text!r} is no age",
            hint="as in --older-than 30d; m, h, d and w are known",
        )
    number, unit = found.groups()
    return timedelta(**{_UNITS[unit]: int(number)})


def _agreed(entries: Sequence[RunEntry]) -> bool:
    """Ask a person at a terminal; nobody else is asked."""
    from rlm.render.lines import write_lines

    if not entries or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    lines = [shown for entry in entries for shown in _entry_lines(entry)]
    write_lines(lines, sys.stderr)
    size = _size(sum(entry.bytes for entry in entries))
    sys.stderr.write(f"delete {_counted(len(entries), 'run')}, {size}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _say_pruned(entries: Sequence[RunEntry], deleted: Sequence[RunEntry], *, gone: bool) -> None:
    from rlm.render.lines import Piece, line, write_lines

    listed = deleted if gone else entries
    lines = [shown for entry in listed for shown in _entry_lines(entry)]
    size = _size(sum(entry.bytes for entry in listed))
    if not entries:
        lines.append(line("no run is that old"))
    elif gone:
        lines.append(line(f"deleted {_counted(len(deleted), 'run')}, {size}"))
        if busy := len(entries) - len(deleted):
            lines.append(line(Piece(f"{_counted(busy, 'run')} in use, left alone", "warn")))
    else:
        said = f"would delete {_counted(len(entries), 'run')}, {size}; nothing was deleted: --yes"
        lines.append(line(said))
    write_lines(lines, sys.stdout)


def _entry_lines(entry: RunEntry) -> list[Line]:
    from rlm.render.lines import Piece, line
    from rlm.render.safe import plain

    state = entry.state if entry.blocker is None else f"{entry.state}: {plain(entry.blocker, 40)}"
    facts = [
        "" if entry.kind == "count" else entry.kind,
        "" if entry.started is None else f"{entry.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        "" if entry.records is None else _counted(entry.records, "record"),
        "" if entry.calls is None else _counted(entry.calls, "call"),
        "price unknown" if entry.usd is None and entry.calls else "",
        f"{entry.usd:.4f} USD" if entry.usd and entry.calls else "",
        "" if entry.sessions < 2 else f"{entry.sessions} sessions",
        _size(entry.bytes),
        "made elsewhere" if entry.foreign else "",
    ]
    return [
        line(
            Piece(plain(entry.id, 60), "strong"),
            "  ",
            Piece(state, "plain" if entry.state in {"running", "completed"} else "warn"),
            Piece(f"  {', '.join(fact for fact in facts if fact)}", "dim"),
        ),
        *([line(f"  {plain(entry.question, 100)}")] if entry.question else []),
    ]


def _forgotten_lines(forgotten: Forgetting) -> list[str]:
    from rlm.render.safe import plain

    facts = (
        (forgotten.notes, "verdict"),
        (forgotten.answers, "answer"),
        (forgotten.events, "event"),
        (forgotten.labels, "label"),
        (forgotten.vectors, "embedding"),
    )
    erased = ", ".join(_counted(number, noun) for number, noun in facts if number)
    lines = [f"forgotten: {plain(forgotten.id, 100)}; it counts as left out from now on"]
    if not forgotten.same_text:
        made = f", and of what was made of it: {erased}" if erased else ""
        lines.append(f"  erased: its text{made}")
    elif erased:
        lines.append(f"  erased: of what was made of it: {erased}")
    if forgotten.head:
        lines.append("  erased: the head that its label taught; a resume teaches another one")
    if forgotten.same_text:
        others = _counted(forgotten.same_text, "other record")
        have = "has" if forgotten.same_text == 1 else "have"
        lines.append(f"  left: the text itself, which {others} of this run {have} too: forget each")
    lines.append("  left: its id, so that it stays left out")
    lines += [f"  left: {plain(str(path))}, rows of this run" for path in forgotten.exports]
    if forgotten.source is not None:
        lines.append(f"  left: {plain(forgotten.source)}, where it was read from")
    lines.append("  left: other runs, and copies that were made of this one")
    return lines


def _data(entry: RunEntry) -> dict[str, object]:
    usd = None if entry.usd is None else str(entry.usd)
    times = {
        name: None if time is None else time.isoformat()
        for name, time in (("started", entry.started), ("last", entry.last))
    }
    return {**asdict(entry), "directory": str(entry.directory), "usd": usd, **times}


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _size(number: int) -> str:
    """Return bytes in the largest unit of which there is at least one."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
