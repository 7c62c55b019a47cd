"""A recursion goes on by `resume` with what the run recorded; what no file holds is asked for."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

import rlm
from executors.gate.decisions import Allow
from executors.loop.worker import ToolRequest
from rlm import (
    Caps,
    Completed,
    ConfigError,
    Incomplete,
    Limits,
    Price,
    RefineLeaf,
    RunDirError,
    SynthesisInput,
    Tally,
    Tool,
    ToolContext,
    ValidationError,
    Wiring,
    count,
    recurse,
    resume,
)
from rlm.checks.sensors.base import SensorContext
from rlm.cli.wired import options_over
from rlm.fakes.tree import grading, spawning, tree_script, tree_server
from rlm.recursions.options import RecurseOptions
from rlm.recursions.rebuilding import rebuilt
from rlm.runs.manifest import Manifest
from rlm.testing import FakeServer, ScriptedModel, judge_script

pytestmark = pytest.mark.anyio
TASK = "Design and implement the whole system."
CORPUS = [("a", "a refund, please"), ("b", "calm"), ("c", "refund me")]


def tree(width: int = 2) -> ScriptedModel:
    return ScriptedModel(tree_script(spawning(width, depth=1), grading("satisfied")))


async def test_a_finished_recursion_comes_out_again_without_a_call(tmp_path: Path) -> None:
    first = await recurse(TASK, tree(), run=tmp_path / "run")
    again = tree()
    second = await resume(tmp_path / "run", model=again)
    assert again.calls == 0
    assert isinstance(first, Completed)
    assert isinstance(second, Completed)
    assert second.result == first.result
    assert second.receipts.content_root == first.receipts.content_root
    assert second.receipts.totals.calls == first.receipts.totals.calls


async def test_a_recursion_that_a_bound_ended_pays_for_what_is_left_alone(tmp_path: Path) -> None:
    run, worker = tmp_path / "run", tree()
    first = await recurse(TASK, Wiring(model=worker, caps=Caps(calls=2)), run=run)
    assert isinstance(first, Incomplete)
    assert first.blocker == "halted"
    second = await resume(run, model=worker, caps=Caps(calls=99))
    assert isinstance(second, Completed)
    assert worker.calls == 4
    assert [session.calls for session in second.receipts.sessions] == [2, 2]


async def test_who_works_and_what_bounds_them_is_as_the_run_recorded_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with FakeServer(tree_server(spawning(2, depth=1), grading("satisfied"))) as server:
        spec = f"openai+{server.base_url}:m"
        wiring = Wiring(
            model=spec,
            verifier=f"{spec}2",
            concurrency=3,
            caps=Caps(calls=50, usd=Decimal("1.25")),
            prices=Price(input=Decimal(1), output=Decimal(2)),
            limits=Limits(rpm=60_000),
            data={"who": "me"},
        )
        await recurse(TASK, wiring, contract="done", max_depth=2, rounds=7, run=run)
        manifest = Manifest.load(run)
        wired, options = rebuilt(manifest, run, {}, {})
        assert wired == Wiring(
            model=spec, verifier=f"{spec}2", concurrency=3, caps=wiring.caps,
            prices=wiring.prices, limits=wiring.limits, data={"who": "me"},
            retry=wired.retry, clock=wired.clock,
        )  # fmt: skip
        assert options == RecurseOptions(contract="done", max_depth=2, rounds=7, run=run)
        paid = server.requests
        assert isinstance(await resume(run), Completed)
        assert server.requests == paid


async def test_records_are_those_that_the_run_has_read(tmp_path: Path) -> None:
    run = tmp_path / "run"
    judge = ScriptedModel(judge_script(lambda text: "refund" in text))
    first = await recurse("Is it about a refund?", judge, corpus=CORPUS, retrieval="scan", run=run)
    assert isinstance(first, Completed)
    paid = judge.calls
    second = await resume(run, model=judge)
    assert isinstance(second, Completed)
    assert isinstance(second.result, Tally)
    assert (second.result.count, judge.calls) == (2, paid)
    grown = [*CORPUS, ("d", "another refund")]
    third = await resume(run, model=judge, corpus=grown)
    assert isinstance(third, Completed)
    assert isinstance(third.result, Tally)
    assert third.result.count == 3


def decide(request: ToolRequest) -> Allow:
    return Allow()


def look(result: str, context: SensorContext) -> object:
    return {"pass": True}


def grade(result: object, context: object) -> object:
    return {"pass": True}


def joined(given: SynthesisInput) -> str:
    return "joined"


def run_tool(arguments: object, context: ToolContext) -> str:
    return "ok"


async def test_each_object_of_the_callers_is_named_with_the_call_that_gives_it_again(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    tool = Tool(name="t", description="d", parameters={"type": "object"}, execute=run_tool)
    await recurse(
        TASK,
        Wiring(model=tree(), policy=decide),
        evaluate=grade,
        refine_leaf=RefineLeaf(sensor=look),
        synthesize=joined,
        tools=[tool],
        run=run,
    )
    with pytest.raises(ConfigError) as caught:
        await resume(run)
    said = str(caught.value)
    for name in ("model", "policy", "evaluate", "refine_leaf", "synthesize", "tools"):
        assert re.search(rf"\b{name} \(", said), name
    assert "rlm.recurse(task, …, run=" in said


@pytest.mark.parametrize("name", ["judge", "encoder", "labels", "engine"])
async def test_what_only_counts_know_is_refused(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    await recurse(TASK, tree(), run=run)
    with pytest.raises(ValidationError, match=f"{name} has no effect"):
        await resume(run, model=tree(), **{name: "chat"})  # type: ignore[arg-type]  # what is refused


async def test_another_model_takes_no_price_and_no_key_from_the_one_before(tmp_path: Path) -> None:
    run = tmp_path / "run"
    prices = Price(input=Decimal(1), output=Decimal(2))
    with FakeServer(tree_server(spawning(0, depth=0))) as server:
        spec = f"openai+{server.base_url}:m"
        await recurse(TASK, Wiring(model=spec, prices=prices), run=run)
    wired, _ = rebuilt(Manifest.load(run), run, {}, {"model": "openai:other"})
    assert (wired.model, wired.prices, wired.key_env) == ("openai:other", None, None)
    same, _ = rebuilt(Manifest.load(run), run, {}, {"concurrency": 2})
    assert (same.model, same.prices, same.concurrency) == (spec, prices, 2)


async def test_records_that_were_in_memory_and_never_kept_have_to_be_given_again(
    tmp_path: Path,
) -> None:
    run, worker = tmp_path / "run", tree()
    await recurse(TASK, worker, corpus=CORPUS, retrieval="read", run=run)
    for file in (run / "spool").iterdir():
        file.unlink()
    (run / "spool").rmdir()
    with pytest.raises(RunDirError, match="ended before its corpus was read"):
        await resume(run, model=worker)
    assert isinstance(await resume(run, model=worker, corpus=CORPUS), Completed)


async def test_a_run_from_elsewhere_gives_neither_models_nor_bounds(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with FakeServer(tree_server(spawning(2, depth=1))) as server:
        spec = f"openai+{server.base_url}:m"
        wiring = Wiring(model=spec, planner=f"{spec}3", caps=Caps(calls=7), data={"a": 1})
        await recurse(TASK, wiring, run=run)
    path = run / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, "mark": "00"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="made elsewhere, and names"):
        await resume(run)
    wired, options = rebuilt(Manifest.load(run), run, {}, {"model": "openai:mine"})
    assert (wired.model, wired.planner, wired.caps, dict(wired.data)) == (
        "openai:mine", None, Caps(), {},
    )  # fmt: skip
    assert options.max_depth == 3


async def test_a_command_takes_over_nothing_from_a_run_that_is_another_kind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("refund?", CORPUS, terms=("refund",), run=run)
    wiring, options = options_over(str(run), {"max_depth": 1}, {"concurrency": 2})
    assert (options.max_depth, wiring.concurrency, wiring.model) == (1, 2, None)


def test_the_sync_twin_goes_on_as_well(tmp_path: Path) -> None:
    rlm.recurse_sync(TASK, tree(), run=tmp_path / "run")
    second = rlm.resume_sync(tmp_path / "run", model=tree())
    rlm.close()
    assert isinstance(second, Completed)
