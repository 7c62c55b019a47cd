"""The tree of a run that ended, from its receipt."""

from __future__ import annotations

import re
from typing import Final

from rlm.receipts.nodes import NodeReceipt
from rlm.receipts.receipts import Receipts
from rlm.render.text import times
from rlm.render.tree_state import Branch, TreeState

__all__ = ["state_of"]

_PASS: Final = re.compile(r"pass \d+ of \d+")


def state_of(receipts: Receipts) -> TreeState:
    """Return the tree as it stood when the receipt was written."""
    state = TreeState()
    for node in receipts.nodes:
        if _PASS.fullmatch(node.name) and node.parent in state.branches:
            _add_pass(state.branches[node.parent], node)
        else:
            _fill(state.of(node.id), node)
    for branch in state.branches.values():
        if branch.finished is not None:
            state.settle(branch)
    return state


def _add_pass(branch: Branch, node: NodeReceipt) -> None:
    """Count what a scan did below its node for the node."""
    totals = node.totals
    branch.calls += totals.calls
    branch.failed += totals.failed
    branch.tokens += totals.tokens
    branch.cost += totals.cost
    branch.unpriced += totals.unpriced
    branch.done += node.items
    branch.unresolved += node.unresolved
    for message, count in node.warnings.items():
        branch.note(times(message, count))


def _fill(branch: Branch, node: NodeReceipt) -> None:
    totals = node.totals
    branch.name = node.name or node.id
    branch.started, branch.finished, branch.worked = node.started, node.finished, node.seconds
    branch.open = node.finished is not None
    branch.calls, branch.failed, branch.tokens = totals.calls, totals.failed, totals.tokens
    branch.cost, branch.unpriced = totals.cost, totals.unpriced
    branch.unresolved = node.unresolved
    if node.finished is not None:
        branch.state = "done" if node.error is None else "stopped"
    _task(branch, node)
    for said in node.said:
        branch.note(said)
    for message, count in node.warnings.items():
        branch.note(times(message, count))


def _task(branch: Branch, node: NodeReceipt) -> None:
    if (task := node.task) is None:
        return
    branch.verdict = task.verdict
    branch.blocker = task.blocker or task.blocker_from
    branch.blocked_at = task.blocked_at
    if branch.blocker is not None:
        branch.state = "incomplete"
    if task.blocker is not None and task.detail:
        branch.note(task.detail)
    if task.upgraded:
        branch.note(f"{task.retrieval}: {task.why}")
    if task.attempts is not None and (task.attempts > 1 or not task.passed):
        holds = "holds" if task.passed else "does not hold"
        tries = "1 try" if task.attempts == 1 else f"{task.attempts} tries"
        branch.note(f"the sensor {holds} after {tries}")
    if task.verdict in ("needs_revision", "failed") and task.critique:
        branch.note(task.critique)
