"""The public fakes: a scripted model in process, and a scripted server on loopback."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import anyio
import pytest

from executors.clock import VirtualClock
from executors.errors import RateLimited, ServerFault
from executors.messages import ModelReply
from executors.models.base import Model
from executors.models.fakes.acts import Completion, Reply
from executors.models.fakes.scripted import ScriptedModel, ScriptExhausted
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from tests.executors.asks import ask, model_at

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]


# ---------------------------------------------------------------- in process


async def test_turns_are_taken_in_order_and_recorded() -> None:
    whole = ModelReply(text="whole", stop="max_tokens")
    model = ScriptedModel(["plain", whole, RateLimited("429")])
    assert isinstance(model, Model)
    assert (await model.generate(ask("a"))).text == "plain"
    assert await model.generate(ask("b")) is whole
    with pytest.raises(RateLimited):
        await model.generate(ask("c"))
    assert [request.messages[0].content for request in model.requests] == ["a", "b", "c"]
    assert model.calls == 3


async def test_a_script_that_is_used_up_fails_the_test() -> None:
    model = ScriptedModel(["only"])
    await model.generate(ask())
    with pytest.raises(ScriptExhausted, match="no turn left"):
        await model.generate(ask())


async def test_a_function_sees_each_request() -> None:
    model = ScriptedModel(lambda request: request.messages[0].content.upper())
    reply = await model.generate(ask("hello", temperature=0.5))
    assert (reply.text, reply.stop, reply.temperature) == ("HELLO", "end", 0.5)
    assert reply.usage.total is not None


async def test_latency_is_slept_on_the_clock_and_calls_in_progress_are_counted() -> None:
    clock = VirtualClock()
    model = ScriptedModel(latency=60.0, clock=clock)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(model.generate, ask())
    assert (clock.monotonic(), model.peak, model.in_progress) == (60.0, 5, 0)


# ---------------------------------------------------------------- on loopback


async def test_the_server_counts_requests_sockets_and_what_is_in_progress() -> None:
    async with FakeServer(Completion(after=0.1)) as server:
        model = model_at(server)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(model.generate, ask())
        counted = (server.requests, server.peak, server.in_progress, server.accepted)
        assert counted == (3, 3, 0, 3)
        await model.aclose()
    assert server.sockets == 0


async def test_a_sequence_that_is_used_up_answers_500_and_fails_the_context() -> None:
    server = FakeServer([Completion()])
    await server.__aenter__()
    model = model_at(server)
    await model.generate(ask())
    with pytest.raises(ServerFault, match="the script has ended"):
        await model.generate(ask())
    await model.aclose()
    with pytest.raises(AssertionError, match="ended 1 request"):
        await server.__aexit__(None, None, None)


async def test_requests_that_arrive_in_pieces_or_together_are_each_answered() -> None:
    request = b"POST /v1/x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
    async with FakeServer(Reply(body=b"{}")) as server:
        port = int(server.base_url.rpartition(":")[2].removesuffix("/v1"))
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            for piece in (request[:9], request[9:-2], request[-2:] + request + request):
                await stream.send(piece)
                await anyio.sleep(0.01)
            seen = b""
            while seen.count(b"{}") < 3:
                seen += await stream.receive()
        assert [received.body for received in server.received] == [b"body"] * 3
        assert server.received[0].headers == {"content-length": "4"}
        assert server.received[0].json == {}


def test_in_a_thread_it_serves_clients_that_block() -> None:
    with FakeServer(lambda received: Reply(body=received.body)) as server:
        request = urllib.request.Request(server.base_url, data=b"echo")
        with urllib.request.urlopen(request, timeout=5) as response:
            assert response.read() == b"echo"
    assert server.requests == 1


def test_a_port_that_is_taken_is_an_error_and_no_hang() -> None:
    with FakeServer() as server:
        port = int(server.base_url.rpartition(":")[2].removesuffix("/v1"))
        other = FakeServer(port=port)
        with pytest.raises(OSError, match="address already in use"):
            other.__enter__()


def test_as_a_command_it_says_its_url_serves_until_its_input_ends_and_counts() -> None:
    command = [sys.executable, "-m", "executors.models.fakes.server", "--text", "hi there"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        base_url = json.loads(process.stdout.readline())["base_url"]
        model = OpenAIModel("m", base_url=base_url)
        assert anyio.run(model.generate, ask()).text == "hi there"
        rest, _ = process.communicate(timeout=10)
    assert json.loads(rest) == {"requests": 1, "accepted": 1, "peak": 1}
    assert process.returncode == 0
