"""The deadline of a run ends every wait, and calls that fail count on their bound."""

from decimal import Decimal

import anyio
import pytest

from executors.errors import Halted, ModelError, RateLimited, ServerFault
from executors.events import CallFailed
from executors.gate.allowance import Caps
from executors.messages import ModelReply, ModelRequest
from tests.executors.asks import ask
from tests.executors.benches import NOTHING, Bench, reply

pytestmark = pytest.mark.anyio


async def test_a_wait_that_the_server_asked_for_ends_at_the_deadline() -> None:
    bench = Bench(lambda _: RateLimited("429", retry_after=100.0), caps=Caps(seconds=3.0))
    with pytest.raises(Halted, match="the seconds bound") as caught:
        await bench.ask()
    assert (bench.model.calls, caught.value.bound) == (1, "seconds")
    assert bench.clock.monotonic() == 3.0
    assert bench.held() == NOTHING
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert (failed.error, failed.attempts, failed.possibly_paid) == ("halted", 1, False)


async def test_who_waits_for_a_server_that_wants_to_be_left_alone_waits_no_longer() -> None:
    """Calls that come later share the wait, and the deadline."""
    bench = Bench(lambda _: RateLimited("429", retry_after=100.0), caps=Caps(seconds=3.0))
    ended: list[float] = []

    async def one(n: int) -> None:
        with pytest.raises(Halted, match="the seconds bound"):
            await bench.ask(ask(f"item {n}"))
        ended.append(bench.clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(one, 0)
        await anyio.lowlevel.checkpoint()
        for n in range(1, 6):
            group.start_soon(one, n)
    assert ended == [3.0] * 6
    assert bench.model.calls <= 6


async def test_a_slot_that_is_free_after_the_deadline_sends_nothing() -> None:
    """What was in flight at the deadline is answered; what waited behind it never leaves."""
    bench = Bench(caps=Caps(seconds=3.0), latency=5.0, concurrency=1)
    ends: list[str] = []

    async def one(n: int) -> None:
        try:
            ends.append((await bench.ask(ask(f"item {n}"))).reply.text)
        except Halted as halted:
            ends.append(halted.bound)

    async with anyio.create_task_group() as group:
        for n in range(4):
            group.start_soon(one, n)
    assert (bench.model.calls, ends) == (1, ["ok", "seconds", "seconds", "seconds"])
    assert bench.held() == NOTHING


async def test_our_own_wait_for_a_next_try_ends_at_the_deadline_too() -> None:
    bench = Bench(lambda _: ServerFault("503"), caps=Caps(seconds=0.001))
    with pytest.raises(Halted, match="the seconds bound"):
        await bench.ask()
    assert bench.clock.monotonic() <= 0.001


async def test_calls_that_fail_for_nothing_count_too_so_that_requests_are_bounded() -> None:
    bench = Bench(lambda _: ServerFault("500"), caps=Caps(calls=3), attempts=5)
    ends: list[str] = []
    for n in range(8):
        with pytest.raises((ModelError, Halted)) as caught:
            await bench.ask(ask(f"item {n}"))
        ends.append(caught.value.code)
    assert ends == ["retries-exhausted"] * 3 + ["halted"] * 5
    assert bench.model.calls == 3 * 5
    assert bench.spent() == (3, 0, Decimal(0))


async def test_a_call_that_never_left_gives_its_place_back() -> None:
    def answer(_: ModelRequest) -> ModelReply:
        return reply(1)

    bench = Bench(answer, caps=Caps(calls=1), latency=1.0, concurrency=1)
    blocker = bench.calls.endpoint(bench.model)
    await blocker._turns.take(0)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(bench.ask, ask("item 0"))
            await anyio.lowlevel.checkpoint()
            scope.cancel()
    blocker._turns.give()
    await bench.ask(ask("item 1"))
    assert bench.spent()[0] == 1
