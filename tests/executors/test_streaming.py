"""A caller may watch an answer as it comes: nothing twice, and the whole of it at the end."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from executors.errors import ServerFault
from executors.messages import ModelReply, ModelRequest
from executors.models.base import Model, ModelInfo, StreamingModel
from executors.models.fakes.acts import Act, Close, Completion, Reply, Steps, drip, sse
from executors.models.fakes.scripted import ScriptedModel, calls_reply
from executors.models.fakes.server import FakeServer
from executors.usage import Usage
from tests.executors.asks import ask, model_at
from tests.executors.benches import NODE, Bench
from tests.executors.journals import opened

pytestmark = pytest.mark.anyio

FAULT = ServerFault("broke")


class Watchable:
    """Says its pieces one after another; each try ends well or in an error."""

    def __init__(self, *tries: tuple[Sequence[str], ServerFault | None]) -> None:
        self._tries = iter(tries)
        self.info = ModelInfo(provider="scripted", name="m", origin="in-process")

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self.generate_streaming(request, lambda _: None)

    async def generate_streaming(
        self, request: ModelRequest, on_text: Callable[[str], None]
    ) -> ModelReply:
        pieces, error = next(self._tries)
        for piece in pieces:
            on_text(piece)
            await anyio.lowlevel.checkpoint()
        if error is not None:
            raise error
        return ModelReply(text="".join(pieces), stop="end", usage=Usage(input=1, output=1))

    async def aclose(self) -> None:
        pass


async def watched(model: Model, bench: Bench | None = None) -> tuple[list[str], str]:
    """Return what a caller heard, and the text of the answer."""
    heard: list[str] = []
    calls = (bench or Bench()).calls
    answer = await calls.ask(model, ask(), role="worker", node=NODE, on_text=heard.append)
    return heard, answer.reply.text


async def test_text_is_heard_as_it_comes() -> None:
    model = Watchable((["a", "b", "c"], None))
    assert isinstance(model, StreamingModel)
    assert await watched(model) == (["a", "b", "c"], "abc")


async def test_a_model_that_cannot_be_watched_is_heard_at_its_end() -> None:
    assert await watched(ScriptedModel("whole")) == (["whole"], "whole")
    assert await watched(ScriptedModel([calls_reply(("f", {}))])) == ([], "")


@pytest.mark.parametrize(
    ("first", "second", "heard"),
    [
        (["ab"], ["abcd"], ["ab", "cd"]),
        (["a", "b"], ["ab", "c"], ["a", "b", "c"]),
        (["abc"], ["a", "b"], ["abc"]),
        (["abc"], ["ax", "y"], ["abc"]),
        (["ab"], ["axyz"], ["ab"]),
        ([], ["a"], ["a"]),
    ],
    ids=["goes on", "in other pieces", "is shorter", "is another", "is longer", "had not begun"],
)
async def test_a_second_try_repeats_nothing(
    first: list[str], second: list[str], heard: list[str]
) -> None:
    model = Watchable((first, FAULT), (second, None))
    assert await watched(model) == (heard, "".join(second))


async def test_an_answer_of_the_journal_is_heard_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        bench = Bench(journal=journal)
        assert await watched(Watchable((["a", "b"], None)), bench) == (["a", "b"], "ab")
        assert await watched(Watchable(), bench) == (["ab"], "ab")


async def test_who_joins_a_call_in_flight_hears_it_at_its_end() -> None:
    bench, heard = Bench(), list[tuple[list[str], str]]()
    model = Watchable((["a", "b"], None))

    async def watch() -> None:
        heard.append(await watched(model, bench))

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        group.start_soon(watch)
    assert sorted(heard) == [(["a", "b"], "ab"), (["ab"], "ab")]


# ---------------------------------------------------------------- over the wire
async def test_deltas_of_a_server_are_heard_one_by_one() -> None:
    async with FakeServer(Completion(text="hello world", reasoning="hm")) as server:
        model = model_at(server)
        assert await watched(model) == (["hello ", "world"], "hello world")
        assert server.received[0].json["stream"] is True
        await model.aclose()


async def test_halves_of_a_character_are_heard_together() -> None:
    events = [{"choices": [{"delta": {"content": "x"}}]}]
    half = b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n'
    body = sse(*events) + half % b"\\ud83d" + half % b"\\ude00" + half % b"\\ude00"
    end = sse({"choices": [{"finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
    async with FakeServer(drip(body + end, 0.0, size=7)) as server:
        model = model_at(server)
        heard, text = await watched(model)
        assert heard == ["x", "\N{GRINNING FACE}", "\N{REPLACEMENT CHARACTER}"]
        assert "".join(heard) == text
        await model.aclose()


async def test_a_stream_that_breaks_is_tried_again_and_nothing_is_heard_twice() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    began = sse({"choices": [{"delta": {"content": "hello"}}]})
    script: list[Act] = [Steps((head + began, Close())), Completion(text="hello world")]
    async with FakeServer(script) as server:
        model = model_at(server)
        assert await watched(model) == (["hello", " ", "world"], "hello world")
        assert server.requests == 2
        await model.aclose()


async def test_a_server_that_does_not_stream_is_heard_at_its_end() -> None:
    body = b'{"choices": [{"message": {"content": "all"}, "finish_reason": "stop"}]}'
    async with FakeServer(Reply(body=body)) as server:
        model = model_at(server)
        assert await watched(model) == (["all"], "all")
        await model.aclose()
