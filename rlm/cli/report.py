"""How a finished count is shown: for people, or as one JSON object."""

from __future__ import annotations

import sys
from typing import assert_never

from rlm.counting import CountOutcome
from rlm.outcome import Completed, Incomplete
from rlm.outputs import Written
from rlm.render.lines import Line, Piece, line, write_lines
from rlm.render.safe import plain
from rlm.render.text import result_block, tree

__all__ = ["outcome_json", "report"]


def report(outcome: CountOutcome, written: Written | None) -> None:
    """Print the result, what a written file's reader has to know, and the tree of the run."""
    lines = result_block(outcome.receipts, missing=_missing(outcome))
    if written is not None:
        lines += _file_lines(written)
    lines += [line(""), *tree(outcome.receipts)]
    write_lines(lines, sys.stdout)


def outcome_json(outcome: CountOutcome, written: Written | None) -> dict[str, object]:
    """Return the outcome as plain data; numbers of USD are text, so that no digit is lost."""
    receipts = outcome.receipts
    totals = receipts.totals
    return {
        "outcome": "completed" if isinstance(outcome, Completed) else "incomplete",
        "blocker": receipts.blocker,
        "missing": list(_missing(outcome)),
        "question": receipts.task,
        "result": dict(receipts.result),
        "spend": {
            "calls": totals.calls,
            "failed": totals.failed,
            "tokens": totals.tokens,
            "usd": str(totals.cost),
            "unpriced_calls": totals.unpriced,
        },
        "run": receipts.run,
        "receipt": str(receipts.path),
        "out": _file_json(written),
    }


def _file_json(written: Written | None) -> dict[str, object] | None:
    if written is None:
        return None
    return {"path": str(written.path), "rows": written.rows, "notes": list(written.notes)}


def _file_lines(written: Written) -> list[Line]:
    out = line("  ", Piece("out: ", "dim"), f"{plain(str(written.path))}, {written.rows:,} rows")
    return [out, *(line("    ", note) for note in written.notes)]


def _missing(outcome: CountOutcome) -> tuple[str, ...]:
    match outcome:
        case Completed():
            return ()
        case Incomplete():
            return outcome.missing
        case _:
            assert_never(outcome)
