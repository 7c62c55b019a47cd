"""A server that refuses beyond a rate: how much is lost, refused and waited, and that nobody herds.

Time is virtual and the server is a fake's script; `test_limited.py` shows the same on a socket.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import anyio
import pytest

from executors.endpoint.buckets import Limits
from executors.endpoint.endpoint import Endpoint, RetryPolicy
from executors.endpoint.pacing import Pace
from executors.errors import ModelError, RateLimited, ServerFault
from executors.models.fakes.acts import Reply
from executors.models.fakes.limited import Limited, LimitKind, RetryAfter
from tests.executors.asks import received
from tests.support.hasty import LoopClock, run_hastily

_WORKERS = 64


@dataclass
class Load:
    """Items through an endpoint, by workers that take one after another."""

    server: Limited
    latency: float = 0.05
    limits: Limits | None = None
    attempts: int = 5
    clock: LoopClock = field(default_factory=LoopClock)
    random: Random = field(default_factory=lambda: Random(1))
    lost: int = 0
    sent: list[float] = field(default_factory=list[float])

    async def run(self, items: int, workers: int = _WORKERS) -> float:
        endpoint = Endpoint(
            cap=workers,
            retry=RetryPolicy(attempts=self.attempts),
            clock=self.clock,
            random=Random(2),
            limits=self.limits,
        )
        pending = iter(range(items))

        async def worker() -> None:
            for _ in pending:
                try:
                    await endpoint.run(self._attempt, on_retry=_quietly)
                except ModelError:
                    self.lost += 1

        async with anyio.create_task_group() as group:
            for _ in range(workers):
                group.start_soon(worker)
        return self.clock.monotonic()

    async def _attempt(self) -> str:
        self.sent.append(self.clock.monotonic())
        await self.clock.sleep(self.random.uniform(0.001, 0.003))
        act = self.server(received())
        if isinstance(act, Reply):
            raise RateLimited("429", retry_after=_wish(act))
        await self.clock.sleep(self.latency * self.random.uniform(0.5, 1.5))
        return "ok"


async def _quietly(tries: int, error: ModelError, wait: float) -> None:
    pass


def _wish(reply: Reply) -> float | None:
    wish = dict(reply.headers).get("retry-after")
    return None if wish is None else float(wish)


def measured(
    kind: LimitKind,
    retry_after: RetryAfter,
    *,
    latency: float = 0.05,
    limits: Limits | None = None,
    calls: int = 100,
    seconds: float = 1.0,
    burst: int | None = None,
    items: int = 3_000,
    workers: int = _WORKERS,
) -> tuple[Load, float]:
    """Return the load that was run and how long it took."""

    async def scenario() -> tuple[Load, float]:
        clock = LoopClock()
        server = Limited(
            calls, seconds, kind=kind, retry_after=retry_after, burst=burst, now=clock.monotonic
        )
        load = Load(server, latency=latency, limits=limits, clock=clock)
        return load, await load.run(items, workers)

    return run_hastily(scenario)


# ---------------------------------------------------------------- the rate is found


SERVERS: dict[str, tuple[LimitKind, int, float, int | None]] = {
    "full bucket": ("bucket", 100, 1.0, 100),
    "small bucket": ("bucket", 100, 1.0, 10),
    "windows": ("fixed", 100, 1.0, None),
    "last second": ("sliding", 100, 1.0, None),
    "windows of 2 s": ("fixed", 200, 2.0, None),
    "last 2 s": ("sliding", 200, 2.0, None),
}


@pytest.mark.case("S46")
@pytest.mark.parametrize("retry_after", ["seconds", None])
@pytest.mark.parametrize(
    ("name", "latency"),
    [*((name, 0.05) for name in SERVERS), ("windows", 0.005), ("windows", 0.3)],
)
def test_a_limit_that_nobody_named_is_found_and_held(
    name: str, latency: float, retry_after: RetryAfter
) -> None:
    """3,000 items at 100 a second, 64 workers: none lost, few refused, near the ideal time."""
    kind, calls, seconds, burst = SERVERS[name]
    load, took = measured(
        kind, retry_after, latency=latency, calls=calls, seconds=seconds, burst=burst
    )
    assert load.lost == 0
    assert load.server.refused <= 0.1 * 3_000
    assert took <= 1.25 * 3_000 / 100


@pytest.mark.parametrize("kind", ["bucket", "fixed", "sliding"])
def test_a_limit_that_was_named_is_held_without_a_refusal(kind: LimitKind) -> None:
    load, took = measured(kind, "seconds", limits=Limits(rpm=6_000))
    assert (load.lost, load.server.refused) == (0, 0)
    assert took <= 1.05 * 3_000 / 100


@pytest.mark.case("S46")
@pytest.mark.parametrize("workers", [1, 4, 64])
def test_no_item_is_lost_to_a_window_of_a_minute_that_is_used_up(workers: int) -> None:
    """Nor where the server says nothing of when it opens again."""
    load, took = measured("fixed", None, calls=40, seconds=60.0, items=200, workers=workers)
    assert load.lost == 0
    assert load.server.refused <= 0.5 * 200
    assert took <= 2.0 * 200 / 40 * 60.0


def test_a_rate_that_was_raised_is_taken_up() -> None:
    async def scenario() -> tuple[float, float]:
        clock = LoopClock()
        server = Limited(50, kind="bucket", retry_after=None, now=clock.monotonic)
        load = Load(server, clock=clock)
        slow = await load.run(1_000)
        load.server = Limited(200, kind="bucket", retry_after=None, now=clock.monotonic)
        return slow, await load.run(6_000) - slow

    slow, fast = run_hastily(scenario)
    assert slow >= 0.9 * 1_000 / 50
    assert fast <= 1.6 * 6_000 / 200


def test_one_worker_alone_finds_its_rate_again_too() -> None:
    """A window that was used up by somebody else says nothing about the next ones."""

    async def scenario() -> float:
        clock = LoopClock()
        server = Limited(5, 2.0, kind="fixed", retry_after="seconds", now=clock.monotonic)
        load = Load(server, clock=clock, latency=0.01)
        await load.run(8, 1)
        load.server = Limited(1_000, now=clock.monotonic)
        before = clock.monotonic()
        await load.run(500, 1)
        return clock.monotonic() - before

    assert run_hastily(scenario) <= 60.0


@pytest.mark.parametrize("quiet", [59.0, 60.5, 61.0, 61.5, 200.0])
def test_a_refusal_after_long_quiet_is_answered_with_about_the_rate_that_was_borne(
    quiet: float,
) -> None:
    pace = Pace(RetryPolicy(), Random(1))
    for n in range(2):  # from the second refusal on, a rate is known
        now = n * 5.0
        for _ in range(100):
            pace.leave(now)
            now += 0.01
        pace.refused(pace.epoch, now, wish=None, tries=0)
    at, end = pace.closed_until, pace.closed_until + quiet
    while at < end:
        pace.leave(at)
        pace.answered(pace.epoch, at)
        at += 0.1
    pace.refused(pace.epoch, at, wish=None, tries=0)
    pace.leave(pace.closed_until)
    assert 5.0 <= pace.rate <= 15.0


# ---------------------------------------------------------------- nobody herds, nobody polls


def test_after_a_pause_calls_leave_at_a_pace_and_not_together() -> None:
    load, _ = measured("fixed", "seconds", items=600)
    pauses = [n for n in range(1, len(load.sent)) if load.sent[n] - load.sent[n - 1] > 0.9]
    assert pauses
    for n in pauses:
        assert sum(at - load.sent[n] < 0.05 for at in load.sent[n:]) <= 10


def test_who_waits_is_woken_for_its_own_turn_alone() -> None:
    """The number of timers that are set grows with the calls, and not with those who wait."""

    async def timers(workers: int) -> int:
        clock = LoopClock()
        slept: list[float] = []

        class Counting(LoopClock):
            async def sleep(self, seconds: float) -> None:
                slept.append(seconds)
                await clock.sleep(seconds)

        load = Load(Limited(10_000, now=clock.monotonic), latency=0.0, limits=Limits(rpm=600))
        load.clock = Counting()
        await load.run(200, workers)
        return len(slept)

    few, many = run_hastily(lambda: timers(4)), run_hastily(lambda: timers(64))
    assert many <= 1.2 * few


# ---------------------------------------------------------------- slots, not calls a minute


def test_a_server_that_holds_four_calls_at_once_is_found_to_hold_four() -> None:
    """It refuses as a limited one does, whatever the rate; latencies differ tenfold."""

    async def scenario() -> tuple[int, int, float]:
        clock, random, in_flight, refused, lost = LoopClock(), Random(5), 0, 0, 0

        async def attempt() -> str:
            nonlocal in_flight, refused
            await clock.sleep(0.002)
            if in_flight >= 4:
                refused += 1
                raise RateLimited("429")
            in_flight += 1
            try:
                await clock.sleep(random.uniform(0.05, 0.5))
            finally:
                in_flight -= 1
            return "ok"

        endpoint = Endpoint(cap=32, retry=RetryPolicy(), clock=clock, random=Random(3))
        pending = iter(range(1_000))

        async def worker() -> None:
            nonlocal lost
            for _ in pending:
                lost += not await _answered(endpoint, attempt)

        async with anyio.create_task_group() as group:
            for _ in range(32):
                group.start_soon(worker)
        return lost, refused, clock.monotonic()

    lost, refused, took = run_hastily(scenario)
    assert lost == 0
    assert refused <= 0.2 * 1_000
    assert took <= 2.0 * 1_000 * 0.275 / 4


def test_an_overload_that_names_no_time_is_waited_for_by_its_own_call_alone() -> None:
    async def scenario() -> float:
        clock = LoopClock()
        endpoint = Endpoint(cap=2, retry=RetryPolicy(), clock=clock)
        first = iter([ServerFault("503"), None])

        async def failing() -> str:
            error = next(first)
            if error is not None:
                raise error
            return "ok"

        async def other() -> str:
            ended.append(clock.monotonic())
            return "ok"

        ended: list[float] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_answered, endpoint, failing)
            group.start_soon(_answered, endpoint, other)
        return ended[0]

    assert run_hastily(scenario) == 0.0


async def _answered(endpoint: Endpoint, attempt: Callable[[], Awaitable[str]]) -> bool:
    try:
        await endpoint.run(attempt, on_retry=_quietly)
    except ModelError:
        return False
    return True
