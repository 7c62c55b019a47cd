"""Calls that nobody waits for any more: the client stays whole, the server sees them leave."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from random import Random

import anyio
import pytest
import uvloop

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.endpoint.endpoint import RetryPolicy
from executors.errors import DeadlineExceeded, HeadersTimeout, IdleTimeout, ModelError
from executors.events import CallFinished, Event, Retried
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.models.fakes.acts import Act, Completion, Received, Reply, Steps, headers_only, sse
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from executors.models.wire.bounds import Bounds
from tests.executors.asks import ask, model_at

pytestmark = pytest.mark.anyio

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


# ---------------------------------------------------------------- many cancels
async def _cancelled_over_and_over(model: OpenAIModel, workers: int, total: int) -> None:
    """Cancel so many requests while they connect, wait and read; others come to their end."""
    random, cancelled = Random(0), 0

    async def worker() -> None:
        nonlocal cancelled
        while cancelled < total:
            with anyio.move_on_after(random.uniform(0.0, 0.004)) as scope:
                await model.generate(ask(stream=random.random() < 0.5))
            cancelled += scope.cancelled_caught

    async with anyio.create_task_group() as group:
        for _ in range(workers):
            group.start_soon(worker)


async def _probed(model: OpenAIModel) -> list[str]:
    with anyio.fail_after(10):
        return [(await model.generate(ask())).text for _ in range(10)]


@pytest.mark.case("S20")
@pytest.mark.parametrize(("workers", "total"), [(20, 4_000), (64, 5_000)])
async def test_after_thousands_of_cancelled_requests_ten_probes_are_answered(
    workers: int, total: int
) -> None:
    async with FakeServer(Completion(after=0.003)) as server:
        model = model_at(server)
        await _cancelled_over_and_over(model, workers, total)
        assert await _probed(model) == ["ok"] * 10
        await until(lambda: server.in_progress == 0)
        await model.aclose()
        await until(lambda: server.sockets == 0)


@pytest.mark.case("S20")
async def test_twenty_tasks_behind_ten_slots_survive_four_thousand_cancels() -> None:
    """The cap is the endpoint's: a slot that a cancelled call held is free again."""
    random, cancelled = Random(1), 0
    async with FakeServer(Completion(after=0.002)) as server:
        model = model_at(server)
        calls = Calls(
            allowance=CapsAllowance(Caps(), SystemClock()), emit=lambda _: None, concurrency=10
        )

        async def worker(name: int) -> None:
            nonlocal cancelled
            for n in count():
                if cancelled == 4_000:
                    break
                with anyio.move_on_after(random.uniform(0.0, 0.004)) as scope:
                    await calls.ask(model, ask(f"{name} {n}"), role="judge", node=NodeId("root"))
                cancelled = min(4_000, cancelled + scope.cancelled_caught)

        async with anyio.create_task_group() as group:
            for name in range(20):
                group.start_soon(worker, name)
        with anyio.fail_after(10):
            for n in range(10):
                got = await calls.ask(model, ask(f"probe {n}"), role="judge", node=NodeId("root"))
                assert got.reply.text == "ok"
        assert server.peak <= 10
        await model.aclose()


async def test_a_cancelled_call_is_seen_by_the_server_at_once() -> None:
    async with FakeServer(Completion(after=30.0)) as server:
        model = model_at(server)
        async with anyio.create_task_group() as group:
            group.start_soon(model.generate, ask())
            await until(lambda: server.in_progress == 1)
            group.cancel_scope.cancel()
        await until(lambda: server.sockets == 0)
        await model.aclose()


# ---------------------------------------------------------------- bounds over many bytes
@pytest.mark.case("S28")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_that_drips_for_hours_ends_at_the_total_bound_and_is_not_asked_again(
    stream: bool,
) -> None:
    letter = sse({"choices": [{"delta": {"content": "x"}}]}) if stream else b" "
    head = _HEAD if stream else b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n"
    async with FakeServer(Steps((head, letter, 0.05), again=1)) as server:
        model = model_at(server, bounds=Bounds(headers=0.4, idle=0.4, total=0.8))
        calls = Calls(allowance=CapsAllowance(Caps(), SystemClock()), emit=lambda _: None)
        with pytest.raises(DeadlineExceeded) as caught:
            await calls.ask(model, ask(stream=stream), role="judge", node=NodeId("root"))
        assert not caught.value.retryable
        assert caught.value.maybe_paid
        assert server.requests == 1
        await model.aclose()


@pytest.mark.case("K1-1", "S28")
@pytest.mark.parametrize(
    "empty",
    [
        b'data: {"choices": [{"delta": {}}]}\n\n',
        sse({"choices": [{"delta": {"content": ""}, "finish_reason": None}]}),
        sse({"choices": [{"delta": {"role": "assistant", "content": None}}]}),
        sse({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}),
        b"data: {\n",
        b"event: ping\ndata: {}\n\n",
        b"x",
    ],
    ids=["empty", "no text", "role", "usage", "half an event", "ping", "no line"],
)
async def test_what_brings_no_answer_on_does_not_move_the_idle_bound(empty: bytes) -> None:
    async with FakeServer(Steps((_HEAD, empty, 0.03), again=1)) as server:
        model = model_at(server, bounds=Bounds(idle=0.2, total=20.0))
        with pytest.raises(ModelError) as caught:
            await model.generate(ask(stream=True))
        assert type(caught.value) is IdleTimeout
        await model.aclose()


@pytest.mark.parametrize(
    "delta",
    [b'"content": "x"', b'"reasoning_content": "hm"', b'"refusal": "no"', b'"tool_calls": [{}]'],
)
async def test_text_thoughts_refusals_and_tool_calls_move_the_idle_bound(delta: bytes) -> None:
    event = b'data: {"choices": [{"delta": {%b}}]}\n\n' % delta
    events = [part for _ in range(8) for part in (event, 0.1)]
    end = b'data: {"choices": [{"finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    async with FakeServer(Steps((_HEAD, *events, end))) as server:
        model = model_at(server, bounds=Bounds(idle=0.4, total=20.0))
        stop = (await model.generate(ask(stream=True))).stop
        assert stop in ("end", "refusal", "tool_use")  # a call without a name is one to be told of
        await model.aclose()


@pytest.mark.case("S27")
async def test_a_server_whose_health_is_fine_and_whose_generation_stalls_is_left() -> None:
    def script(received: Received) -> Act:
        return Reply(body=b'{"status": "ok"}') if received.method == "GET" else headers_only()

    async with FakeServer(script) as server:
        model = model_at(server, bounds=Bounds(idle=0.1))
        with pytest.raises(IdleTimeout) as caught:
            await model.generate(ask(stream=True))
        assert caught.value.retryable
        assert caught.value.maybe_paid
        await model.aclose()


@pytest.mark.case("S26")
async def test_a_server_that_goes_on_after_its_client_left_makes_the_next_try_wait() -> None:
    """One slot: what the first call left behind is still being generated, and perhaps billed."""
    free_at = [0.0]

    def one_slot(received: Received) -> Act:
        now = asyncio.get_running_loop().time()
        free_at[0] = max(free_at[0], now) + (0.5 if received.index == 0 else 0.05)
        return Completion(after=free_at[0] - now)

    events: list[Event] = []
    async with FakeServer(one_slot) as server:
        model = model_at(server, bounds=Bounds(headers=0.3))
        allowance = CapsAllowance(Caps(), SystemClock())
        calls = Calls(allowance=allowance, emit=events.append, retry=RetryPolicy(first=0.0))
        got = await calls.ask(model, ask(), role="judge", node=NodeId("root"))
        await model.aclose()
    assert (got.reply.text, got.attempts, server.requests) == ("ok", 2, 2)
    retried = [event for event in events if isinstance(event, Retried)]
    assert [(one.error, one.possibly_paid) for one in retried] == [(HeadersTimeout.code, True)]
    assert any(isinstance(event, CallFinished) for event in events)


# ---------------------------------------------------------------- loops and threads
@pytest.mark.case("S52")
@pytest.mark.parametrize("stream", [True, False])
def test_one_model_serves_three_runs_and_two_threads(stream: bool) -> None:
    with FakeServer(Completion(after=0.005)) as server:
        model = model_at(server)
        texts: list[str] = []

        async def several() -> None:
            async def one() -> None:
                texts.append((await model.generate(ask(stream=stream))).text)

            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(one)

        for _ in range(3):
            asyncio.run(several())
        threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["ok"] * 40
        asyncio.run(until(lambda: server.sockets == 0))


async def _on_uvloop(server: FakeServer) -> None:
    model = model_at(server, bounds=Bounds(headers=0.3, idle=0.3))
    for stream in (True, False):
        assert (await model.generate(ask(stream=stream))).text == "ok"
    await _cancelled_over_and_over(model, 16, 150)
    assert await _probed(model) == ["ok"] * 10
    await model.aclose()
    named = OpenAIModel("m", base_url=server.base_url.replace("127.0.0.1", "localhost"))
    assert (await named.generate(ask())).text == "ok"


def test_uvloop_carries_the_same_requests() -> None:
    with FakeServer(Completion(after=0.003)) as server:
        _run_on_uvloop(lambda: _on_uvloop(server))
        asyncio.run(until(lambda: server.sockets == 0))


def test_bounds_fire_on_uvloop_too() -> None:
    async def run() -> None:
        model = model_at(server, bounds=Bounds(headers=0.1))
        with pytest.raises(HeadersTimeout):
            await model.generate(ask())
        await model.aclose()

    with FakeServer(Completion(after=5.0)) as server:
        _run_on_uvloop(run)


def _run_on_uvloop(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@pytest.mark.case("K9-17")
async def test_a_thousand_calls_at_once_and_cancelled_ones_leak_no_descriptor() -> None:
    async with FakeServer(Completion(after=0.002)) as server:
        model = model_at(server)
        await model.generate(ask())
        before = _descriptors()
        for _ in range(10):
            async with anyio.create_task_group() as group:
                for n in range(100):
                    group.start_soon(model.generate, ask(stream=n % 2 == 0))
        await _cancelled_over_and_over(model, 10, 150)
        await model.aclose()
        await until(lambda: server.sockets == 0)
        assert (await model.generate(ask())).text == "ok"
        assert _descriptors() == before
        await model.aclose()


# ---------------------------------------------------------------- helpers
def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(true: Callable[[], bool]) -> None:
    """Wait for what happens on the server's side of a socket."""
    with anyio.fail_after(5):
        while not true():
            await anyio.sleep(0.005)
