"""Each kind of call and each source of tools meets the one chokepoint.

Reverting one of these turns a test here red: `governor=` where a worker is made (recursions.worker,
checks.critic), `outlet=` where a run makes its pipeline, the gate's word in `Forest.checkpoint`, the
pipeline of a governed run for judges without their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest

import executors
import rlm
from executors.gate.decisions import Allow, Deny, Halt, Settled
from executors.gate.governor import Deed
from executors.messages import CallRole, ModelReply, ModelRequest
from rlm.checks.calibration import judge_of
from tests.rlm.spies import Spy
from tests.rlm.trees import (
    COMPLEX,
    CRITICAL,
    SIMPLE,
    asked,
    calls,
    cast,
    grade,
    results_of,
    said,
    spawns,
)

pytestmark = pytest.mark.anyio

LISTED = "1. list the doors\n2. list the windows"
ROOMS = Path(executors.__file__).parent.parent


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy().watch(monkeypatch)


def reports(count: int) -> list[tuple[str, str]]:
    return [(f"r{n}", "a fire" if n % 2 == 0 else "calm") for n in range(count)]


def denying(name: str) -> Callable[[Deed], Settled]:
    def decide(deed: Deed) -> Settled:
        return Deny(rule="tools.denylist", reason="no") if deed.tool == name else Allow(aid="a")

    return decide


# ---------------------------------------------------------------- calls of models


@pytest.mark.case("G-220", "G-209")
async def test_every_role_is_metered_by_the_gate_and_tagged(spy: Spy) -> None:
    """ "summary" is of the agent that sums up its own session: nobody plays it here yet."""
    model = cast()
    await rlm.recurse(COMPLEX, model, count=2, synthesize="merge", contract="All is listed.")
    await rlm.recurse("is it about a fire?", model, corpus=reports(4), retrieval="scan")
    await rlm.count("is it about a fire?", reports(4), model=model)
    assert {role for role, _ in spy.calls} == set(get_args(CallRole)) - {"summary"}
    assert len(spy.calls) == model.calls
    assert set(spy.models) == {model.info.spec}
    assert (spy.closed, spy.flushed > 0) == (3, True)


async def test_graders_and_critics_of_callers_ask_through_the_governed_run(spy: Spy) -> None:
    def tries(request: ModelRequest) -> ModelReply:
        done = results_of(request)
        return grade("satisfied") if done else calls("probe", {})

    def probe() -> str:
        """Try it."""
        return "fine"

    model, critic_model = cast(), cast(verifier=tries)
    agentic = rlm.critic(critic_model, [rlm.tool(probe)])
    await rlm.recurse(SIMPLE, model, evaluate=rlm.Evaluator(agentic=agentic))
    grader = rlm.Evaluator(rubric="It is done.", model=critic_model)

    async def of_my_own(result: object, context: rlm.EvaluationContext) -> object:
        return await grader.evaluate(result, context)

    await rlm.recurse(SIMPLE, model, evaluate=of_my_own)
    assert [role for role, _ in spy.calls].count("verifier") == 3
    assert [deed.tool for deed in spy.deeds] == ["probe"]


async def test_judges_of_requests_ask_through_the_governed_run(spy: Spy) -> None:
    model, ruler = cast(), cast(verifier=lambda _: said('{"violation": null, "honored": true}'))

    async def of_my_own(result: object, context: rlm.EvaluationContext) -> object:
        with suppress(rlm.RlmError):  # what it answers is not what this is about
            await rlm.judge("be brief", str(result), model=ruler)
        judge = judge_of(ruler)
        with suppress(rlm.RlmError):
            await judge("be brief", str(result), 1)
        return True

    await rlm.recurse(SIMPLE, model, evaluate=of_my_own)
    assert [role for role, _ in spy.calls].count("verifier") == ruler.calls >= 2


async def test_models_are_shown_to_the_gate_before_anything_is_spent(
    spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbids(model: rlm.Model) -> rlm.Model:
        raise rlm.Halted(bound="data.hosts", scope="run", limit=f"not to {model.info.spec}")

    monkeypatch.setattr(spy, "model", forbids)
    model = cast()
    for outcome in (
        await rlm.recurse(COMPLEX, model),
        await rlm.count("is it?", reports(4), model=model),
    ):
        assert isinstance(outcome, rlm.Incomplete)
        assert outcome.blocker == "halted"
        assert any("data.hosts" in line for line in outcome.missing)
    assert (model.calls, spy.calls) == (0, [])


# ---------------------------------------------------------------- tools


async def test_every_source_of_tools_passes_the_gate(spy: Spy) -> None:
    """The caller's, given as a list and by a function; those over a corpus; and children."""

    def mine() -> str:
        """Look."""
        return "looked"

    wanted: dict[str, dict[str, object]] = {
        "mine": {},
        "search_memory": {"query": "fire"},
        "exact_match": {"terms": ["fire"]},
        "read_record": {"id": "r0"},
        "scan_count": {"question": "is it about a fire?"},
    }

    def worker(request: ModelRequest) -> ModelReply:
        names = {tool.name for tool in request.tools}
        done = len(results_of(request))
        todo = [name for name in wanted if name in names]
        if done < len(todo):
            return calls(todo[done], wanted[todo[done]])
        if "spawn_child" in names and done == len(todo):
            return spawns("count the cars")
        return said("done")

    offered: set[str] = set()
    for tools in ((rlm.tool(mine),), lambda: (rlm.tool(mine),)):
        model = cast(worker)
        await rlm.recurse(COMPLEX, model, corpus=reports(4), retrieval="tools", tools=tools)
        offered |= {tool.name for request in asked(model, "worker") for tool in request.tools}
        assert offered == {deed.tool for deed in spy.deeds}
        assert {*wanted, "spawn_child"} <= offered
        spy.deeds.clear()


@pytest.mark.case("G-219")
async def test_a_child_is_a_deed_of_the_kind_spawn_and_a_deny_is_told_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy(decide=denying("spawn_child")).watch(monkeypatch)

    def worker(request: ModelRequest) -> ModelReply:
        return said("alone") if results_of(request) else spawns("count the cars")

    model = cast(worker)
    outcome = await rlm.recurse(COMPLEX, model)
    assert [(deed.tool, deed.kind, deed.depth) for deed in spy.deeds] == [
        ("spawn_child", "spawn", 0)
    ]
    assert [node.id for node in outcome.receipts.nodes] == ["root"]
    assert results_of(asked(model, "worker")[1]) == ["Denied: no [tools.denylist]"]


async def test_a_tool_that_is_not_allowed_by_name_is_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Spy(hides=("spawn_child",)).watch(monkeypatch)
    model = cast()
    await rlm.recurse(COMPLEX, model)
    assert all(not request.tools for request in asked(model, "worker"))


@pytest.mark.case("G-216")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recurse_fanout", {"count": 2, "planner_rules": True}),
        ("recurse_fanout", {"count": 2}),
        ("recurse_fanout", {"count": 2, "corpus": reports(20)}),
        ("recurse_partition", {"mode": "partition", "corpus": reports(20)}),
        (
            "recurse_partition",
            {"mode": "partition", "retrieval": "read", "corpus": reports(20)},
        ),
        ("recurse_scan", {"retrieval": "scan", "corpus": reports(20)}),
    ],
)
async def test_a_checkpoint_is_asked_before_anything_is_spent(
    name: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(decide=denying(name)).watch(monkeypatch)
    model = cast()
    outcome = await rlm.recurse(LISTED, model, **options)  # type: ignore[arg-type]
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "governance-deny"
    assert "the gate denied" in str(outcome.detail)
    assert [deed.tool for deed in spy.deeds] == [name]
    assert (model.calls, spy.calls) == (0, [])


@pytest.mark.case("G-218", "G-221")
async def test_a_halt_among_children_stops_the_tree_and_comes_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decide(deed: Deed) -> Settled:
        if deed.node.startswith("root."):
            return Halt(rule="budget.maxCostUsd", reason="1.20 of 1 USD are used")
        return Allow(aid="a")

    Spy(decide=decide).watch(monkeypatch)

    def mine() -> str:
        """Look."""
        return "looked"

    def worker(request: ModelRequest) -> ModelReply:
        return said("done") if results_of(request) else calls("mine", {})

    model = cast(worker)
    outcome = await rlm.recurse(COMPLEX, model, count=3, tools=(rlm.tool(mine),))
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "halted"
    assert "budget.maxCostUsd" in str(outcome.detail)
    assert "1.20 of 1 USD" in str(outcome.detail)
    command = f"rlm resume {outcome.receipts.directory} --budget usd=2;"
    assert any(command in line for line in outcome.missing)
    assert not any("1.20" in result for r in model.requests for result in results_of(r))


async def test_the_callers_data_reaches_the_gate(spy: Spy) -> None:
    wiring = rlm.Wiring(model=cast(), data={"user": "ann"})
    await rlm.recurse(CRITICAL, wiring, count=2)
    assert [dict(deed.context) for deed in spy.deeds] == [{"user": "ann"}]


# ---------------------------------------------------------------- nothing goes beside it


def _constructions(name: str) -> list[tuple[Path, ast.Call]]:
    found: list[tuple[Path, ast.Call]] = []
    for room in ("executors", "corpus", "planner", "rlm"):
        for path in sorted((ROOMS / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                    called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                    if called == name:
                        found.append((path.relative_to(ROOMS), node))
    return found


def test_each_worker_that_is_made_anywhere_is_given_the_gate() -> None:
    found = _constructions("Worker")
    made = {
        str(path): {keyword.arg for keyword in call.keywords}
        for path, call in found
        if "calls" in {keyword.arg for keyword in call.keywords}
    }
    assert set(made) == {"rlm/recursions/worker.py", "rlm/checks/critic.py"}
    assert all("governor" in given for given in made.values())


def test_a_tool_is_run_in_one_place() -> None:
    runs: set[str] = set()
    for room in ("executors", "corpus", "planner", "rlm"):
        for path in (ROOMS / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr == "execute"
                    and "tool" in ast.unparse(node.value)
                ):
                    runs.add(str(path.relative_to(ROOMS)))
    assert runs == {"executors/loop/preparing.py", "executors/loop/running.py"}


PIPELINES = {
    "rlm/counts/run.py": "outlet",
    "rlm/recursions/run.py": "outlet",
    "rlm/units/desk.py": "outlet",
}
"""Those that a run asks through."""
HARMLESS = {
    "rlm/cluster/begin.py": "finds what is filed, and sends nothing",
    "rlm/forecasts/rehearsal.py": "a rehearsal",
    "rlm/lone_calls.py": "belongs to no run",
    "rlm/probe.py": "asks one word, before there is a run",
    "rlm/recursions/drafting.py": "a rehearsal",
}


def test_each_pipeline_of_a_run_has_an_outlet() -> None:
    made = {str(path): {k.arg for k in call.keywords} for path, call in _constructions("Calls")}
    assert set(made) == {*PIPELINES, *HARMLESS}
    assert all(word in made[path] for path, word in PIPELINES.items())


async def test_tools_for_files_programs_and_urls_are_judged_by_what_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is denied here, so that nothing happens; rules see whole paths, words and URLs."""
    spy = Spy(decide=lambda _: Deny(rule="r", reason="no")).watch(monkeypatch)
    tools = (*rlm.file_tools(tmp_path, write=True), rlm.shell_tool(tmp_path), rlm.fetch_tool())
    wanted: dict[str, dict[str, object]] = {
        "read_file": {"path": "a"},
        "list_files": {},
        "grep": {"pattern": "x"},
        "write_file": {"path": "a", "content": "x"},
        "edit_file": {"path": "a", "old": "x", "new": "y"},
        "run": {"argv": ["rm", "-r", "a"]},
        "fetch": {"url": "https://example.com/"},
    }
    assert {tool.name for tool in tools} == set(wanted)
    for name, arguments in wanted.items():

        def worker(
            request: ModelRequest, name: str = name, given: dict[str, object] = arguments
        ) -> ModelReply:
            return said("done") if results_of(request) else calls(name, given)

        await rlm.recurse(SIMPLE, cast(worker), tools=tools)
    seen = {deed.tool: (deed.kind, dict(deed.arguments)) for deed in spy.deeds}
    inside, root = str(tmp_path / "a"), str(tmp_path)
    assert {name: kind for name, (kind, _) in seen.items()} == {
        "read_file": "read",
        "list_files": "read",
        "grep": "read",
        "write_file": "write",
        "edit_file": "edit",
        "run": "bash",
        "fetch": "fetch",
    }
    paths = {name: given.get("path") for name, (_, given) in seen.items()}
    assert [paths[name] for name in ("read_file", "write_file", "edit_file")] == [inside] * 3
    assert [paths[name] for name in ("list_files", "grep")] == [root] * 2
    assert seen["run"][1]["argv"] == ["rm", "-r", "a"]
    assert seen["fetch"][1]["url"] == "https://example.com/"
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- words and deeds


DROPS = "delete the accounts of those who left; DROP TABLE is not meant"


@pytest.mark.parametrize(
    ("tools", "came"),
    [({}, 1), ({"deny_arg_patterns": {"spawn_child": ["(?i)accounts?"]}}, 0)],
    ids=["words", "the tool's own pattern"],
)
async def test_a_task_that_speaks_of_deleting_is_no_deed(tools: object, came: int) -> None:
    """With nobody to ask: what destroys is asked about where it does, and not where it is spoken of."""
    below: list[str] = []

    def works(request: ModelRequest) -> ModelReply:
        if results_of(request):
            return said("all")
        if DROPS in request.messages[-1].content:
            below.append(DROPS)
            return said("seen to")
        return spawns(DROPS)

    wiring = rlm.Wiring(model=cast(worker=works), gate={"tools": tools})
    await rlm.recurse(COMPLEX, wiring)
    assert len(below) == came


async def test_a_question_about_deleting_is_put_to_each_record() -> None:
    wiring = rlm.Wiring(model=cast(), gate={})
    outcome = await rlm.recurse(
        "Does it ask to delete an account?", wiring, corpus=reports(4), retrieval="scan"
    )
    assert isinstance(outcome, rlm.Completed)
