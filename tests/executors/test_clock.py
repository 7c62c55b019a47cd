"""The virtual clock: time jumps when nobody else has anything to do."""

import time

import anyio
import pytest

from executors.clock import SystemClock, VirtualClock

pytestmark = pytest.mark.anyio


async def test_sleepers_wake_in_the_order_of_their_deadlines_in_no_real_time() -> None:
    clock, woken = VirtualClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    started = time.monotonic()
    async with anyio.create_task_group() as group:
        for name, seconds in (("late", 3_600.0), ("early", 1.0), ("middle", 60.0)):
            group.start_soon(sleeper, name, seconds)
    assert woken == [("early", 1.0), ("middle", 60.0), ("late", 3_600.0)]
    assert time.monotonic() - started < 5.0


async def test_a_cancelled_sleeper_does_not_hold_time_back() -> None:
    clock = VirtualClock()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 5.0)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    await clock.sleep(10.0)
    assert clock.monotonic() == 10.0


async def test_the_wall_clock_moves_with_it_and_sleeps_are_recorded() -> None:
    clock = VirtualClock()
    before = clock.now()
    await clock.sleep(1.5)
    clock.advance(0.5)
    assert (clock.now() - before).total_seconds() == 2.0
    assert clock.slept == [1.5]


async def test_the_systems_clock_never_goes_back_and_knows_its_zone() -> None:
    clock = SystemClock()
    first = clock.monotonic()
    await clock.sleep(-1.0)
    assert clock.monotonic() >= first
    assert clock.now().utcoffset() is not None
