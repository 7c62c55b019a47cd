"""How a count that ended is shown: for people, or as one JSON object."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from executors.errors import OutputError
from rlm.cli.faults import error_data
from rlm.cli.printing import print_json
from rlm.outputs import Written
from rlm.receipts.receipts import Receipts, Totals
from rlm.render.lines import Line, Piece, line, write_lines
from rlm.render.safe import plain
from rlm.render.text import result_block, tree

__all__ = ["Report", "file_data", "spend_data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is printed to standard output when a count ends."""

    receipts: Receipts
    missing: tuple[str, ...] = ()
    """What an incomplete count says that it lacks."""
    written: Written | None = None
    unwritten: OutputError | None = None
    """Why the file that was wanted is not there."""

    def print(self, *, as_json: bool) -> None:
        """Print the result with the tree of the run, or one JSON object."""
        if as_json:
            print_json(self.data())
        else:
            write_lines(self.lines(), sys.stdout)

    def lines(self) -> list[Line]:
        """Return the result, what the reader of a written file has to know, and the tree."""
        lines = result_block(self.receipts, missing=self.missing)
        if (written := self.written) is not None:
            text = f"{plain(str(written.path))}, {written.rows:,} rows"
            lines.append(line("  ", Piece("out: ", "dim"), text))
            lines += [line("    ", note) for note in written.notes]
        return [*lines, line(""), *tree(self.receipts)]

    def data(self) -> dict[str, object]:
        """Return plain data; numbers of USD are text, so that no digit is lost."""
        receipts = self.receipts
        return {
            "outcome": "completed" if receipts.blocker is None else "incomplete",
            "blocker": receipts.blocker,
            "missing": list(self.missing),
            "question": receipts.task,
            "result": dict(receipts.result),
            "spend": spend_data(receipts.totals),
            "run": receipts.run,
            "sessions": len(receipts.sessions),
            "content_root": receipts.content_root,
            "receipt": str(receipts.path),
            "out": file_data(self.written),
            **({} if self.unwritten is None else {"error": error_data(self.unwritten)}),
        }


def spend_data(totals: Totals) -> dict[str, object]:
    """Return what was spent as plain data."""
    return {
        "calls": totals.calls,
        "failed": totals.failed,
        "tokens": totals.tokens,
        "usd": str(totals.cost),
        "unpriced_calls": totals.unpriced,
        "lost": totals.lost,
        "lost_tokens": totals.lost_tokens,
        "lost_usd": str(totals.lost_usd),
        "unanswered": totals.unanswered,
        "unanswered_tokens": totals.unanswered_tokens,
        "unanswered_usd": str(totals.unanswered_usd),
    }


def file_data(written: Written | None) -> dict[str, object] | None:
    """Return the file that was written as plain data; None for none."""
    if written is None:
        return None
    return {"path": str(written.path), "rows": written.rows, "notes": list(written.notes)}
