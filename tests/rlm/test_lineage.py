"""The lineage of a run: a tree that adds up to its receipt."""

from importlib import import_module
from typing import Any

import pytest

import rlm
from rlm.receipts.lineage import lineage
from rlm.testing import ScriptedModel, grading, spawning, tree_script
from tests.rlm.trees import COMPLEX

pytestmark = pytest.mark.anyio
nx: Any = import_module("networkx")


async def test_it_is_a_tree_whose_nodes_add_up_to_the_run() -> None:
    model = ScriptedModel(tree_script(spawning(3, depth=2), grading("satisfied")))
    outcome = await rlm.recurse(COMPLEX, model, contract="all of it")
    graph: Any = lineage(outcome.receipts)
    assert nx.is_arborescence(graph)
    assert len(graph) == len(outcome.receipts.nodes) == 13
    assert {kind for *_, kind in graph.edges(data="kind")} == {"parent"}
    for name in ("calls", "tokens", "cost"):
        total = getattr(outcome.receipts.totals, name)
        assert sum(value or 0 for _, value in graph.nodes(data=name)) == total
    assert graph.nodes["root"]["verdict"] == "satisfied"
    assert {state for _, state in graph.nodes(data="state")} == {"done"}


async def test_a_node_that_broke_is_named_by_those_above_it() -> None:
    def turn(_: rlm.ModelRequest) -> rlm.ModelReply:
        return rlm.ModelReply(text="cut", stop="max_tokens")

    corpus = ["one", "two"]
    outcome = await rlm.recurse("read it", ScriptedModel(turn), corpus=corpus, mode="fanout", count=2)  # fmt: skip
    graph: Any = lineage(outcome.receipts)
    assert {n: at["state"] for n, at in graph.nodes(data=True)} == dict.fromkeys(
        ("root", "root.0", "root.1"), "incomplete"
    )
    assert graph.nodes["root"]["blocked_at"] == "root.0"
    assert graph.nodes["root.1"]["blocker"] == "truncated"


async def test_a_changed_graph_changes_no_receipt() -> None:
    outcome = await rlm.recurse("say hello", ScriptedModel("hello"))
    lineage(outcome.receipts).clear()
    assert list(lineage(outcome.receipts)) == ["root"]
