"""A worker behind a real wire: what the server reads, and what becomes of what it says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from executors.loop import Ended, Finished, Worked, Worker, work
from executors.messages import Message
from executors.models.fakes.acts import Act, Completion, FakeCall, Steps, sse
from executors.models.fakes.received import Received
from executors.models.fakes.server import FakeServer
from executors.tools.base import Arguments, ToolContext
from tests.executors.asks import model_at
from tests.executors.benches import NODE, Bench
from tests.executors.workers import a_tool

pytestmark = pytest.mark.anyio


@dataclass
class Seen:
    """What came of a worker and its server."""

    requests: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    ran: list[Arguments] = field(default_factory=list[Arguments])
    heard: list[str] = field(default_factory=list[str])
    worked: Worked | None = None


async def served(acts: Sequence[Act], *, watched: bool = False, attempts: int = 1) -> Seen:
    """Let a worker with one tool work at a server that acts like this."""
    seen = Seen()

    def act(received: Received) -> Act:
        seen.requests.append(cast("list[dict[str, Any]]", received.json["messages"]))
        return acts[min(len(seen.requests), len(acts)) - 1]

    async def write(arguments: Arguments, context: ToolContext) -> str:
        seen.ran.append(arguments)
        return "written"

    bench = Bench(attempts=attempts)
    async with FakeServer(act) as server:
        model = model_at(server)
        worker = Worker(
            calls=bench.calls,
            model=model,
            node=NODE,
            depth=0,
            system="you write",
            tools=[a_tool("write", write)],
            max_tokens=64,
            on_text=seen.heard.append if watched else None,
        )
        try:
            seen.worked = await work(worker, [Message(role="user", content="go")])
        finally:
            await model.aclose()
    return seen


@pytest.mark.parametrize("watched", [False, True])
async def test_a_tool_round_goes_to_and_fro(watched: bool) -> None:
    call = FakeCall("write", '{"path": "a"}', id="k1")
    seen = await served(
        [Completion(text="first", calls=[call]), Completion(text="then done")], watched=watched
    )
    assert isinstance(seen.worked, Finished)
    assert (seen.worked.text, seen.ran) == ("then done", [{"path": "a"}])
    said, result = seen.requests[1][-2:]
    assert said["tool_calls"][0]["id"] == result["tool_call_id"] == "k1"
    assert result["content"] == "written"
    assert "".join(seen.heard) == ("firstthen done" if watched else "")


@pytest.mark.case("K3-1", "K3-2", "K3-4")
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    "act",
    [
        Completion(
            text=None, calls=[FakeCall("write", '{"path":"a","content":"12')], finish="length"
        ),
        Completion(text=None, calls=[FakeCall("write", '{"path":"a"}')], finish="length"),
        Completion(
            text=None,
            calls=[FakeCall("write", '{"path":"a","content":"12')],
            finish="tool_calls",
            usage={"prompt_tokens": 20, "completion_tokens": 64},
        ),
    ],
)
async def test_a_call_that_the_cap_cut_is_never_run_and_not_tried_blindly_again(
    act: Act, watched: bool
) -> None:
    seen = await served([act], watched=watched)
    assert isinstance(seen.worked, Ended)
    assert (seen.worked.reason, seen.worked.detail) == ("truncated", "max_tokens")
    assert (seen.ran, len(seen.requests)) == ([], 1)


@pytest.mark.case("K4-25", "R-196")
async def test_bad_arguments_are_told_and_the_next_turn_is_sent_clean() -> None:
    bad = Completion(text=None, calls=[FakeCall("write", "{path: a"), FakeCall("write", "{}")])
    good = Completion(text=None, calls=[FakeCall("write", '{"path": "a"}')])
    seen = await served([bad, good, Completion(text="done")])
    assert isinstance(seen.worked, Finished)
    assert seen.ran == [{"path": "a"}]
    assert "{path: a" not in repr(seen.requests[1])
    assert all("tool_calls" not in turn for turn in seen.requests[1])
    assert [one.name for one in seen.worked.log.malformed] == ["write"]


@pytest.mark.case("K3-13")
async def test_a_provider_that_fails_amid_a_reply_leaves_the_part_as_evidence_alone() -> None:
    def delta(text: str) -> bytes:
        return sse({"choices": [{"index": 0, "delta": {"content": text}}]})

    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    fault = sse({"error": {"message": "overloaded", "type": "server_error"}})
    seen = await served(
        [Steps((head + delta("half an ") + delta("answer") + fault,))], watched=True
    )
    assert isinstance(seen.worked, Ended)
    assert (seen.worked.reason, seen.worked.text) == ("failed", "half an answer")
    assert [turn.role for turn in seen.worked.log.messages] == ["system", "user"]
