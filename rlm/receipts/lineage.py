"""The lineage of a run: which piece of work came out of which, as a graph to explore. Pure."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from rlm.receipts.nodes import NodeReceipt
from rlm.receipts.receipts import Receipts

__all__ = ["LineageState", "lineage"]

LineageState = Literal["done", "incomplete", "failed", "open"]
"""How a node ended.

done        it did its task; its verdict may be that the result is not good enough
incomplete  it broke, or one below it did
failed      an error ended it
open        it never ended: the run was cut off there
"""


def lineage(receipts: Receipts) -> Any:  # noqa: ANN401 - networkx has no types
    """Return the nodes of a run as an `nx.DiGraph`, from the root to its leaves.

    Nodes are named as in the receipt and carry `label`, `task`, `depth`, `state`, `verdict`,
    `blocker`, `blocked_at`, `calls`, `tokens`, `cost` (USD, None where no call has a price) and
    `seconds` (None while open): of the node's own work, without those below it. Edges lead from a
    node to its parts and carry `kind="parent"`, so that the graph is a tree; which node another one
    broke by is in `blocked_at`. It is built anew each time, so it may be changed at will.
    """
    graph: Any = import_module("networkx").DiGraph(run=receipts.run, task=receipts.task)
    for node in receipts.nodes:
        graph.add_node(node.id, **_fields(node))
    for node in receipts.nodes:
        if node.parent is not None and node.parent in graph:
            graph.add_edge(node.parent, node.id, kind="parent")
    return graph


def _fields(node: NodeReceipt) -> dict[str, object]:
    task, totals = node.task, node.totals
    return {
        "label": node.name or node.id,
        "task": node.name if task is None else task.task,
        "depth": node.id.count("."),
        "state": _state(node),
        "verdict": None if task is None else task.verdict,
        "blocker": None if task is None else task.blocker or task.blocker_from,
        "blocked_at": None if task is None else task.blocked_at,
        "calls": totals.calls,
        "tokens": totals.tokens,
        "cost": None if totals.calls and totals.unpriced == totals.calls else totals.cost,
        "seconds": node.seconds,
    }


def _state(node: NodeReceipt) -> LineageState:
    if node.finished is None:
        return "open"
    if node.task is not None and (node.task.blocker or node.task.blocker_from):
        return "incomplete"
    return "done" if node.error is None else "failed"
