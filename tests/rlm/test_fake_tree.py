"""A scripted model can play a whole tree, in this process and behind a server."""

import json

import pytest

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.errors import ServerFault
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId, child_of
from executors.loop import Finished, Worker, work
from executors.messages import Message, ModelRequest
from executors.models.base import Model
from executors.models.fakes.scripted import Turn
from executors.models.openai.model import OpenAIModel
from executors.tools.base import Arguments, Tool, ToolContext
from planner.prompts import goal_message, planner_system
from rlm.checks.prompts import grader_messages
from rlm.recursions.prompts import MERGE
from rlm.testing import (
    FakeServer,
    Part,
    ScriptedModel,
    answering,
    calls_reply,
    grading,
    planning,
    role_of,
    spawning,
    tree_script,
    tree_server,
)

pytestmark = pytest.mark.anyio

ROOT = NodeId("root")


def of(system: str, user: str) -> ModelRequest:
    messages = (Message(role="system", content=system), Message(role="user", content=user))
    return ModelRequest(messages=messages, max_tokens=100)


PLANNER = of(planner_system(3), goal_message("Paint the house", None))
GRADER = ModelRequest(
    messages=grader_messages(criteria="c", task="t", result="r", context=None), max_tokens=100
)
MERGER = of(MERGE, "Part: a")
WORKER = of("You work.", "Paint the house")


async def tree(model: Model, *, deepest: int) -> tuple[str, list[str]]:
    """Run a tree of workers and return what its root said, and the nodes there were."""
    calls = Calls(allowance=CapsAllowance(Caps(), SystemClock()), emit=lambda _: None)
    nodes: list[str] = []

    async def run(node: NodeId, depth: int, task: str) -> str:
        nodes.append(node)
        children = 0

        async def spawn(arguments: Arguments, context: ToolContext) -> str:
            nonlocal children
            child = child_of(node, children)
            children += 1
            return await run(child, depth + 1, str(arguments["subtask"]))

        schema = {"type": "object", "properties": {"subtask": {"type": "string"}}}
        tool = Tool(
            name="spawn_child", description="", parameters=schema, execute=spawn, parallel=True
        )
        worker = Worker(
            calls=calls,
            model=model,
            node=node,
            depth=depth,
            system="You work.",
            tools=[tool] if depth < deepest else [],
        )
        worked = await work(worker, [Message(role="user", content=task)])
        assert isinstance(worked, Finished)
        return worked.text

    return await run(ROOT, 0, "Paint the house"), sorted(nodes)


async def test_workers_spawn_down_to_a_depth_and_join_what_comes_back() -> None:
    model = ScriptedModel(tree_script(spawning(2, depth=2)))
    said, nodes = await tree(model, deepest=9)
    assert said == ("root: 0: answer of 0.0; answer of 0.1; 1: answer of 1.0; answer of 1.1")
    assert nodes == ["root", "root.0", "root.0.0", "root.0.1", "root.1", "root.1.0", "root.1.1"]


async def test_a_worker_without_the_tool_answers_by_itself() -> None:
    said, nodes = await tree(ScriptedModel(tree_script(spawning(2, depth=9))), deepest=1)
    assert (said, len(nodes)) == ("root: answer of 0; answer of 1", 3)


async def test_children_may_be_asked_for_one_after_another() -> None:
    model = ScriptedModel(tree_script(spawning(1, depth=1, rounds=3, answer=lambda p: f"{p[0]}")))
    assert await tree(model, deepest=9) == ("root: 0; 1; 2", ["root", "root.0", "root.1", "root.2"])
    assert model.calls == 7


async def test_the_same_tree_stands_behind_a_server() -> None:
    parts = spawning(2, depth=2), grading()
    async with FakeServer(tree_server(*parts)) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        said = await tree(model, deepest=9)
        await model.aclose()
    assert said == await tree(ScriptedModel(tree_script(*parts)), deepest=9)


@pytest.mark.parametrize(
    ("request_", "role"),
    [(PLANNER, "planner"), (GRADER, "verifier"), (MERGER, "merge"), (WORKER, "worker")],
)
def test_each_role_is_known_by_its_prompt(request_: ModelRequest, role: str) -> None:
    assert role_of(request_) == role


@pytest.mark.parametrize("chained", [False, True])
def test_a_planner_has_as_many_steps_as_told(chained: bool) -> None:
    text = tree_script(planning(3, chained=chained))(PLANNER)
    assert isinstance(text, str)
    steps = json.loads(text)["steps"]
    assert [step["id"] for step in steps] == ["s1", "s2", "s3"]
    assert [step["depends_on"] for step in steps] == (
        [[], ["s1"], ["s2"]] if chained else [[], [], []]
    )


def test_a_planner_may_be_given_its_steps() -> None:
    text = tree_script(planning(["wash", "paint"]))(PLANNER)
    assert [step["action"] for step in json.loads(str(text))["steps"]] == ["wash", "paint"]


def test_a_verifier_gives_its_verdicts_in_order_and_the_last_for_ever() -> None:
    script = tree_script(grading("needs_revision", "prose", "satisfied"))
    said = [str(script(GRADER)) for _ in range(4)]
    assert said[1] == "prose"
    assert [json.loads(said[n])["status"] for n in (0, 2, 3)] == [
        "needs_revision",
        "satisfied",
        "satisfied",
    ]


def test_the_first_part_that_answers_is_heard_and_the_rest_is_said_otherwise() -> None:
    parts: list[Part] = [answering(lambda _: "mine"), spawning(2, depth=2)]
    script = tree_script(*parts, otherwise="else")
    assert (script(WORKER), script(MERGER), script(PLANNER)) == ("mine", "else", "else")


@pytest.mark.parametrize("turn", ["text", calls_reply(("f", {"a": 1}), text="I look.")])
async def test_a_server_says_a_turn_in_its_own_words(turn: Turn) -> None:
    async with FakeServer(tree_server(lambda _: turn)) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        said = await model.generate(WORKER)
        await model.aclose()
    meant = await ScriptedModel([turn]).generate(WORKER)
    assert (said.text, said.stop, said.calls) == (meant.text, meant.stop, meant.calls)


async def test_an_error_of_a_part_is_an_error_of_the_server() -> None:
    async with FakeServer(tree_server(lambda _: ServerFault("down"))) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        with pytest.raises(ServerFault, match="down"):
            await model.generate(WORKER)
        await model.aclose()
