"""`rlm gate log`: what a gate wrote down, as a table; and whether its lines fit together."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from executors.errors import RunDirError, UsageError, ValidationError
from rlm.cli.audit_lines import row, wanted_lines
from rlm.cli.exits import Exit
from rlm.cli.printing import print_json

if TYPE_CHECKING:
    from executors.gate.audit.reading import AuditLine
    from executors.gate.audit.verifying import Chains
    from rlm.render.lines import Line

__all__ = ["EXAMPLES", "log"]

EXAMPLES: Final = (
    "Examples: rlm gate log RUN --denied | rlm gate log RUN --phase call --node 'root.2*' | "
    "rlm gate log audit.jsonl --check"
)
_FILE: Final = "audit.jsonl"
_FOLDER: Final = "gate"
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_HELD: Final = "do not say whether the last ones were cut off, or all of them made anew"


def log(
    place: Annotated[
        Path, typer.Argument(metavar="FILE|RUN", help="An audit, or the run that it belongs to.")
    ],
    *,
    phase: Annotated[
        list[str] | None,
        typer.Option("--phase", metavar="NAME", help="gate, call, record, approval, halt, ..."),
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="NAME", help="As in bash.allow or 'fs.*'.")
    ] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="A tool, or a type of action.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only what was not allowed.")] = False,
    node: Annotated[
        str | None, typer.Option("--node", metavar="ID", help="As in root.2 or 'root.2*'.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="2026-01-31T09:45 (UTC), or 30s, 15m, 2h, 3d."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the chain of lines instead of showing them.")
    ] = False,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="LINK", help="A link that was published; with --check."),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line; with --check, one.")
    ] = False,
) -> int:
    """Show what a gate wrote down: checks, calls, what people said, what things took.

    Exit codes: 0 shown, or all fits; 3 lines do not fit (--check); 2 wrong use.
    """
    if head and not check:
        raise UsageError("--head says what to check against", hint="give --check too")
    path = _file(place)
    if check:
        return _check(path, head or [], as_json=json_)
    wanted = wanted_lines(
        phases=frozenset(phase or ()),
        rule=rule,
        tool=tool,
        node=node,
        denied=denied,
        since=None if since is None else _time(since, datetime.now(UTC)),
    )
    _show(path, wanted, as_json=json_)
    return Exit.DONE


def _file(place: Path) -> Path:
    """Return the audit that is meant.

    Raises:
        RunDirError: there is none, or it lies in a run that was made elsewhere and holds links.
    """
    from rlm.runs.foreign import refuse_links  # with what a run is; --help has no use for it
    from rlm.runs.home import named_run

    named = named_run(place)
    if named.is_file():
        return named
    if not named.is_dir():
        raise RunDirError(
            f"there is no {str(named)!r}", hint="name an audit, a run directory, or the id of a run"
        )
    refuse_links(named)
    for path in (named / _FOLDER / _FILE, named / _FILE):
        if path.is_file():
            return path
    raise RunDirError(
        f"{str(named)!r} holds no audit",
        where=f"looked for {_FOLDER}/{_FILE}",
        hint="only a run with a gate has one (--gate FILE); audit.path may have put it elsewhere",
    )


def _time(text: str, now: datetime) -> datetime:
    """Return the time that is meant: an age, or a time that is UTC where it does not say."""
    given = text.strip()
    if given[-1:] in _UNITS and given[:-1].isdecimal() and len(given) <= 6:
        return now - timedelta(**{_UNITS[given[-1]]: int(given[:-1])})
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise ValidationError(
            f"--since={text!r} is no time",
            hint="as in --since 2026-01-31T09:45 (UTC) or --since 15m; s, m, h and d are known",
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


# ---------------------------------------------------------------- showing


def _show(path: Path, wanted: Callable[[AuditLine], bool], *, as_json: bool) -> None:
    from executors.gate.audit.reading import AuditLine, lines
    from rlm.render.lines import Piece, line, write_lines

    shown = torn = total = 0
    for one in lines(path):
        if not isinstance(one, AuditLine):
            torn += 1
            continue
        total += 1
        if not wanted(one):
            continue
        shown += 1
        if as_json:
            print_json(one.fields)
        else:
            write_lines([row(one)], sys.stdout)
    if as_json:
        return
    more = f"; {torn:,} cut off or no line at all" if torn else ""
    said = f"{shown:,} of {total:,} line(s){more}"
    write_lines([line(Piece(said, "dim"))], sys.stdout)


# ---------------------------------------------------------------- checking


def _check(path: Path, heads: list[str], *, as_json: bool) -> int:
    from executors.gate.audit.verifying import verify

    chains = verify(path, heads=heads)
    if as_json:
        print_json(_data(path, chains))
    else:
        _say(chains, heads)
    return Exit.DONE if chains.consistent else Exit.NOT_SATISFIED


def _data(path: Path, chains: Chains) -> dict[str, object]:
    return {
        "file": os.fspath(path),
        "consistent": chains.consistent,
        "authenticated": False,
        "lines": chains.lines,
        "torn": list(chains.torn),
        "heads": chains.heads,
        "faults": [
            {"kind": one.kind, "line": one.number, "writer": one.writer, "what": one.what}
            for one in chains.faults
        ],
    }


def _say(chains: Chains, heads: list[str]) -> None:
    from rlm.render.lines import Piece, line, write_lines
    from rlm.render.safe import plain

    found: list[Line] = [
        line(
            Piece(one.kind, "bad"),
            f"  {f'line {one.number:,}: ' if one.number else ''}{plain(one.what, 160)}",
            Piece(f"  {plain(one.writer, 80)}", "dim"),
        )
        for one in chains.faults
    ]
    if chains.torn:
        numbers = ", ".join(f"{number:,}" for number in chains.torn[:10])
        found.append(line(Piece(f"cut off, or no line at all: {numbers}", "warn")))
    said = f"{chains.lines:,} line(s) of {len(chains.heads):,} writer(s)"
    if chains.consistent:
        found.append(line(Piece("consistent", "good"), f"  {said}"))
        if not heads:
            found.append(line(Piece(f"  not authenticated: lines that fit {_HELD}", "dim")))
    else:
        found.append(line(Piece("not consistent", "bad"), f"  {said}"))
    found += [
        line(Piece(f"  head {link}  {plain(writer, 80)}", "dim"))
        for writer, link in chains.heads.items()
    ]
    write_lines(found, sys.stdout)
