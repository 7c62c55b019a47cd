"""Known limits: continuous buckets of calls and tokens, and an endpoint that holds them."""

import math
from functools import partial
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.endpoint.buckets import Bucket, Limits, Meter
from executors.endpoint.endpoint import Endpoint, RetryPolicy
from executors.errors import ContextExceeded, ModelError, RateLimited, ValidationError
from executors.events import CallFailed
from tests.executors.asks import ask
from tests.executors.benches import Bench, reply

pytestmark = pytest.mark.anyio


async def quietly(tries: int, error: ModelError, wait: float) -> None:
    pass


def endpoint(clock: VirtualClock, *, cap: int = 64, **limits: float) -> Endpoint:
    return Endpoint(
        cap=cap,
        retry=RetryPolicy(),
        clock=clock,
        random=Random(1),
        limits=Limits(**limits),
    )


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "6000"])
async def test_a_limit_that_is_no_rate_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="no limit a minute"):
        Limits(rpm=value)  # type: ignore[arg-type]


@given(
    limit=st.floats(1.0, 1e6),
    asks=st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(1, 50)), max_size=20),
)
def test_no_minute_sees_more_than_the_limit_whenever_it_begins(
    limit: float, asks: list[tuple[float, int]]
) -> None:
    """As many as may leave do so at each moment, after pauses of any length."""
    meter, now, left = Meter(Limits(rpm=limit), 0.0), 0.0, list[float]()
    for pause, count in asks:
        now += pause
        for _ in range(count):
            wait = meter.wait(0, now)
            if wait > 1.0:
                break
            now += wait
            meter.take(0, now)
            left.append(now)
    for at in left:
        assert sum(at <= other < at + 60.0 for other in left) <= math.ceil(limit)


@given(st.floats(0.001, 1e5), st.floats(0.0, 1e6), st.floats(0.0, 1e7))
def test_after_the_wait_that_a_bucket_names_nothing_is_waited_for_any_more(
    rate: float, amount: float, now: float
) -> None:
    bucket = Bucket(rate, max(1.0, rate), now=now, level=0.0)
    later = now + bucket.wait(amount, now)
    assert bucket.wait(amount, later) <= 1e-6


async def test_calls_leave_evenly_and_in_the_order_of_coming() -> None:
    clock, order = VirtualClock(), list[tuple[int, float]]()

    async def attempt(n: int) -> int:
        order.append((n, clock.monotonic()))
        return n

    shared = endpoint(clock, rpm=60.0)
    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(partial(shared.run, partial(attempt, n), on_retry=quietly))
    assert [n for n, _ in order] == list(range(10))
    assert [at for _, at in order] == pytest.approx([n * 60 / 59 for n in range(10)])


@pytest.mark.case("S48")
async def test_long_items_are_held_to_the_tokens_of_a_minute() -> None:
    """Ten of 50,000 tokens at 200,000 a minute: no minute sees more than four of them."""
    clock, starts = VirtualClock(), list[float]()

    async def attempt() -> str:
        starts.append(clock.monotonic())
        await clock.sleep(1.0)
        return "ok"

    shared = endpoint(clock, rpm=6_000.0, tpm=200_000.0)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(partial(shared.run, attempt, on_retry=quietly, tokens=50_000))
    assert len(starts) == 10
    assert max(sum(at <= other < at + 60 for other in starts) for at in starts) == 4
    assert starts[-1] <= 1.05 * 9 * 15


@pytest.mark.case("S48")
async def test_an_item_larger_than_the_tokens_of_a_minute_is_refused_up_front_and_alone() -> None:
    bench = Bench(limits=Limits(tpm=1_000.0))
    with pytest.raises(ContextExceeded, match="above the limit of 1,000 tokens a minute") as caught:
        await bench.ask(ask("long " * 700))
    assert (bench.model.calls, caught.value.attempts) == (0, 0)
    assert [event.kind for event in bench.events if isinstance(event, CallFailed)] == [
        "call_failed"
    ]
    assert (await bench.ask(ask("short"))).reply.text == "ok"


async def test_what_was_not_used_of_the_estimate_is_given_back() -> None:
    """The worst case is 16 tokens more than was used: the next calls need not wait for it."""

    async def seconds(used: int | None) -> float:
        bench = Bench(lambda _: reply(used), limits=Limits(tpm=600.0))
        for n in range(20):
            await bench.ask(ask(f"item {n}", max_tokens=60))
        return bench.clock.monotonic()

    assert await seconds(10) < 0.4 * await seconds(None)


async def test_a_try_that_was_refused_has_used_no_tokens() -> None:
    clock = VirtualClock()
    turns = iter([RateLimited("429", retry_after=1.0), None])

    async def attempt() -> str:
        if (error := next(turns)) is not None:
            raise error
        return "ok"

    shared = endpoint(clock, tpm=60_000.0)
    await shared.run(attempt, on_retry=quietly, tokens=60_000)
    assert clock.monotonic() < 2.0


async def test_a_share_that_was_divided_anew_holds_from_then_on() -> None:
    clock, starts = VirtualClock(), list[float]()

    async def attempt() -> None:
        starts.append(clock.monotonic())

    shared = endpoint(clock, rpm=60.0)
    for _ in range(3):
        await shared.run(attempt, on_retry=quietly)
    shared.resize(cap=1, limits=Limits(rpm=600.0))
    for _ in range(10):
        await shared.run(attempt, on_retry=quietly)
    assert starts[-1] - starts[2] <= 1.1 * 10 * 60 / 590
    shared.resize(cap=1, limits=None)
    before = clock.monotonic()
    await shared.run(attempt, on_retry=quietly)
    assert clock.monotonic() == before


async def test_a_caller_that_is_cancelled_while_it_keeps_the_time_leaves_it_to_the_next() -> None:
    clock, done = VirtualClock(), list[str]()

    async def attempt(name: str) -> None:
        done.append(name)

    shared = endpoint(clock, rpm=60.0)
    await shared.run(partial(attempt, "first"), on_retry=quietly)
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def given_up() -> None:
            with scope:
                await shared.run(partial(attempt, "given up"), on_retry=quietly)

        group.start_soon(given_up)
        await anyio.lowlevel.checkpoint()
        group.start_soon(partial(shared.run, partial(attempt, "next"), on_retry=quietly))
        await anyio.lowlevel.checkpoint()
        scope.cancel()
    assert done == ["first", "next"]
    assert clock.monotonic() == pytest.approx(60 / 59)
