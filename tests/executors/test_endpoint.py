"""The only retry layer: tries, waits, the shared cool-down, and the cap."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.endpoint.endpoint import Endpoint, RetryPolicy
from executors.endpoint.pacing import Pace
from executors.endpoint.slots import Slots
from executors.endpoint.turns import Turns
from executors.errors import (
    AuthError,
    DeadlineExceeded,
    IdleTimeout,
    ModelError,
    NotEncodable,
    OutOfQuota,
    RateLimited,
    RetriesExhausted,
    ServerFault,
    ValidationError,
)

pytestmark = pytest.mark.anyio


class Waits:
    """Collects what `on_retry` is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str, float]] = []

    async def __call__(self, tries: int, error: ModelError, wait: float) -> None:
        self.told.append((tries, error.code, wait))


class Server:
    """Fails as scripted, then answers "ok"; counts requests and those in flight."""

    def __init__(self, *errors: ModelError | None, forever: ModelError | None = None) -> None:
        self.errors = list(errors)
        self.forever = forever
        self.requests = 0
        self.in_flight = self.peak = 0

    async def __call__(self) -> str:
        self.requests += 1
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        await anyio.lowlevel.checkpoint()
        self.in_flight -= 1
        error = self.errors.pop(0) if self.errors else self.forever
        if error is not None:
            raise error
        return "ok"


def endpoint(
    clock: VirtualClock, *, cap: int = 4, attempts: int = 5, seconds: float = 300.0
) -> Endpoint:
    retry = RetryPolicy(attempts=attempts, seconds=seconds)
    return Endpoint(cap=cap, retry=retry, clock=clock, random=Random(7))


async def test_a_call_that_works_takes_one_request_and_no_wait() -> None:
    clock, server, waits = VirtualClock(), Server(), Waits()
    assert await endpoint(clock).run(server, on_retry=waits) == ("ok", 1)
    assert (server.requests, clock.slept, waits.told) == (1, [], [])


@pytest.mark.case("K2-1")
async def test_retry_after_is_waited_out_in_full() -> None:
    clock, server, waits = VirtualClock(), Server(RateLimited("429", retry_after=3.0)), Waits()
    assert await endpoint(clock).run(server, on_retry=waits) == ("ok", 2)
    assert server.requests == 2
    assert 3.0 <= clock.monotonic() <= 4.0
    assert waits.told == [(1, "rate-limited", clock.monotonic())]


@pytest.mark.case("K2-14")
async def test_our_own_longest_wait_does_not_shorten_the_servers_wish() -> None:
    clock, server = VirtualClock(), Server(RateLimited("429", retry_after=30.0))
    retry = RetryPolicy(longest=2.0)
    await Endpoint(cap=1, retry=retry, clock=clock).run(server, on_retry=Waits())
    assert clock.monotonic() >= 30.0


@pytest.mark.case("K2-2", "K2-4")
@pytest.mark.parametrize("attempts", [2, 4])
async def test_a_server_that_always_refuses_sees_as_many_requests_as_tries(attempts: int) -> None:
    clock, server = VirtualClock(), Server(forever=RateLimited("429"))
    with pytest.raises(RetriesExhausted, match=f"gave up after {attempts} attempt") as caught:
        await endpoint(clock, attempts=attempts).run(server, on_retry=Waits())
    assert server.requests == caught.value.attempts == attempts
    assert isinstance(caught.value.last, RateLimited)


@pytest.mark.case("K2-5")
async def test_one_attempt_means_exactly_one_request() -> None:
    clock, server = VirtualClock(), Server(forever=ServerFault("500"))
    with pytest.raises(ServerFault) as caught:
        await endpoint(clock, attempts=1).run(server, on_retry=Waits())
    assert (server.requests, caught.value.attempts, clock.slept) == (1, 1, [])


@pytest.mark.case("K5-5")
@pytest.mark.parametrize("error", [AuthError("401"), NotEncodable("x"), DeadlineExceeded("600 s")])
async def test_an_error_that_no_try_can_pass_is_raised_at_once(error: ModelError) -> None:
    clock, server = VirtualClock(), Server(ServerFault("500"), error)
    with pytest.raises(type(error)) as caught:
        await endpoint(clock).run(server, on_retry=Waits())
    assert (server.requests, caught.value.attempts) == (2, 2)


@pytest.mark.case("K1-1", "K2-11")
async def test_an_idle_stream_and_an_overload_are_tried_again() -> None:
    clock, server = VirtualClock(), Server(IdleTimeout("idle"), ServerFault("overloaded"))
    assert await endpoint(clock).run(server, on_retry=Waits()) == ("ok", 3)


@pytest.mark.case("S50")
async def test_a_reset_beyond_the_time_of_a_call_ends_the_run_and_says_when_to_resume() -> None:
    clock, server = VirtualClock(), Server(RateLimited("429", retry_after=3 * 3_600.0))
    with pytest.raises(OutOfQuota, match="takes no calls until 2026-01-01 03:00:0") as caught:
        await endpoint(clock).run(server, on_retry=Waits())
    assert (server.requests, clock.slept) == (1, [])
    assert timedelta(hours=3) <= caught.value.resume_after - clock.now() < timedelta(hours=3.001)
    assert isinstance(caught.value.last, RateLimited)


@pytest.mark.case("S50")
async def test_while_the_reset_is_far_away_nobody_sends_and_after_it_calls_go_again() -> None:
    clock, server = VirtualClock(), Server(RateLimited("429", where="m", retry_after=3_600.0))
    shared = endpoint(clock)
    for _ in range(2):
        with pytest.raises(OutOfQuota) as caught:
            await shared.run(server, on_retry=Waits())
        assert (server.requests, caught.value.where) == (1, "m")
    clock.advance(3_602.0)
    assert await shared.run(server, on_retry=Waits()) == ("ok", 1)


@pytest.mark.case("S50")
async def test_who_waits_when_the_quota_ends_is_sent_away_at_once() -> None:
    clock, ends = VirtualClock(), list[str]()

    async def attempt() -> str:
        await clock.sleep(1.0)
        raise RateLimited("429", retry_after=3_600.0)

    async def one() -> None:
        with pytest.raises(OutOfQuota):
            await shared.run(attempt, on_retry=Waits())
        ends.append(f"{clock.monotonic():g}")

    shared = endpoint(clock, cap=1)
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    assert ends == ["1"] * 4


@pytest.mark.parametrize("wish", [1e12, 1e300])
async def test_an_absurd_wish_is_told_and_not_computed_with(wish: float) -> None:
    with pytest.raises(OutOfQuota, match="takes no calls until 2125"):
        await endpoint(VirtualClock()).run(
            Server(RateLimited("429", retry_after=wish)), on_retry=Waits()
        )


async def test_tries_end_with_the_time_of_a_call() -> None:
    clock, server = VirtualClock(), Server(forever=RateLimited("429", retry_after=40.0))
    with pytest.raises(RetriesExhausted):
        await endpoint(clock, attempts=1_000, seconds=100.0).run(server, on_retry=Waits())
    assert server.requests == 3
    assert clock.monotonic() <= 100.0


@pytest.mark.case("K2-8")
async def test_one_429_pauses_every_caller() -> None:
    """What one caller is told holds for all: nobody sends until the pause is over."""
    clock = VirtualClock()
    sent: list[float] = []
    told = RateLimited("429", retry_after=10.0)

    async def attempt() -> str:
        sent.append(clock.monotonic())
        await anyio.lowlevel.checkpoint()
        if len(sent) == 1:
            raise told
        return "ok"

    shared = endpoint(clock, cap=1)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(_run, shared, attempt)
    assert len(sent) == 9
    assert min(sent[1:]) >= 10.0


@pytest.mark.case("K2-8")
async def test_after_a_pause_callers_come_back_one_by_one_and_then_in_growing_groups() -> None:
    clock = VirtualClock()
    starts: list[int] = []

    async def attempt() -> str:
        if clock.monotonic() == 0.0:
            await clock.sleep(0.1)
            raise RateLimited("429", retry_after=5.0)
        starts.append(round(clock.monotonic()))
        await clock.sleep(100.0)
        return "ok"

    shared = endpoint(clock, cap=8)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(_run, shared, attempt)
    groups = list(Counter(starts).values())
    assert groups[0] == 1
    assert max(groups) <= 4


@pytest.mark.case("K2-8")
async def test_a_server_that_takes_one_call_at_a_time_serves_everybody() -> None:
    clock = VirtualClock()
    served = in_flight = 0

    async def attempt() -> str:
        nonlocal served, in_flight
        in_flight += 1
        try:
            await clock.sleep(0.02)
            if in_flight > 1:
                raise RateLimited("429", retry_after=1.0)
            served += 1
            return "ok"
        finally:
            in_flight -= 1

    shared = endpoint(clock, cap=8)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(_run, shared, attempt)
    assert served == 8


async def test_a_slot_handed_to_a_caller_cancelled_in_the_same_turn_goes_on() -> None:
    clock = VirtualClock()
    turns = Turns(Slots(1), Pace(RetryPolicy(), Random(1)), clock)
    await turns.take(0)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(turns.take(0))
        await anyio.wait_all_tasks_blocked()
        turns.give()
        task.cancel()
    with anyio.fail_after(1):
        await turns.take(0)


@pytest.mark.case("K9-2", "K9-19")
async def test_calls_in_flight_never_pass_the_cap() -> None:
    clock, server = VirtualClock(), Server()
    shared = endpoint(clock, cap=4)
    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(_run, shared, server)
    assert (server.requests, server.peak) == (200, 4)


async def test_a_call_that_waits_for_its_next_try_leaves_its_slot_to_others() -> None:
    clock = VirtualClock()
    order: list[str] = []
    first = Server(ServerFault("503"))

    async def failing() -> str:
        order.append("failing")
        return await first()

    async def other() -> str:
        order.append("other")
        return "ok"

    shared = endpoint(clock, cap=1)
    async with anyio.create_task_group() as group:
        group.start_soon(_run, shared, failing)
        group.start_soon(_run, shared, other)
    assert order == ["failing", "other", "failing"]


async def test_a_call_that_was_sent_back_goes_before_those_that_did_not_try_yet() -> None:
    clock = VirtualClock()
    order: list[str] = []

    async def attempt(name: str) -> str:
        order.append(name)
        if order == ["sent back"]:
            raise ServerFault("503")
        await clock.sleep(10.0)
        return "ok"

    shared = endpoint(clock, cap=1)
    async with anyio.create_task_group() as group:
        for name in ("sent back", "a", "b", "c"):
            group.start_soon(_run, shared, partial(attempt, name))
    assert order == ["sent back", "a", "sent back", "b", "c"]


async def test_waits_grow_and_differ_between_callers() -> None:
    """Full jitter: evenly between nothing and a bound that doubles."""
    policy, random = RetryPolicy(first=1.0, longest=60.0), Random(3)
    for tries, bound in ((1, 1.0), (3, 4.0), (7, 60.0), (5_000, 60.0)):
        waits = [policy.backoff(tries, random) for _ in range(300)]
        assert 0.0 <= min(waits) < bound / 8
        assert bound * 7 / 8 < max(waits) <= bound


async def test_a_cancelled_caller_gives_its_place_back() -> None:
    clock, server = VirtualClock(), Server()
    shared = endpoint(clock, cap=1)
    held = anyio.Event()

    async def holds() -> str:
        await held.wait()
        return "ok"

    async with anyio.create_task_group() as group:
        group.start_soon(_run, shared, holds)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0):
            await shared.run(server, on_retry=Waits())
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(_run, shared, server)
            await anyio.wait_all_tasks_blocked()
            waiting.cancel_scope.cancel()
        held.set()
    assert server.requests == 0
    assert await shared.run(server, on_retry=Waits()) == ("ok", 1)


async def test_what_the_retry_callback_raises_ends_the_call() -> None:
    async def refuses(tries: int, error: ModelError, wait: float) -> None:
        raise ValidationError("no room")

    server = Server(ServerFault("503"))
    with pytest.raises(ValidationError, match="no room"):
        await endpoint(VirtualClock()).run(server, on_retry=refuses)
    assert server.requests == 1


async def test_requests_inside_one_try_are_counted() -> None:
    """An adapter that sent twice says so in its error."""
    error = ServerFault("500")
    error.attempts = 2
    with pytest.raises(RetriesExhausted) as caught:
        await endpoint(VirtualClock(), attempts=2).run(
            Server(error, ServerFault("500")), on_retry=Waits()
        )
    assert caught.value.attempts == 3


@pytest.mark.parametrize(
    "knobs",
    [
        {"attempts": 0},
        {"attempts": True},
        {"seconds": -1.0},
        {"first": float("nan")},
        {"longest": float("inf")},
    ],
)
async def test_a_policy_that_cannot_work_is_refused(knobs: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        RetryPolicy(**knobs)  # type: ignore[arg-type]


async def test_an_endpoint_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(ValidationError, match="cap=0"):
        Endpoint(cap=0, retry=RetryPolicy(), clock=VirtualClock())


@given(
    outcomes=st.lists(st.sampled_from(["ok", "429", "503", "fatal"]), min_size=1, max_size=40),
    cap=st.integers(1, 5),
    seed=st.integers(0, 1_000),
)
def test_whatever_fails_the_cap_holds_and_every_slot_comes_back(
    outcomes: list[str], cap: int, seed: int
) -> None:
    async def scenario() -> None:
        clock, server = VirtualClock(), Server(*map(_error, outcomes))
        shared = Endpoint(cap=cap, retry=RetryPolicy(), clock=clock, random=Random(seed))
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(_run, shared, server)
        assert server.peak <= cap
        assert shared._slots.taken == 0

    anyio.run(scenario)


def _error(outcome: str) -> ModelError | None:
    match outcome:
        case "429":
            return RateLimited("429", retry_after=1.0)
        case "503":
            return ServerFault("503")
        case "fatal":
            return AuthError("401")
        case _:
            return None


async def _run(shared: Endpoint, attempt: Callable[[], Awaitable[str]]) -> None:
    with suppress(ModelError):
        await shared.run(attempt, on_retry=Waits())
