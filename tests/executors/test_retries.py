"""Tries that multiply nowhere, waits that a server wished for, and cancellations that are final."""

import asyncio
from decimal import Decimal
from functools import partial
from random import Random

import anyio
import pytest

from executors.clock import VirtualClock
from executors.endpoint.endpoint import Endpoint, RetryPolicy
from executors.errors import (
    Halted,
    ModelError,
    OutOfQuota,
    RateLimited,
    RetriesExhausted,
    ServerFault,
)
from executors.events import CallFailed, Warned
from executors.gate.allowance import Caps
from executors.messages import ModelReply
from executors.models.fakes.acts import Reply
from executors.models.fakes.server import FakeServer
from tests.executors.asks import ask, model_at
from tests.executors.benches import NODE, NOTHING, Bench, reply, reserve_of

pytestmark = pytest.mark.anyio

Told = list[tuple[str, str]]


async def quietly(tries: int, error: ModelError, wait: float) -> None:
    pass


async def waited(*wishes: float | None, retry: RetryPolicy, told: Told | None = None) -> float:
    """Return the seconds that one call waits that is refused with these wishes, one after another."""
    clock, turns = VirtualClock(), iter(wishes)

    def warn(code: str, text: str) -> None:
        if told is not None:
            told.append((code, text))

    async def attempt() -> str:
        for wish in turns:
            raise RateLimited("429", retry_after=wish)
        return "ok"

    shared = Endpoint(cap=1, retry=retry, clock=clock, random=Random(4), warn=warn)
    await shared.run(attempt, on_retry=quietly)
    return clock.monotonic()


# ---------------------------------------------------------------- what the server wishes


@pytest.mark.case("K2-1", "K2-14")
@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [
        (3.0, 3.0, 3.4),
        (0.2, 0.2, 0.3),
        (119.0, 119.0, 120.1),
        (0.0, 0.7, 1.0),  # a date in the past: our own wait
        (None, 0.7, 1.0),  # absent, or nothing that could be read
    ],
)
async def test_a_wish_is_a_floor_and_hardly_more_and_without_one_the_wait_is_our_own(
    wish: float | None, least: float, most: float
) -> None:
    assert least <= await waited(wish, retry=RetryPolicy()) <= most


async def test_a_wish_beyond_the_longest_wait_is_cut_to_it_and_said_once() -> None:
    told: Told = []
    seconds = await waited(200.0, 250.0, retry=RetryPolicy(), told=told)
    assert 240.0 <= seconds <= 243.0
    assert [code for code, _ in told] == ["long-wait"]
    assert "for 200 s; it is asked again after 120 s" in told[0][1]


async def test_the_run_is_told_of_a_wait_that_was_cut() -> None:
    turns: list[ModelReply | ModelError] = [RateLimited("429", retry_after=200.0), reply(1)]
    bench = Bench(turns)
    await bench.ask()
    assert [event.code for event in bench.events if isinstance(event, Warned)] == ["long-wait"]


async def test_refusals_in_a_row_make_the_waits_longer_than_a_server_says() -> None:
    """One that says "a second" and means a minute uses up nobody's tries."""
    assert await waited(*[1.0] * 4, retry=RetryPolicy()) >= 60.0
    assert await waited(*[None] * 4, retry=RetryPolicy()) >= 60.0


@pytest.mark.case("S50")
async def test_a_call_that_ends_with_the_quota_is_no_paid_call_and_holds_nothing() -> None:
    bench = Bench(lambda _: RateLimited("429", retry_after=10_800.0))
    with pytest.raises(OutOfQuota):
        await bench.ask()
    assert bench.held() == NOTHING
    assert bench.spent()[1:] == (0, Decimal(0))
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert (failed.error, failed.attempts, failed.possibly_paid) == ("out-of-quota", 1, False)


# ---------------------------------------------------------------- nothing multiplies


@pytest.mark.case("S34", "K2-5")
@pytest.mark.parametrize("attempts", [1, 3, 5])
async def test_a_server_that_always_fails_sees_the_tries_of_our_one_policy(attempts: int) -> None:
    """Transport, adapter, endpoint and pipeline together, over a socket."""
    bench = Bench(attempts=attempts)
    async with FakeServer(Reply(status=500)) as server:
        model = model_at(server)
        with pytest.raises((RetriesExhausted, ServerFault)) as caught:
            await bench.calls.ask(model, ask(), role="judge", node=NODE)
        await model.aclose()
    assert isinstance(caught.value, ModelError)
    assert server.requests == caught.value.attempts == attempts


@pytest.mark.case("S47")
async def test_each_of_many_calls_that_are_tried_again_has_tries_of_its_own() -> None:
    """64 calls, each fails four times and then works: none uses up the tries of another."""
    shared = Endpoint(cap=16, retry=RetryPolicy(first=0.0), clock=VirtualClock())
    requests: list[int] = []

    async def one() -> None:
        turns = iter([ServerFault("503")] * 4)

        async def attempt() -> str:
            await anyio.lowlevel.checkpoint()
            for error in turns:
                raise error
            return "ok"

        requests.append((await shared.run(attempt, on_retry=quietly))[1])

    async with anyio.create_task_group() as group:
        for _ in range(64):
            group.start_soon(one)
    assert requests == [5] * 64


@pytest.mark.case("S31")
async def test_three_callers_at_once_share_one_allowance() -> None:
    """0.50 USD each at its worst, and 1.25 in all: two leave."""
    tokens = 500 - reserve_of(ask("child 0", max_tokens=0))
    dear = Caps(usd=Decimal("1.25"))
    bench = Bench(lambda _: reply(500), caps=dear, priced=True, latency=1.0)
    ends: list[str] = []

    async def child(n: int) -> None:
        try:
            await bench.ask(ask(f"child {n}", max_tokens=tokens))
        except Halted as halted:
            ends.append(halted.bound)

    async with anyio.create_task_group() as group:
        for n in range(3):
            group.start_soon(child, n)
    assert ends == ["usd"]
    assert bench.spent()[2] == Decimal("1.000")


# ---------------------------------------------------------------- what is never tried again


@pytest.mark.case("S39")
@pytest.mark.parametrize("moment", ["in flight", "between two tries", "in the line"])
async def test_a_call_that_is_cancelled_is_not_tried_again(moment: str) -> None:
    clock, sent, held = VirtualClock(), list[str](), anyio.Event()

    async def attempt() -> str:
        sent.append("mine")
        if moment == "in flight":
            await anyio.sleep_forever()
        raise RateLimited("429", retry_after=50.0)

    async def blocks() -> str:
        await held.wait()
        return "ok"

    shared = Endpoint(cap=1, retry=RetryPolicy(), clock=clock)
    async with asyncio.TaskGroup() as group:
        if moment == "in the line":
            group.create_task(shared.run(blocks, on_retry=quietly))
            await anyio.wait_all_tasks_blocked()
        task = group.create_task(shared.run(attempt, on_retry=quietly))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.set()
    assert len(sent) == (moment != "in the line")
    assert shared._slots.taken == 0
    assert not shared._turns.waiting


@pytest.mark.case("S39")
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError("a fault of ours"), GeneratorExit()]
)
async def test_what_is_no_passing_failure_of_the_model_is_not_tried_again(
    error: BaseException,
) -> None:
    sent: list[int] = []

    async def attempt() -> str:
        sent.append(1)
        raise error

    shared = Endpoint(cap=1, retry=RetryPolicy(), clock=VirtualClock())
    with pytest.raises(type(error)):
        await shared.run(attempt, on_retry=quietly)
    assert sent == [1]
    assert shared._slots.taken == 0


async def test_who_waits_for_a_next_try_is_told_at_once_when_it_cannot_come_in_time() -> None:
    """Another call is told to stay away for longer than the first may still be tried."""
    clock, ended = VirtualClock(), list[float]()
    wishes = iter([1.0, 9.9])

    async def attempt(takes: float) -> str:
        await clock.sleep(takes)
        raise RateLimited("429", retry_after=next(wishes))

    async def one(takes: float) -> None:
        with pytest.raises(RateLimited):
            await shared.run(partial(attempt, takes), on_retry=quietly)
        ended.append(clock.monotonic())

    retry = RetryPolicy(seconds=10.0)
    shared = Endpoint(cap=2, retry=retry, clock=clock, random=Random(1))
    async with anyio.create_task_group() as group:
        group.start_soon(one, 0.0)
        group.start_soon(one, 0.5)
    assert ended == [0.5, 0.5]
