"""Bounds that hold in every session and beside other runs: nodes, the grace of a stop, sensors."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

import rlm
from corpus.spool import Spool
from executors.clock import SystemClock
from executors.errors import RequestRejected
from executors.ids import ContentKey, NodeId, new_run_id
from executors.journal.records import NoJournal, ToolDone
from executors.messages import ModelReply, ModelRequest
from rlm.recursions.options import RecurseOptions
from rlm.recursions.remembering import SensorMemory
from rlm.recursions.sensing import CorpusSensor
from rlm.recursions.spec import Spec
from rlm.runs.log import RunLog
from rlm.testing import ScriptedModel
from tests.rlm.trees import COMPLEX, SIMPLE, cast, plan, results_of, role_of, said, spawns, task_of

pytestmark = pytest.mark.anyio


def blocked(outcome: rlm.RecurseOutcome, blocker: str) -> rlm.Incomplete[object]:
    assert isinstance(outcome, rlm.Incomplete), outcome
    assert outcome.blocker == blocker, (outcome.blocker, outcome.missing)
    return outcome


class Slow(ScriptedModel):
    """Answers what holds a word a little later, or never."""

    word = ""
    seconds = 0.0

    async def generate(self, request: ModelRequest) -> ModelReply:
        if self.word and self.word in task_of(request):
            await anyio.sleep(self.seconds)
        return await super().generate(request)


def slow(script: Callable[[ModelRequest], ModelReply], word: str, seconds: float) -> Slow:
    model = Slow(script)
    model.word, model.seconds = word, seconds
    return model


def nodes(outcome: rlm.RecurseOutcome) -> list[str]:
    return sorted(node.id for node in outcome.receipts.nodes)


# ---------------------------------------------------------------- nodes


def hands_on(request: ModelRequest) -> ModelReply:
    task = task_of(request)
    if results_of(request):
        return said(f"up: {len(results_of(request))}")
    if task == COMPLEX:
        return spawns(f"{COMPLEX} of alpha", f"{COMPLEX} of beta")
    return (
        spawns(f"list one {task[-5:]}", f"list two {task[-5:]}") if COMPLEX in task else said("x")
    )


async def test_the_cap_of_nodes_holds_over_sessions_and_the_same_nodes_get_through(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    first = blocked(
        await rlm.recurse(COMPLEX, slow(hands_on, "alpha", 0.2), max_nodes=4, run=run), "node-cap"
    )
    assert nodes(first) == ["root", "root.0", "root.1", "root.1.0", "root.1.1"]
    # In the next session those that were refused ask first.
    model = slow(hands_on, "beta", 0.2)
    again = blocked(await rlm.recurse(COMPLEX, model, max_nodes=4, run=run), "node-cap")
    assert (nodes(again), again.best, model.calls) == (nodes(first), first.best, 0)
    more = await rlm.recurse(COMPLEX, model, max_nodes=6, run=run)
    assert isinstance(more, rlm.Completed)
    assert len(nodes(more)) == 7


async def test_a_tree_of_thirty_levels_has_an_end_with_one_place_to_work() -> None:
    def deeper(request: ModelRequest) -> ModelReply:
        if results_of(request):
            return said(results_of(request)[0])
        level = int(task_of(request).rpartition(" ")[2]) if task_of(request) != COMPLEX else 0
        offered = any(tool.name == "spawn_child" for tool in request.tools)
        return spawns(f"{COMPLEX} at level {level + 1}") if offered else said(f"leaf {level}")

    wiring = rlm.Wiring(model=cast(deeper), concurrency=1)
    outcome = await rlm.recurse(COMPLEX, wiring, max_depth=32)
    assert isinstance(outcome, rlm.Completed)
    assert outcome.result == "leaf 32"


# ---------------------------------------------------------------- stops


def parts(request: ModelRequest) -> ModelReply:
    if role_of(request) == "planner":
        return plan("list one", "list two")
    return said(f"did {task_of(request)}")


@pytest.mark.parametrize("forced", [True, False])
async def test_what_ended_before_the_grace_of_a_stop_is_kept(forced: bool) -> None:
    def driven(request: ModelRequest) -> ModelReply:
        return spawns("list one", "list two") if task_of(request) == COMPLEX else parts(request)

    stop = rlm.Stop(grace=0.1)
    model = slow(parts if forced else driven, "list two", 60)
    options: dict[str, Any] = {"count": 2} if forced else {}

    async def later() -> None:
        await anyio.sleep(0.3)
        stop.ask("enough")

    best: list[object] = []
    async with anyio.create_task_group() as group:
        group.start_soon(later)
        wiring = rlm.Wiring(model=model, stop=stop)
        best.append(blocked(await rlm.recurse(COMPLEX, wiring, **options), "interrupted").best)
    assert "did list one" in str(best[0])


# ---------------------------------------------------------------- runs side by side


async def test_runs_that_share_a_sensor_look_into_their_own_records() -> None:
    def known(spool: Spool) -> Callable[[str, object], object]:
        ids = {record.id for record in spool}
        return lambda result, _: {"pass": result in ids, "critique": "no such record"}

    how = rlm.RefineLeaf(sensor=CorpusSensor(known), max_iterations=1)
    verdicts: dict[str, object] = {}

    async def one(name: str) -> None:
        model = slow(lambda _: said(f"{name}0"), "", 0)
        model.word, model.seconds = SIMPLE, 0.2
        outcome = await rlm.recurse(
            SIMPLE, model, refine_leaf=how, corpus=[(f"{name}0", "a text")], retrieval="read"
        )
        assert isinstance(outcome, rlm.Completed)
        verdicts[name] = outcome.verdict

    async with anyio.create_task_group() as group:
        group.start_soon(one, "a")
        group.start_soon(one, "b")
    assert all(isinstance(verdict, rlm.Satisfied) for verdict in verdicts.values())
    with pytest.raises(rlm.ConfigError, match="no run has bound it"):
        how.sensor("a0", rlm.SensorContext(task="t"))


async def test_a_session_is_known_to_have_begun_at_once(tmp_path: Path) -> None:
    """What a killed one could not tell is else looked for by nobody, and its calls are lost."""
    clock = SystemClock()
    with RunLog(tmp_path, clock=clock, on_event=None) as log:
        log.start(new_run_id(clock.now()), session=1, name="recurse", task="t", options={})
        lines = (tmp_path / "events.jsonl").read_bytes().splitlines()
        assert [json.loads(line)["kind"] for line in lines] == ["run_started", "node_started"]


class Remembered(NoJournal):
    """A journal that knows what tools gave."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def tool_found(self, key: ContentKey) -> ToolDone | None:
        told = self.told.get(key)
        return None if told is None else ToolDone(result=told, failed=False)

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        assert not failed
        self.told[key] = result


async def test_a_remembered_verdict_is_the_one_that_was_given() -> None:
    """Also where fields of the caller's own are named like ours."""
    forest: Any = SimpleNamespace(goes_on=True, journal=Remembered())
    spec = Spec(node=NodeId("root"), task="t", depth=0, index=0, options=RecurseOptions())
    memory = SensorMemory(forest, spec)
    odd = rlm.NeedsRevision(critique="no", extra={"status": "satisfied", "critique": "fine"})
    await memory.keep("a text", 0, odd)
    said = memory.recall("a text", 0)
    assert isinstance(said, rlm.NeedsRevision)
    assert said.critique == "no"


async def test_a_partition_that_is_gone_on_with_counts_what_it_read_once(tmp_path: Path) -> None:
    records = [(f"r{n}", f"report {n}: {'a fire' if n % 2 else 'calm'}") for n in range(40)]
    down = cast(judge=_down_at("report 12:"))
    for model, blocker in ((down, "unresolved-records"), (cast(), None), (cast(), None)):
        outcome = await rlm.recurse(
            "Is there a fire?",
            model,
            corpus=records,
            mode="partition",
            worker_budget=10,
            run=tmp_path / "run",
        )
        assert getattr(outcome, "blocker", None) == blocker
        nodes = {node.id: node for node in outcome.receipts.nodes}
        assert sum(node.items for node in nodes.values()) == 2 * 40
        states = [nodes[f"root.{n}"].task for n in range(4)]
        assert [task and task.blocker for task in states] == [None, blocker, None, None]
    assert model.calls == 0


def _down_at(text: str) -> Callable[[str], bool]:
    def decide(shown: str) -> bool:
        if text in shown:
            raise RequestRejected("not this one")
        return "fire" in shown

    return decide
