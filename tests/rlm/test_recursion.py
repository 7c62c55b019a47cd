"""A task from its words to its outcome: who is asked, what they are told, what comes back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import cast as known_as

import pytest

import rlm
from executors.errors import RequestRejected
from executors.messages import ModelRequest, StopReason
from rlm.recursions.options import RecurseOptions
from rlm.recursions.prompts import scrub, system
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
    task_of,
)

pytestmark = pytest.mark.anyio


def known(value: object) -> Any:  # noqa: ANN401 - what a caller without a type checker may pass
    return known_as("Any", value)


def result(outcome: rlm.RecurseOutcome) -> object:
    assert isinstance(outcome, rlm.Completed), outcome
    return outcome.result


def blocked(outcome: rlm.RecurseOutcome, blocker: str) -> rlm.Incomplete[object]:
    assert isinstance(outcome, rlm.Incomplete), outcome
    assert outcome.blocker == blocker, (outcome.blocker, outcome.missing)
    return outcome


def parent(
    first: rlm.ModelReply, last: str = "together: {}"
) -> Callable[[ModelRequest], rlm.ModelReply]:
    """A worker that hands on what `first` says, and then puts the answers together."""

    def work(request: ModelRequest) -> rlm.ModelReply:
        found = results_of(request)
        if found:
            return said(last.format(" + ".join(found)))
        return first if COMPLEX in task_of(request) else said("part done")

    return work


# ---------------------------------------------------------------- wiring


@pytest.mark.case("R-002")
@pytest.mark.parametrize("task", ["", "   ", None, 42])
async def test_a_task_is_words(task: object) -> None:
    with pytest.raises(rlm.ValidationError, match="task="):
        await rlm.recurse(known(task), cast())


@pytest.mark.case("R-001", "R-051")
async def test_without_a_model_somewhere_it_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(*_: object, **__: object) -> None:
        raise rlm.MissingExtra(extra="local", needed_for="local text generation")

    monkeypatch.setattr("rlm.recursions.casting.resolve_model", nothing)
    with pytest.raises(rlm.ConfigError, match="no model is named"):
        await rlm.recurse(SIMPLE)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "tree"),
        ("retrieval", "look"),
        ("count", 0),
        ("count", 2.5),
        ("max_depth", -1),
        ("passes", -1),
        ("window", 0),
        ("synthesize", "blend"),
        ("votes", "most"),
        ("persona", 7),
        ("max_nodes", True),
        ("refine_leaf", "twice"),
    ],
)
@pytest.mark.case("R-050 / D13", "R-081 / D13", "R-146 / D13")
async def test_an_option_outside_its_choices_is_quoted(option: str, value: object) -> None:
    with pytest.raises(rlm.ValidationError, match=option):
        await rlm.recurse(SIMPLE, cast(), corpus=["a"], **known({option: value}))


@pytest.mark.case("R-006", "R-007")
@pytest.mark.parametrize("task", [SIMPLE, "what is this", "show the version"])
async def test_a_simple_task_is_one_worker_without_tools(task: str) -> None:
    model = cast("the answer")
    outcome = await rlm.recurse(task, model)
    assert result(outcome) == "the answer"
    assert outcome.receipts.nodes[0].task is not None
    assert outcome.receipts.nodes[0].task.retrieval is None
    assert asked(model, "worker")[0].tools == ()
    assert model.calls == 1


@pytest.mark.case("R-022")
async def test_a_tool_of_the_callers_is_used() -> None:
    def double(n: int) -> int:
        """Twice a number."""
        return 2 * n

    def work(request: ModelRequest) -> rlm.ModelReply:
        found = results_of(request)
        return said(f"it is {found[0]}") if found else calls("double", {"n": 21})

    assert result(await rlm.recurse(SIMPLE, cast(work), tools=[rlm.tool(double)])) == "it is 42"


# ---------------------------------------------------------------- what workers are told


@pytest.mark.case("R-017", "R-019")
def test_the_deeper_the_stricter() -> None:
    assert scrub(0, 3) == scrub(-1, 3) == ""
    assert scrub(2, 2) == scrub(5, 2) != scrub(1, 2)
    assert "deepest" in scrub(2, 2)


@pytest.mark.case("R-025", "R-026")
async def test_a_worker_is_told_the_policy_and_nothing_else() -> None:
    model = cast()
    await rlm.recurse(COMPLEX, model, persona="   ", context="  ")
    [request] = asked(model, "worker")
    told = system(spawns=True, depth=0, max_depth=3, persona=None)
    assert [message.content for message in request.messages] == [told, COMPLEX]


@pytest.mark.case("R-024", "R-029", "R-027", "R-032", "R-030")
async def test_persona_and_context_go_down_and_the_grader_sees_the_context_alone() -> None:
    model = cast(parent(spawns("check the logs")))
    await rlm.recurse(
        COMPLEX, model, persona="You are a pilot.", context="cwd=/srv", contract="it is safe"
    )
    root, child, _ = asked(model, "worker")
    for request in (root, child):
        assert request.messages[0].content.startswith("You are a pilot.")
        assert "cwd=/srv" in task_of(request)
    [grader] = asked(model, "verifier")
    whole = "".join(message.content for message in grader.messages)
    assert "pilot" not in whole
    assert "cwd=/srv" in whole
    assert "it is safe" in whole


@pytest.mark.case("R-014", "R-015", "R-016")
async def test_the_tool_to_hand_on_is_there_until_the_deepest_level() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        depth = task_of(request).count("then ")
        if results_of(request) or depth == 2:
            return said("ok")
        return spawns(f"then {task_of(request)}")

    model = cast(work)
    await rlm.recurse(COMPLEX, model, max_depth=2, tools=[rlm.tool(_ping)])
    by_depth = {task_of(r).count("then "): r for r in asked(model, "worker")}
    names = {depth: {tool.name for tool in r.tools} for depth, r in by_depth.items()}
    assert names == {0: {"_ping", "spawn_child"}, 1: {"_ping", "spawn_child"}, 2: {"_ping"}}
    told = [by_depth[depth].messages[0].content for depth in range(3)]
    assert "part of a larger task" not in told[0]
    assert "part of a larger task" in told[1]
    assert "deepest level" in told[2]


def _ping() -> str:
    """Answer."""
    return "pong"


def test_what_a_child_inherits_is_said_in_one_place() -> None:
    mine = RecurseOptions(
        corpus=["a"],
        mode="partition",
        count=3,
        retrieval="scan",
        contract="all of it",
        persona="p",
        context="c",
        synthesize="concat",
        max_depth=2,
        window=4,
        passes=1,
    )
    child = mine.for_child()
    kept = (child.persona, child.context, child.synthesize, child.max_depth)
    assert kept == ("p", "c", "concat", 2)
    stripped = (child.corpus, child.mode, child.count, child.retrieval, child.contract)
    assert stripped == (None,) * 5
    assert (child.window, child.passes) == (8, 2)


# ---------------------------------------------------------------- children that the model asks for


@pytest.mark.case("R-010", "R-011", "R-012")
async def test_only_a_childs_answer_crosses_back() -> None:
    model = cast(parent(spawns("check the logs")))
    outcome = await rlm.recurse(COMPLEX, model)
    assert result(outcome) == "together: part done"
    nodes = outcome.receipts.nodes
    assert [(node.id, node.task.depth if node.task else None) for node in nodes] == [
        ("root", 0),
        ("root.0", 1),
    ]
    child = next(r for r in asked(model, "worker") if task_of(r) == "check the logs")
    assert not any(COMPLEX in message.content for message in child.messages)


@pytest.mark.case("R-020", "K9-14")
@pytest.mark.parametrize("subtask", ["", "   ", COMPLEX, f"  {COMPLEX}\n"])
async def test_a_task_is_not_handed_on_empty_or_as_it_stands(subtask: str) -> None:
    model = cast(parent(spawns(subtask)))
    outcome = await rlm.recurse(COMPLEX, model)
    assert str(result(outcome)).startswith("together: error:")
    assert len(outcome.receipts.nodes) == 1


@pytest.mark.case("R-021", "K9-10")
async def test_a_worker_that_never_ends_is_bounded_by_its_rounds() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        if task_of(request) != COMPLEX:
            return said("ok")
        return spawns(
            f"list part {len(results_of(request))}", text=f"on it {len(results_of(request))}"
        )

    model = cast(work)
    found = blocked(await rlm.recurse(COMPLEX, model, max_depth=1), "round-limit")
    assert found.best == "on it 99"
    assert len(found.receipts.nodes) == 101


@pytest.mark.case("K9-8", "K9-11")
async def test_a_model_that_always_asks_for_five_children_ends_at_the_cap() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        if results_of(request):
            return said("enough")
        return spawns(*(f"{task_of(request)} and build {n}" for n in range(5)))

    model = cast(work)
    outcome = await rlm.recurse(COMPLEX, model, max_depth=30, max_nodes=20)
    found = blocked(outcome, "node-cap")
    assert "20" in str(found.detail)
    assert found.best == "enough"
    assert len(found.receipts.nodes) == 21
    assert model.calls <= 2 * 21


@pytest.mark.case("R-035", "R-036")
async def test_a_child_that_dies_leaves_the_rest() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply | Exception:
        if found := results_of(request):
            return said(" | ".join(found))
        if task_of(request) == COMPLEX:
            return spawns("list ten", "list nothing")
        if "nothing" in task_of(request):
            return RequestRejected("no such page")
        return said("10")

    def total(given: rlm.SynthesisInput) -> int:
        return sum(int(str(value or 0)) for value in given.results)

    outcome = await rlm.recurse(COMPLEX, cast(work), synthesize=total)
    found = blocked(outcome, "model-failed")
    assert found.best == 10
    assert found.node == "root.1"
    assert any("list nothing" in line for line in found.missing)
    plain = blocked(await rlm.recurse(COMPLEX, cast(work)), "model-failed")
    assert str(plain.best).startswith("10 | [incomplete: model-failed]")


@pytest.mark.case("R-129", "D12")
async def test_the_path_of_the_node_that_broke_survives_two_levels() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        if results_of(request):
            return said("up")
        depth = task_of(request).count("then ")
        return said("leaf", stop="refusal") if depth == 2 else spawns(f"then {task_of(request)}")

    found = blocked(await rlm.recurse(COMPLEX, cast(work), max_depth=2), "refused")
    assert found.node == "root.0.0"
    tasks = {node.id: node.task for node in found.receipts.nodes}
    own = {id_: task.blocker for id_, task in tasks.items() if task}
    below = {id_: task.blocker_from for id_, task in tasks.items() if task}
    assert own == {"root": None, "root.0": None, "root.0.0": "refused"}
    assert below == {"root": "refused", "root.0": "refused", "root.0.0": None}


# ---------------------------------------------------------------- ends of a worker


@pytest.mark.case("R-034")
async def test_a_model_that_fails_for_good_is_named() -> None:
    found = blocked(
        await rlm.recurse(SIMPLE, cast(lambda _: RequestRejected("no"))), "model-failed"
    )
    assert found.best is None


@pytest.mark.case("R-037", "K3-8")
@pytest.mark.parametrize(
    ("stop", "text", "blocker"),
    [
        ("refusal", "I won't", "refused"),
        ("max_tokens", "half of", "truncated"),
        ("end", " ", "empty-answer"),
    ],
)
async def test_an_answer_that_is_none_keeps_its_text(
    stop: StopReason, text: str, blocker: str
) -> None:
    found = blocked(await rlm.recurse(SIMPLE, cast(lambda _: said(text, stop=stop))), blocker)
    assert found.best == (text if text.strip() else None)


@pytest.mark.case("R-039", "R-040")
async def test_three_denials_in_a_row_end_a_worker_and_one_does_not() -> None:
    def deny(request: rlm.ToolRequest) -> rlm.Allow | rlm.Deny:
        if request.arguments.get("n") == 0:
            return rlm.Deny(rule="test", reason="not zero")
        return rlm.Allow()

    def stubborn(_: ModelRequest) -> rlm.ModelReply:
        return calls("_twice", {"n": 0})

    def pliable(request: ModelRequest) -> rlm.ModelReply:
        found = results_of(request)
        return said("fine") if len(found) == 2 else calls("_twice", {"n": len(found)})

    tools = [rlm.tool(_twice)]
    model = cast(stubborn)
    wiring = rlm.Wiring(model=model, policy=deny)
    blocked(await rlm.recurse(SIMPLE, wiring, tools=tools), "governance-deny")
    assert model.calls == 3
    wiring = rlm.Wiring(model=cast(pliable), policy=deny)
    assert result(await rlm.recurse(SIMPLE, wiring, tools=tools)) == "fine"


def _twice(n: int) -> int:
    """Twice a number."""
    return 2 * n


@pytest.mark.case("R-130")
async def test_the_policy_sees_the_callers_data_and_no_key() -> None:
    seen: list[rlm.ToolRequest] = []

    def look(request: rlm.ToolRequest) -> rlm.Allow:
        seen.append(request)
        return rlm.Allow()

    wiring = rlm.Wiring(
        model=cast(parent(spawns("check the logs"))), policy=look, data={"caller": "ann"}
    )
    await rlm.recurse(COMPLEX, wiring)
    assert [(r.tool, dict(r.context), r.depth) for r in seen] == [
        ("spawn_child", {"caller": "ann"}, 0)
    ]
    assert "scripted" not in repr(seen)


# ---------------------------------------------------------------- checking and putting together


@pytest.mark.case("R-004")
async def test_a_critical_task_is_checked_apart_from_its_worker() -> None:
    model = cast("found it")
    outcome = await rlm.recurse(CRITICAL, model, max_depth=0)
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.verdict, rlm.Satisfied)
    [grader], [worker] = asked(model, "verifier"), asked(model, "worker")
    assert len(grader.messages) == 2
    assert grader.temperature == 0
    assert grader.messages[0].content != worker.messages[0].content
    assert outcome.receipts.nodes[0].task
    assert outcome.receipts.nodes[0].task.level == "critical"


@pytest.mark.case("R-005")
async def test_a_plain_task_is_not_checked() -> None:
    model = cast()
    outcome = await rlm.recurse(COMPLEX, model, max_depth=0)
    assert isinstance(outcome, rlm.Completed)
    assert outcome.verdict is None
    assert not asked(model, "verifier")


@pytest.mark.case("R-009 / D14", "K11-11 / D14")
async def test_a_verdict_that_fails_stands_beside_the_result() -> None:
    model = cast("poor", verifier=lambda _: grade("failed", "it is poor"))
    outcome = await rlm.recurse(SIMPLE, model, contract="it is rich")
    assert isinstance(outcome, rlm.Completed)
    assert outcome.result == "poor"
    assert isinstance(outcome.verdict, rlm.Failed)
    assert outcome.verdict.critique == "it is poor"


@pytest.mark.case("R-041", "R-042", "R-049")
async def test_the_callers_judge_sees_the_final_result() -> None:
    seen: list[tuple[object, str, str | None]] = []

    def judge(result: object, context: rlm.EvaluationContext) -> dict[str, object]:
        seen.append((result, context.task, context.contract))
        return {"pass": True, "extra": 7}

    model = cast(parent(spawns("check the logs")))
    outcome = await rlm.recurse(
        COMPLEX,
        model,
        synthesize=lambda given: len(given.results),
        evaluate=judge,
        contract="counted",
    )
    assert seen == [(1, COMPLEX, "counted")]
    assert isinstance(outcome, rlm.Completed)
    assert outcome.verdict is not None
    assert outcome.verdict.extra == {"extra": 7}
    assert not asked(model, "verifier")


@pytest.mark.case("R-054", "K11-2", "K11-8")
@pytest.mark.parametrize("value", [True, {"score": 1, "critique": "x"}, [], None, "pass"])
async def test_a_judge_that_says_nothing_usable_is_broken(value: object) -> None:
    outcome = await rlm.recurse(SIMPLE, cast("work"), evaluate=lambda _text, _context: value)
    found = blocked(outcome, "broken-verifier")
    assert found.best == "work"


@pytest.mark.case("R-055", "R-126")
async def test_a_judge_that_halts_keeps_the_result() -> None:
    def judge(*_: object) -> object:
        raise rlm.Halted(bound="mine", scope="test", limit="1")

    assert blocked(await rlm.recurse(SIMPLE, cast("work"), evaluate=judge), "halted").best == "work"


@pytest.mark.case("D11")
async def test_a_grader_that_cannot_be_asked_keeps_paid_work() -> None:
    model = cast("work", verifier=lambda _: RequestRejected("down"))
    found = blocked(await rlm.recurse(CRITICAL, model), "verifier-unavailable")
    assert found.best == "work"


@pytest.mark.case("R-044", "R-045", "R-046", "R-052")
async def test_strategies_join_and_merge() -> None:
    two = parent(spawns("list one", "list two"))
    joined = await rlm.recurse(COMPLEX, cast(two), synthesize="concat")
    assert result(joined) == "### Part 1\npart done\n\n### Part 2\npart done"
    model = cast(two)
    assert result(await rlm.recurse(COMPLEX, model, synthesize="merge")) == "merged"
    [merge] = asked(model, "merge")
    assert merge.messages[1].content.count("part done") == 2
    assert result(await rlm.recurse(SIMPLE, cast("mine"), synthesize="merge")) == "mine"
    down = cast(two, merge=lambda _: RequestRejected("down"))
    assert result(await rlm.recurse(COMPLEX, down, synthesize="merge")) == result(joined)


@pytest.mark.case("R-047")
async def test_a_synthesis_that_halts_or_raises_keeps_the_parts() -> None:
    def halt(_: object) -> object:
        raise rlm.Halted(bound="mine", scope="test", limit="1")

    def fail(_: object) -> object:
        raise KeyError("nothing")

    two = parent(spawns("list one", "list two"))
    assert blocked(await rlm.recurse(COMPLEX, cast(two), synthesize=halt), "halted").best
    found = blocked(await rlm.recurse(COMPLEX, cast(two), synthesize=fail), "broken-synthesis")
    assert "KeyError" in str(found.detail)
    assert found.best == "together: part done + part done"


# ---------------------------------------------------------------- receipts


async def test_what_the_nodes_used_adds_up_to_the_run(tmp_path: Path) -> None:
    model = cast(parent(spawns("list one", "list two", "list three")))
    outcome = await rlm.recurse(COMPLEX, model, contract="all", run=tmp_path / "run")
    receipts = outcome.receipts
    assert receipts.totals.calls == model.calls == 6
    for tier in ("input", "cache_read", "output"):
        nodes = sum(getattr(node.totals, tier) for node in receipts.nodes)
        roles = sum(getattr(some, tier) for some in receipts.roles.values())
        assert nodes == roles == getattr(receipts.totals, tier) > 0
    assert set(receipts.roles) == {"worker", "verifier"}


async def test_what_workers_write_is_heard_as_it_comes() -> None:
    heard: list[tuple[str, str]] = []
    wiring = rlm.Wiring(
        model=cast(parent(spawns("list one"))),
        on_text=lambda node, text: heard.append((node, text)),
    )
    await rlm.recurse(COMPLEX, wiring)
    assert [one for one in heard if one[1]] == [
        ("root.0", "part done"),
        ("root", "together: part done"),
    ]


async def test_a_child_that_breaks_by_our_fault_is_no_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(text: object) -> object:
        if text == "list one":
            raise KeyError("a bug")
        return rlm.assess(str(text))

    monkeypatch.setattr("rlm.recursions.node.assess", broken)
    outcome = await rlm.recurse(COMPLEX, cast(parent(spawns("list one", "list two"))))
    assert blocked(outcome, "failed").node == "root.0"
