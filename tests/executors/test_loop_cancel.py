"""Cancelling a worker: it passes through, ends at once, and leaves a transcript that is whole."""

import asyncio
import threading

import anyio
import pytest

from executors.errors import UsageError, ValidationError
from executors.events import ToolFinished
from executors.loop import Transcript, work
from executors.messages import Message, ToolCall
from executors.tools.base import Arguments, ToolContext
from tests.executors.workers import Shop, a_tool, calls, is_sealed, said

pytestmark = pytest.mark.anyio


@pytest.mark.case("K10-7")
async def test_a_cancel_amid_three_parallel_calls_leaves_all_three_paired() -> None:
    ended = anyio.Event()

    async def quick(arguments: Arguments, context: ToolContext) -> str:
        if context.index == 2:
            ended.set()
            await anyio.sleep_forever()
        return f"done {context.index}"

    shop = Shop([calls("q", "q", "q")], a_tool("q", quick, parallel=True))
    async with anyio.create_task_group() as group:
        group.start_soon(shop.work)
        await ended.wait()
        group.cancel_scope.cancel()
    assert is_sealed(shop.transcript.turns)
    assert shop.results() == ["done 0", "done 1", "[cut off]"]
    assert shop.ends() == [("q", "done"), ("q", "done"), ("q", "cancelled")]


async def test_a_cancel_while_the_model_is_asked_passes_through() -> None:
    shop = Shop(["ok"])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shop.work()
    assert scope.cancelled_caught
    assert [turn.role for turn in shop.transcript.turns] == ["system", "user"]


@pytest.mark.case("K13-11")
async def test_a_tool_that_swallows_a_cancel_does_not_keep_the_worker_going() -> None:
    began = anyio.Event()

    async def swallows(arguments: Arguments, context: ToolContext) -> str:
        began.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "interrupted, said the tool"
        return "never"

    shop = Shop([calls("swallow"), said("went on")], a_tool("swallow", swallows))
    task: asyncio.Task[object] = asyncio.Task(shop.work())  # as Ctrl-C finds it: no scope of ours
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shop.model.calls == 1
    assert is_sealed(shop.transcript.turns)


@pytest.mark.case("K13-14")
async def test_a_cancelled_worker_waits_until_a_plain_function_has_ended_and_says_so() -> None:
    began, free, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(arguments: Arguments, context: ToolContext) -> None:
        began.set()
        free.wait(5)
        ended.set()

    shop = Shop([calls("slow")], a_tool("slow", slow))
    told: list[list[str]] = []
    async with anyio.create_task_group() as group:
        group.start_soon(shop.work)
        await anyio.to_thread.run_sync(began.wait)
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            for _ in range(5):  # turns of the loop: nobody waits for the tool to hear of it
                await anyio.lowlevel.checkpoint()
        told.append(shop.warnings())
        free.set()
    assert told == [["cancelling"]]
    assert ended.is_set()
    assert shop.ends() == [("slow", "cancelled")]


async def test_each_start_has_its_end_also_where_calls_waited_for_their_turn() -> None:
    began = anyio.Event()

    async def hangs(arguments: Arguments, context: ToolContext) -> None:
        began.set()
        await anyio.sleep_forever()

    tool = a_tool("w", hangs, parallel=True, paths=lambda _: ["same"])
    shop = Shop([calls("w", "w")], tool)
    async with anyio.create_task_group() as group:
        group.start_soon(shop.work)
        await began.wait()
        group.cancel_scope.cancel()
    kinds = [event.kind for event in shop.bench.events if event.kind.startswith("tool")]
    assert sorted(kinds) == ["tool_finished"] * 2 + ["tool_started"] * 2
    assert all(e.source == "none" for e in shop.bench.events if isinstance(e, ToolFinished))


# ---------------------------------------------------------------- transcripts


@pytest.mark.case("K4-11")
async def test_a_history_with_bad_arguments_and_open_calls_is_mended_before_it_is_sent() -> None:
    broken = ToolCall(id="a", name="look", arguments=None)  # type: ignore[arg-type]
    history = [
        Message(role="user", content="go"),
        Message(role="tool", content="of nobody", call_id="z"),
        Message(
            role="assistant", content="", calls=(broken, ToolCall(id="b", name="x", arguments=""))
        ),
        Message(role="tool", content="found", call_id="b"),
    ]
    shop = Shop(["ok"])
    await shop.work(*history)
    sent = shop.model.requests[0].messages[1:]
    assert is_sealed(sent)
    assert [one.arguments for one in sent[1].calls] == ["{}", "{}"]
    assert [turn.content for turn in sent[2:]] == ["[no result: the call was cut off]", "found"]


async def test_calls_with_one_id_get_their_results_in_order() -> None:
    twice = ToolCall(id="same", name="look", arguments="{}")
    history = [
        Message(role="assistant", content="", calls=(twice, twice)),
        Message(role="tool", content="1", call_id="same"),
        Message(role="tool", content="2", call_id="same"),
        Message(role="assistant", content="", calls=(twice,)),
        Message(role="tool", content="3", call_id="same"),
    ]
    shop = Shop(["ok"])
    await shop.work(*history)
    assert shop.results() == ["1", "2", "3"]


async def test_a_result_too_many_answers_no_later_call_of_the_same_id() -> None:
    once = ToolCall(id="same", name="look", arguments="{}")
    history = [
        Message(role="assistant", content="", calls=(once,)),
        Message(role="tool", content="1", call_id="same"),
        Message(role="tool", content="1 again", call_id="same"),
        Message(role="assistant", content="", calls=(once,)),
    ]
    shop = Shop(["ok"])
    await shop.work(*history)
    assert shop.results() == ["1", "[no result: the call was cut off]"]


@pytest.mark.case("K10-8")
async def test_two_workers_on_one_transcript_are_refused() -> None:
    shop = Shop(["ok", "ok"])
    with shop.transcript.held(), pytest.raises(UsageError, match="another worker"):
        await shop.work()
    transcript = Transcript()
    messages = [Message(role="user", content="a")]
    await work(shop.worker, messages, transcript=transcript)
    assert transcript.turns[-1].content == "ok"
    with pytest.raises(ValidationError, match="holds 3 turn"):
        await work(shop.worker, messages, transcript=transcript)


# ---------------------------------------------------------------- the text as it comes


async def test_the_text_of_each_round_is_heard() -> None:
    heard: list[str] = []
    shop = Shop([calls("look", text="let me look. "), said("blue")], a_tool(), on_text=heard.append)
    await shop.work()
    assert "".join(heard) == "let me look. blue"


async def test_a_listener_that_raises_hears_nothing_more_and_harms_nobody() -> None:
    heard: list[str] = []

    def on_text(text: str) -> None:
        heard.append(text)
        raise OSError("the window is closed")

    shop = Shop([calls("look", text="a"), said("b")], a_tool(), on_text=on_text)
    await shop.work()
    assert heard == ["a"]
    assert shop.warnings() == ["on-text"]
