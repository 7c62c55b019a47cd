"""`rlm show --check` and `rlm show --record`: a run against its own files, and one record of it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from executors.errors import ValidationError
from rlm.cli.exits import Exit
from rlm.cli.printing import print_json

if TYPE_CHECKING:
    from corpus.results import Row
    from rlm.render.lines import Line
    from rlm.runs.looks import Look

__all__ = ["print_check", "print_record"]

_CONSISTENT = "consistent, not authenticated"


def print_check(directory: Path, *, as_json: bool) -> int:
    """Print whether the files of a run fit together; the exit code says so too."""
    # Checking reads records and receipts; --help has no use for either.
    from rlm.recursions.checking import check_recursion
    from rlm.render.lines import Piece, line, write_lines
    from rlm.render.safe import plain
    from rlm.runs.checking import check_roots
    from rlm.runs.manifest import Manifest

    recursion = Manifest.load(directory).kind == "recurse"
    checked = check_recursion(directory) if recursion else check_roots(directory)
    code = Exit.DONE if checked.consistent else Exit.NOT_SATISFIED
    if as_json:
        print_json({"consistent": checked.consistent, "authenticated": False, **asdict(checked)})
        return code
    if checked.consistent:
        lines = [
            line(Piece(_CONSISTENT, "good"), ": the files say the same, down to the texts"),
            line("  no signature was checked: compare the root with one that was published"),
        ]
    else:
        lines = [line(Piece("not consistent", "bad"))]
        lines += [line("  ", plain(text, 300)) for text in checked.differences]
    lines += [line("  ", Piece(plain(text, 300), "dim")) for text in checked.notes]
    lines.append(line(Piece("  content root: ", "dim"), checked.content_root or "none"))
    write_lines(lines, sys.stdout)
    return code


def print_record(directory: Path, record: str, *, as_json: bool) -> int:
    """Print how one record came out, and each verdict about it with its session and call."""
    from rlm.render.lines import write_lines
    from rlm.runs.looks import looks_at
    from rlm.runs.manifest import Manifest
    from rlm.runs.results import load_result

    manifest = Manifest.load(directory)
    recursion = manifest.kind == "recurse"
    if recursion and not (directory / "verdicts").exists():
        raise ValidationError(
            "--record has no effect: the result of this run is no count",
            hint="leave it out, to see what its nodes did",
        )
    tally = load_result(directory)
    ordinal = tally.spool.find(record)
    if ordinal is None:
        raise ValidationError(
            f"the run has no record {record!r}",
            where=str(directory),
            hint="list some with --state matched, or all with --out FILE",
        )
    row = tally.row(ordinal)
    looks = looks_at(directory, manifest, tally.spool.digest(ordinal))
    if as_json:
        print_json({**asdict(row), "looks": [asdict(look) for look in looks]})
    else:
        write_lines(_record_lines(row, looks, recursion=recursion), sys.stdout)
    return Exit.DONE


def _record_lines(row: Row, looks: list[Look], *, recursion: bool) -> list[Line]:
    from rlm.render.lines import Piece, line
    from rlm.render.safe import plain

    state = row.state.replace("_", " ") if row.label is None else f"{row.state}: {row.label}"
    facts = [plain(state, 100), plain(row.reason, 200)]
    if row.probability is not None:
        facts.append(f"probability {row.probability:.3f}")
    said = ", ".join(fact for fact in facts if fact)
    lines = [line(Piece(plain(row.id, 100), "strong"), f"  {said}")]
    if row.where:
        lines.append(line("  ", Piece(plain(row.where, 200), "dim")))
    if row.quote is not None:
        lines.append(line("  ", f"“{plain(row.quote.text, 300)}”"))
    lines += [_look_line(look) for look in looks]
    if not looks:
        none = "no verdict about it stands in a journal"
        said = "which call judged it is told of counts, not of recursions" if recursion else none
        lines.append(line("  ", Piece(said, "dim")))
    return lines


def _look_line(look: Look) -> Line:
    from rlm.render.lines import Piece, line
    from rlm.render.safe import plain

    said = look.label or look.state.replace("_", " ")
    facts = [plain(said, 60), plain(look.reason, 200)]
    facts.append("" if look.probability is None else f"{look.probability:.3f}")
    facts.append("" if look.quote is None else f"“{plain(look.quote.text, 100)}”")
    by = "" if look.session is None else f"session {look.session}"
    calls = [f"call {plain(call, 16)}…" for call in look.calls]
    origin = ", ".join(part for part in (by, *calls) if part)
    later = "" if look.holds else "  (no longer holds)"
    head = Piece(f"  pass {look.pass_index + 1}: ", "dim")
    return line(head, ", ".join(f for f in facts if f), Piece(f"  {origin}{later}", "dim"))
