"""A critic tries a result out with tools, and whatever ends it early is no verdict."""

import json

import pytest

from executors.errors import Halted, ValidationError
from executors.gate.allowance import Caps
from executors.gate.decisions import Decision, Deny
from executors.ids import ContentKey
from executors.journal.records import NoJournal
from executors.loop import ToolRequest, Worker, work
from executors.messages import Message, ModelReply, ModelRequest, ToolCall
from executors.tools.base import tool
from rlm.checks.arbiters import Broken
from rlm.checks.critic import critic
from rlm.checks.evaluator import EvaluationContext, Evaluator
from rlm.checks.verdict import NeedsRevision, Satisfied
from tests.executors.benches import Bench

pytestmark = pytest.mark.anyio
TASK = EvaluationContext(task="Write a sum.")


def run_sum(text: str) -> str:
    """Add up the numbers of a text."""
    return str(sum(int(part) for part in text.split("+")))


def tries_it(request: ModelRequest) -> ModelReply:
    """Runs the sum of the result and judges by what comes out."""
    if request.messages[-1].role == "tool":
        good = request.messages[-1].content == "3"
        status = "satisfied" if good else "needs_revision"
        return ModelReply(text=json.dumps({"status": status}), stop="end")
    text = "1+2" if "1+2" in request.messages[1].content else "2+2"
    call = ToolCall(id="1", name="run_sum", arguments=json.dumps({"text": text}))
    return ModelReply(text="", stop="tool_use", calls=(call,))


@pytest.mark.case("R-165")
async def test_it_judges_by_what_its_tools_show_and_its_calls_are_a_verifiers() -> None:
    bench = Bench(tries_it)
    agentic = critic(bench.model, [tool(run_sum)], calls=bench.calls, rubric="It makes three.")
    evaluator = Evaluator(agentic=agentic)
    assert await evaluator.evaluate("1+2", TASK) == Satisfied()
    assert await evaluator.evaluate("2+2", TASK) == NeedsRevision()
    roles = {role for event in bench.events if (role := getattr(event, "role", None))}
    assert roles == {"verifier"}
    assert "It makes three." in bench.model.requests[0].messages[0].content


async def test_what_its_tools_do_is_never_taken_for_what_the_workers_did() -> None:
    class Begins(NoJournal):
        def __init__(self) -> None:
            self.begun: list[ContentKey] = []

        def tool_begun(self, key: ContentKey, *, name: str) -> None:
            self.begun.append(key)

    journal = Begins()
    bench = Bench(tries_it, journal=journal)
    tools = [tool(run_sum)]
    worker = Worker(
        calls=bench.calls, model=bench.model, node=TASK.node, depth=0, system="s", tools=tools
    )
    await work(worker, [Message(role="user", content="1+2")])
    await Evaluator(agentic=critic(bench.model, tools, calls=bench.calls)).evaluate("1+2", TASK)
    assert len(set(journal.begun)) == 2


async def test_a_denial_is_told_it_silence_is_no_verdict_and_a_bound_ends_the_run() -> None:
    def denies(request: ToolRequest) -> Decision:
        return Deny(rule="none", reason="no tools here")

    denied = Bench(tries_it)
    agentic = critic(denied.model, [tool(run_sum)], calls=denied.calls, policy=denies)
    assert await Evaluator(agentic=agentic).evaluate("1+2", TASK) == NeedsRevision()
    silent = Bench(ModelReply(text="", stop="end") for _ in range(9))
    agentic = critic(silent.model, [tool(run_sum)], calls=silent.calls)
    found = await Evaluator(agentic=agentic).evaluate("1+2", TASK)
    assert isinstance(found, Broken)
    assert found.kind == "verifier-unavailable"
    assert found.detail.startswith("the critic came to no verdict: empty (")
    bounded = Bench(tries_it, caps=Caps(calls=1))
    agentic = critic(bounded.model, [tool(run_sum)], calls=bounded.calls)
    with pytest.raises(Halted):
        await Evaluator(agentic=agentic).evaluate("1+2", TASK)


async def test_what_is_no_model_and_no_time_is_refused_at_once() -> None:
    bench = Bench("x")
    with pytest.raises(ValidationError, match=r"model='gpt' is no model\nrlm\.critic"):
        critic("gpt", [])  # type: ignore[arg-type]
    for deadline in (0, -1.0, float("nan"), "soon"):
        with pytest.raises(ValidationError, match="deadline="):
            critic(bench.model, [], deadline=deadline)  # type: ignore[arg-type]
