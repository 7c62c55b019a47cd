"""How a recursion ended, as lines: its result, its verdict or what broke, its cost, its tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

from rlm.receipts.receipts import Receipts
from rlm.recursions.results import shown
from rlm.render.lines import Line, Piece, Style, line
from rlm.render.safe import plain
from rlm.render.sent import sent_lines
from rlm.render.text import calls_of, session_lines, spend_of
from rlm.render.tree_lines import tree_lines
from rlm.render.tree_receipt import state_of

__all__ = ["outcome_lines", "result_lines"]

_HEIGHT: Final = 40
_WIDTH: Final = 300
_TAB: Final = "    "
_VERDICTS: Final[dict[object, tuple[str, Style]]] = {
    "satisfied": ("satisfied", "good"),
    "needs_revision": ("not satisfied: it needs revision", "warn"),
    "failed": ("not satisfied: it failed", "warn"),
}


def result_lines(value: object | None) -> list[Line]:
    """Return a result that is no count, as it is but for what would steer a terminal."""
    if value is None:
        return []
    rows = re.split(r"\r\n|\r|\n", shown(value).rstrip("\n"))
    return [line(plain(row.replace("\t", _TAB))) for row in rows]


def outcome_lines(
    receipts: Receipts, *, missing: Sequence[str] = (), height: int = _HEIGHT
) -> list[Line]:
    """Return how it ended, what is missing, what it cost by role, and the tree.

    Args:
        missing: what an incomplete run says that it lacks.
        height: lines of the tree, at most.
    """
    lines = _ended(receipts, missing)
    lines += [_pair("note", _said(note)) for note in _list(receipts.result.get("notes"))]
    lines.append(_pair("cost", spend_of(receipts.totals)))
    if len(receipts.roles) > 1:
        for role, totals in sorted(receipts.roles.items()):
            lines.append(line("    ", Piece(f"{plain(role, 40)}: ", "dim"), spend_of(totals)))
    if calls := calls_of(receipts.totals):
        lines.append(_pair("calls", calls))
    lines += sent_lines(receipts)
    lines += session_lines(receipts)
    lines.append(_pair("receipt", _said(receipts.path)))
    return [*lines, line(""), *tree_lines(state_of(receipts), height=height, details=True)]


def _ended(receipts: Receipts, missing: Sequence[str]) -> list[Line]:
    """Return the verdict, or what broke and where, with what is missing for that."""
    result = receipts.result
    if receipts.blocker is None:
        return [_verdict(receipts)]
    at, detail = result.get("node"), str(result.get("detail") or "")
    where = "" if at is None else f" at {_said(at)}"
    lines = [line("  ", Piece(f"incomplete: {_said(receipts.blocker)}{where}", "bad"))]
    told = [detail] if detail else []
    told += [text for text in missing if not detail or detail not in text]
    return lines + [line("    ", _said(text)) for text in told]


def _verdict(receipts: Receipts) -> Line:
    verdict = receipts.result.get("verdict")
    if verdict is None:
        return line("  ", Piece("completed", "good"), ", nothing had to be verified")
    said, style = _VERDICTS.get(verdict, (_said(verdict), "warn"))
    root = next((node.task for node in receipts.nodes if node.id == "root"), None)
    critique = "" if root is None or not root.critique else f": {plain(root.critique, _WIDTH)}"
    return line("  completed, ", Piece(said, style), critique)


def _pair(name: str, text: str) -> Line:
    return line("  ", Piece(f"{name}: ", "dim"), text)


def _said(value: object) -> str:
    return plain(str(value), _WIDTH)


def _list(value: object) -> list[object]:
    return list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else []
