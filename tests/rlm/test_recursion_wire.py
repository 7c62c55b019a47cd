"""Trees over real HTTP: many nodes, many parts, many records, and receipts that add up to the token."""

import json
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.fakes.tree import planning, spawning, tree_server
from rlm.testing import FakeServer, judge_server

pytestmark = pytest.mark.anyio

TASK = "design and implement the whole pipeline across the entire system"


def add_up(receipts: rlm.Receipts) -> None:
    """Each token of the run is some node's and some role's, and the run's own count is the sum."""
    for tier in ("input", "cache_read", "output", "calls", "attempts"):
        whole = getattr(receipts.totals, tier)
        assert sum(getattr(node.totals, tier) for node in receipts.nodes) == whole
        assert sum(getattr(some, tier) for some in receipts.roles.values()) == whole
    spent = [event for event in _events(receipts.directory) if event["kind"] == "call_finished"]
    assert sum(event["usage"]["output"] for event in spent) == receipts.totals.output > 0
    assert sum(event["usage"]["input"] for event in spent) == receipts.totals.input > 0


def _events(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.case("R-016", "K9-20")
async def test_a_tree_of_depth_three_and_five_children_a_node(tmp_path: Path) -> None:
    async with FakeServer(tree_server(spawning(5, depth=3))) as server:
        wiring = rlm.Wiring(model=f"openai+{server.base_url}:fake")
        outcome = await rlm.recurse(TASK, wiring, run=tmp_path / "run")
    assert isinstance(outcome, rlm.Completed)
    nodes = outcome.receipts.nodes
    assert len(nodes) == 1 + 5 + 25 + 125
    assert all(node.parent is None or node.parent in {n.id for n in nodes} for node in nodes)
    assert server.requests == outcome.receipts.totals.calls == 31 * 2 + 125
    assert str(outcome.result).count("answer of") == 125
    add_up(outcome.receipts)


@pytest.mark.case("R-056")
async def test_a_fan_out_of_a_thousand(tmp_path: Path) -> None:
    async with FakeServer(tree_server(planning(1_000), spawning(0, depth=1))) as server:
        wiring = rlm.Wiring(model=f"openai+{server.base_url}:fake", concurrency=64)
        outcome = await rlm.recurse(
            TASK, wiring, count=1_000, run=tmp_path / "run", max_tokens=40_000
        )
    assert isinstance(outcome, rlm.Completed), outcome
    assert str(outcome.result).count("### Part") == 1_000
    assert server.requests == 1_001
    add_up(outcome.receipts)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.case("R-099")
async def test_a_partition_of_a_hundred_thousand_records(tmp_path: Path) -> None:
    corpus = tmp_path / "records.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for n in range(100_000):
            what = "a fire broke out" if n % 7 == 0 else "nothing happened"
            file.write(json.dumps({"id": f"r{n}", "text": f"report {n}: {what}"}) + "\n")
    async with FakeServer(judge_server(lambda text: "fire" in text)) as server:
        wiring = rlm.Wiring(model=f"openai+{server.base_url}:fake", concurrency=64)
        outcome = await rlm.recurse(
            "Is there a fire?",
            wiring,
            corpus=corpus,
            mode="partition",
            worker_budget=1_000,
            run=tmp_path / "run",
        )
        requests = server.requests
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.result, rlm.Tally)
    assert outcome.result.count == -(-100_000 // 7)
    assert requests == outcome.receipts.totals.calls == 2 * 100_000 // 8
    children = [node for node in outcome.receipts.nodes if node.parent == "root"]
    assert len(children) == 100
    add_up(outcome.receipts)
