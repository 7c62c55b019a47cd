"""A task tree as lines, never more than asked for: what does not fit is folded, level by level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Final

from rlm.render.lines import Line, Piece, Style, line
from rlm.render.progress import duration
from rlm.render.safe import cells, plain
from rlm.render.tree_state import Branch, TreeState

__all__ = ["standing_of", "totals_of", "tree_lines"]

_CHILDREN: Final = (1_000, 200, 50, 20, 12, 8, 5, 3, 2, 1, 0)
"""How many children of a node are shown, tried in turn until all fits."""
_NAME: Final = 80
_LEAST: Final = 16
"""Cells of a name, however little room there is."""
_DETAIL: Final = 200
_STYLES: Final[dict[str, Style]] = {
    "working": "plain",
    "done": "good",
    "incomplete": "bad",
    "stopped": "warn",
}
_VERDICTS: Final = {
    "satisfied": "satisfied",
    "needs_revision": "not satisfied (needs revision)",
    "failed": "not satisfied (failed)",
}


def tree_lines(
    state: TreeState,
    *,
    height: int,
    width: int | None = None,
    now: datetime | None = None,
    details: bool = False,
) -> list[Line]:
    """Return the tree in so many lines at most.

    Of the children of a node those are shown first that broke, then those at work, then the latest, or
    where it has ended the first ones; the rest is counted.

    Args:
        width: terminal cells of a line; names give way to figures. None: no limit.
        now: until when open nodes have worked.
        details: with what is to be said of each node below it.
    """
    lines: list[Line] = []
    for most in _CHILDREN:
        lines = list(islice(_drawn(state.root, most, width, now, details=details), height + 1))
        if len(lines) <= height:
            return lines
    return [*lines[: max(0, height - 1)], line(Piece("…", "dim"))]


def totals_of(held: Branch | TreeState) -> str:
    """Return calls, tokens and cost in words; "" where there was no call."""
    facts: list[str] = []
    if held.calls:
        facts = [
            f"{held.calls:,} call{'s' if held.calls != 1 else ''}",
            f"{held.tokens:,} tokens",
            _cost(held.cost, unpriced=held.unpriced, calls=held.calls),
        ]
    if held.failed:
        facts.append(f"{held.failed:,} failed")
    return ", ".join(facts)


def _cost(cost: Decimal, *, unpriced: int, calls: int) -> str:
    if unpriced >= calls:
        return "price unknown"
    return f"{cost:.4f} USD" + (" and more" if unpriced else "")


def _drawn(
    root: Branch, most: int, width: int | None, now: datetime | None, *, details: bool
) -> Iterator[Line]:
    stack: list[tuple[Branch | str, str, str]] = [(root, "", "")]
    while stack:
        branch, lead, hang = stack.pop()
        if isinstance(branch, str):
            yield line(Piece(lead, "dim"), Piece(branch, "dim"))
            continue
        yield _row(branch, lead, width, now)
        below: list[Branch | str] = list(_chosen(branch, most))
        if hidden := _hidden(branch, below):
            below.append(hidden)
        if details:
            gap = "│  " if below else "   "
            for said in branch.details:
                yield line(Piece(hang + gap, "dim"), plain(said, _DETAIL))
        turns = [("├─ ", "│  ")] * (len(below) - 1) + [("└─ ", "   ")]
        branches = [
            (child, hang + turn, hang + under)
            for child, (turn, under) in zip(below, turns, strict=False)
        ]
        stack += reversed(branches)


def _chosen(branch: Branch, most: int) -> list[Branch]:
    """Return the children that are shown, in their order."""
    children = branch.children
    if len(children) <= most:
        return sorted(children, key=lambda one: one.number)
    wanted = {*islice(branch.broken, most), *islice(branch.working, most)}
    first = chain(
        (one for one in children if one.id in branch.broken),
        (one for one in children if one.id in branch.working),
        children if branch.finished is not None else reversed(children),
    )
    chosen: dict[str, Branch] = {}
    for one in first:
        if len(chosen) >= most:
            break
        if one.id in wanted or len(wanted) < most:
            chosen[one.id] = one
    return sorted(chosen.values(), key=lambda one: one.number)


def _hidden(branch: Branch, shown: list[Branch | str]) -> str:
    """Return how many children are not shown, by their states; "" where all are."""
    rest = len(branch.children) - len(shown)
    if not rest:
        return ""
    states = Counter(one.state for one in branch.children)
    states.subtract(one.state for one in shown if isinstance(one, Branch))
    listed = ", ".join(f"{count:,} {state}" for state, count in states.items() if count)
    return f"… {rest:,} {'more' if shown else 'below'}: {listed}"


def _row(branch: Branch, lead: str, width: int | None, now: datetime | None) -> Line:
    facts = [totals_of(branch)]
    if branch.total is not None:
        facts.append(f"{branch.done:,} of {branch.total:,} read")
    elif branch.done:
        facts.append(f"{branch.done:,} read")
    if branch.unresolved:
        facts.append(f"{branch.unresolved:,} unresolved")
    if branch.doing:
        facts.append(plain(branch.doing, 40))
    if (seconds := branch.seconds(now)) is not None:
        facts.append(duration(seconds))
    tail, standing = ", ".join(fact for fact in facts if fact), standing_of(branch)
    room = _NAME if width is None else width - cells(f"{lead}  {standing}  {tail}")
    return line(
        Piece(lead, "dim"),
        Piece(plain(branch.name or branch.id, max(_LEAST, min(_NAME, room))), "strong"),
        "  ",
        Piece(standing, _style(branch)),
        Piece(f"  {tail}", "dim"),
    )


def standing_of(branch: Branch) -> str:
    """Return the state of a node, with its verdict or with what broke and where."""
    if branch.blocker is not None:
        at = branch.blocked_at
        where = f" at {plain(at, 60)}" if at is not None and at != branch.id else ""
        return f"{branch.state}: {plain(branch.blocker, 60)}{where}"
    if branch.verdict is not None:
        return f"{branch.state}, {_VERDICTS.get(branch.verdict, plain(branch.verdict, 40))}"
    return branch.state


def _style(branch: Branch) -> Style:
    if branch.verdict in ("needs_revision", "failed"):
        return "warn"
    return _STYLES.get(branch.state, "plain")
