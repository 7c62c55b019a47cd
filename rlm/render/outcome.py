"""How a recursion ended, as lines: its result, its verdict or what broke, its cost, its tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from corpus.results import Tally
from rlm.receipts import Receipts
from rlm.recursions.results import shown
from rlm.render.lines import Line, Piece, line
from rlm.render.safe import plain
from rlm.render.text import calls_of, spend_of, tally_lines
from rlm.render.tree_lines import tree_lines
from rlm.render.tree_receipt import state_of

__all__ = ["outcome_lines", "result_lines", "tree_block"]

_HEIGHT: Final = 60
_WIDTH: Final = 300
_TAB: Final = "    "
_VERDICTS: Final = {
    "satisfied": ("satisfied", "good"),
    "needs_revision": ("not satisfied: needs revision", "warn"),
    "failed": ("not satisfied: failed", "warn"),
}


def result_lines(receipts: Receipts, value: object | None) -> list[Line]:
    """Return the result itself: a count by its numbers, a text as it is but for what steers."""
    if isinstance(value, Tally):
        return tally_lines(receipts)
    if value is None:
        return []
    rows = re.split(r"\r\n|\r|\n", shown(value).rstrip("\n"))
    return [line(plain(row.replace("\t", _TAB))) for row in rows]


def outcome_lines(
    receipts: Receipts, *, missing: Sequence[str] = (), height: int = _HEIGHT, details: bool = True
) -> list[Line]:
    """Return how it ended, what is missing, what it cost by role, and the tree.

    Args:
        missing: what an incomplete run says that it lacks.
        height: lines of the tree, at most.
    """
    lines = [_ended(receipts)]
    lines += [line("    ", _said(text)) for text in missing]
    lines += [_pair("note", _said(note)) for note in _list(receipts.result.get("notes"))]
    lines.append(_pair("cost", spend_of(receipts.totals)))
    if calls := calls_of(receipts.totals):
        lines.append(_pair("calls", calls))
    if len(receipts.roles) > 1:
        for role, totals in sorted(receipts.roles.items()):
            lines.append(line("    ", Piece(f"{plain(role, 40)}: ", "dim"), spend_of(totals)))
    if len(receipts.sessions) > 1:
        lines.append(_pair("sessions", f"{len(receipts.sessions):,}; cost and calls are of all"))
    lines.append(_pair("receipt", _said(receipts.path)))
    return [*lines, line(""), *tree_block(receipts, height=height, details=details)]


def tree_block(receipts: Receipts, *, height: int = _HEIGHT, details: bool = True) -> list[Line]:
    """Return the tree of a run that ended."""
    return tree_lines(state_of(receipts), height=height, details=details)


def _ended(receipts: Receipts) -> Line:
    result = receipts.result
    if receipts.blocker is not None:
        at = result.get("node")
        where = "" if at is None else f" at {_said(at)}"
        return line("  ", Piece(f"incomplete: {_said(receipts.blocker)}{where}", "bad"))
    verdict = result.get("verdict")
    if verdict is None:
        return line("  ", Piece("completed", "good"), ", nothing had to be verified")
    said, style = _VERDICTS.get(str(verdict), (_said(verdict), "warn"))
    root = next((node.task for node in receipts.nodes if node.id == "root"), None)
    critique = "" if root is None or not root.critique else f": {plain(root.critique, _WIDTH)}"
    return line("  completed, ", Piece(said, "good" if style == "good" else "warn"), critique)


def _pair(name: str, text: str) -> Line:
    return line("  ", Piece(f"{name}: ", "dim"), text)


def _said(value: object) -> str:
    return plain(str(value), _WIDTH)


def _list(value: object) -> list[object]:
    return list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else []
