"""What a recursion would take is what it takes, where rules and sizes decide; else its bounds hold."""

import json
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import rlm
from executors.messages import ModelReply, ModelRequest
from executors.tokens import estimate_request
from rlm import Price, RefineLeaf, SourceError, ValidationError, Wiring, plan_recursion, recurse
from rlm.checks.sensors.base import SensorContext
from rlm.cli import main
from rlm.fakes.judge import judge_script
from rlm.fakes.tree import answering, grading, planning, role_of, spawning, tree_script
from rlm.recursion import recurse_with
from rlm.recursions.foreseen import RecursionPlan
from rlm.recursions.options import RecurseOptions
from rlm.recursions.planning import Planning
from rlm.testing import ScriptedModel

CORPUS = [
    (f"t{n}", f"record {n} {'wants a refund' if n % 3 == 0 else 'is calm'}") for n in range(20)
]
HARD = "Design and implement the whole system."


@pytest.fixture(autouse=True)
def own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")


def judging(request: ModelRequest) -> ModelReply | str | Exception | None:
    return (
        judge_script(lambda text: "refund" in text)(request)
        if role_of(request) == "judge"
        else None
    )


def model(**given: int) -> ScriptedModel:
    script = tree_script(judging, planning(3), grading("satisfied"), spawning(2, depth=2))
    return ScriptedModel(script, context_window=given.get("window"))


def asked_of(scripted: ScriptedModel) -> int:
    return sum(estimate_request(request) for request in scripted.requests)


EXACT = {
    "a partition": RecurseOptions(corpus=CORPUS, mode="partition", worker_budget=6),
    "a partition that reads": RecurseOptions(
        corpus=CORPUS, mode="partition", worker_budget=6, retrieval="read"
    ),
    "slices": RecurseOptions(corpus=CORPUS, count=4),
    "a scan": RecurseOptions(corpus=CORPUS, retrieval="scan", passes=3, window=5),
    "all of it read": RecurseOptions(corpus=CORPUS, retrieval="read"),
    "slices that are merged": RecurseOptions(corpus=CORPUS, count=4, synthesize="merge"),
    "slices with a contract": RecurseOptions(corpus=CORPUS, count=3, contract="all named"),
}


async def planned_and_done(
    task: str, worker: ScriptedModel, options: RecurseOptions, run: Path
) -> RecursionPlan:
    """Plan a recursion, and then do it."""
    wiring = Wiring(model=worker)
    plan = await Planning(task, wiring, options).plan()
    assert worker.calls == 0
    await recurse_with(task, wiring, replace(options, run=run))
    return plan


@pytest.mark.anyio
@pytest.mark.parametrize("shape", EXACT)
async def test_a_tree_that_rules_and_sizes_decide_takes_what_its_plan_says(
    shape: str, tmp_path: Path
) -> None:
    worker = model()
    plan = await planned_and_done("Who wants a refund?", worker, EXACT[shape], tmp_path / "run")
    assert plan.exact
    assert plan.calls.low == plan.calls.high == worker.calls
    spent, told = asked_of(worker), sum(load.input.low for load in plan.loads)
    most = sum(load.input.high or 0 for load in plan.loads)
    assert told <= spent <= most
    if "merged" not in shape and "contract" not in shape:
        assert told == spent == most


@pytest.mark.anyio
@pytest.mark.parametrize("count", [None, 3])
async def test_a_tree_that_a_model_makes_stays_within_its_bounds(
    count: int | None, tmp_path: Path
) -> None:
    worker = model()
    plan = await planned_and_done(HARD, worker, RecurseOptions(count=count), tmp_path / "run")
    assert not plan.exact
    assert plan.calls.high is not None
    assert plan.calls.low <= worker.calls <= plan.calls.high
    roles = {load.role: load for load in plan.loads}
    workers = sum(role_of(request) == "worker" for request in worker.requests)
    assert roles["worker"].calls.low <= workers <= (roles["worker"].calls.high or 0)
    assert roles["worker"].input.high is None


@pytest.mark.anyio
async def test_a_leaf_that_may_try_again_is_planned_from_one_try_to_all(tmp_path: Path) -> None:
    def never(result: str, context: SensorContext) -> object:
        return {"pass": False, "critique": "y" * 9_000}

    worker = ScriptedModel(tree_script(answering(lambda _: "x" * 5_000)))
    how = RefineLeaf(sensor=never)
    plan = await plan_recursion("Say it.", worker, refine_leaf=how)
    await recurse("Say it.", worker, refine_leaf=how, run=tmp_path / "run")
    (load,) = plan.loads
    assert (load.calls.low, load.calls.high) == (1, 3)
    assert worker.calls == 3
    assert load.input.high is not None
    assert asked_of(worker) <= load.input.high


@pytest.mark.anyio
async def test_costs_are_those_of_the_prices_that_are_known() -> None:
    wiring = Wiring(model=model(), prices=Price(input=Decimal(1), output=Decimal(2)))
    plan = await plan_recursion("Who wants a refund?", wiring, corpus=CORPUS, count=4)
    (load,) = plan.loads
    assert plan.usd is not None
    assert plan.usd.low == Decimal(load.input.low + 2 * 4) / 1_000_000
    unknown = await plan_recursion("Say it.", "openai:m")
    assert unknown.usd is None
    assert "10 USD (binds nothing: no price is known)" in str(unknown)


@pytest.mark.anyio
async def test_a_bound_that_is_sure_to_end_it_is_named() -> None:
    wiring = Wiring(model=model(), caps=rlm.Caps(calls=3))
    plan = await plan_recursion("Who wants a refund?", wiring, corpus=CORPUS, count=4)
    assert plan.halted_by is not None
    assert plan.halted_by.name == "calls"
    assert "that of 3 calls would end it" in str(plan)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ("Who?", RecurseOptions(corpus=[]), "empty-corpus"),
        (
            "Only one sentence here.",
            RecurseOptions(count=3, planner_rules=True),
            "plan-wrong-count",
        ),
    ],
)
async def test_what_is_sure_to_end_incomplete_is_said(
    task: str, options: RecurseOptions, said: str
) -> None:
    plan = await Planning(task, Wiring(model=model()), options).plan()
    assert any(said in text for text in plan.ends)
    assert said in str(plan)


@pytest.mark.anyio
async def test_wrong_use_is_the_same_error_as_of_the_recursion_itself() -> None:
    with pytest.raises(ValidationError, match="fit a worker's message"):
        await plan_recursion("Who?", model(window=200), corpus=CORPUS, count=1)
    with pytest.raises(SourceError):
        await plan_recursion("Who?", model(), corpus="no-such-file.csv")


def test_the_plan_is_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "t.csv"
    rows = "".join(f"{id_},{text}\n" for id_, text in CORPUS)
    source.write_text(f"id,text\n{rows}", encoding="utf-8")
    asked = ["plan", "Who wants a refund?", "--corpus", str(source), "--mode", "partition"]
    asked += ["--worker-budget", "8", "--model", "openai:m", "--price", "1,2"]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == snapshot("""\
plan: nothing was asked, nothing was paid
  task: Who wants a refund?
  looks: simple, 0 points (lookup)
  shape: partition: 20 records at 8 a worker ask for 3 part(s)
  corpus: 20 records, 20 distinct texts
  read by: scan: each part is judged
  nodes: 4
    partition 1 of 3: 7 texts, 1,090 tokens in, 2 calls
    partition 2 of 3: 7 texts, 1,088 tokens in, 2 calls
    partition 3 of 3: 6 texts, 1,034 tokens in, 2 calls
  calls: 6
    judge: 6 calls of openai:m, tokens in 3,212, out 126 to 6,624
  tokens: 3,338 to 9,836, by UTF-8 bytes / 3
  cost: 0.00346 to 0.0165 USD
  bounds: none is reached: 100,000 calls, 200,000,000 tokens, 10 USD
  note: replies of a judge that cannot be used cost more
""")
    assert main([*asked, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["shape"] == "partition"
    assert [part["records"] for part in value["parts"]] == [7, 7, 6]
    assert not (Path.home() / ".local/share/rlm").exists()


def test_a_plan_without_a_model_is_that_of_rules_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "t.jsonl"
    source.write_text("\n".join(json.dumps({"id": i, "text": t}) for i, t in CORPUS), "utf-8")
    assert main(["plan", "Which records mention 'refund'?", "--corpus", str(source)]) == 0
    out = capsys.readouterr().out
    assert "shape: terms: code counts" in out
    assert "cost: nothing: no model is asked" in out


def test_a_plan_shows_itself_in_notebooks_and_in_brief() -> None:
    plan = rlm.plan_recursion_sync("Say it.", model())
    rlm.close()
    assert isinstance(plan, RecursionPlan)
    assert repr(plan) == "RecursionPlan(worker, 1 to 1 calls)"
    assert str(plan).startswith("plan: nothing was asked, nothing was paid\n  task: Say it.\n")
