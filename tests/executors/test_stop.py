"""A stop that is asked: nothing more is pulled, what is in flight has a grace, nothing is dropped."""

import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from math import inf, nan
from types import FrameType

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.engine.local import Done, Failed, Result, pull
from executors.engine.stop import Stop
from executors.errors import Halted, Interrupted, ValidationError

pytestmark = pytest.mark.anyio


async def pulled(stop: Stop, clock: VirtualClock, *seconds: float, cap: int) -> list[str]:
    """Pull work that takes these seconds, the stop being asked after one; what was settled how."""
    settled: list[str] = []

    async def work(n: float) -> None:
        await clock.sleep(n)

    def settle(result: Result[float, None]) -> None:
        how = "done" if isinstance(result, Done) else str(result.error)
        settled.append(f"{result.item:g} s {how}, at {clock.monotonic():g}")

    async with anyio.create_task_group() as group:

        async def ask() -> None:
            await clock.sleep(1)
            stop.ask("SIGTERM")

        group.start_soon(ask)
        with pytest.raises(Interrupted, match="stopped by SIGTERM"):
            await pull(seconds, work, cap=cap, settle=settle, stop=stop)
    return settled


async def test_what_is_in_flight_ends_within_the_grace_and_nothing_more_is_pulled() -> None:
    clock = VirtualClock()
    stop = Stop(clock=clock)
    assert await pulled(stop, clock, 3, 8, 1, 1, cap=2) == ["3 s done, at 3", "8 s done, at 8"]


async def test_what_outlasts_the_grace_is_cancelled_and_settled_as_failed() -> None:
    clock = VirtualClock()
    stop = Stop(grace=5, clock=clock)
    assert await pulled(stop, clock, 3, 60, 7, cap=3) == [
        "3 s done, at 3",
        "60 s stopped by SIGTERM, at 6",
        "7 s stopped by SIGTERM, at 6",
    ]


async def test_no_grace_cancels_at_once() -> None:
    clock = VirtualClock()
    assert await pulled(Stop(grace=0, clock=clock), clock, 3, cap=1) == [
        "3 s stopped by SIGTERM, at 1"
    ]


async def test_workers_that_wait_for_a_slow_source_end_at_once() -> None:
    clock, stop = VirtualClock(), Stop()

    async def source() -> AsyncIterator[int]:
        yield 1
        await anyio.sleep_forever()

    async def work(n: int) -> None:
        await clock.sleep(1)
        stop.ask()
        await clock.sleep(1)

    results: list[Result[int, None]] = []
    with pytest.raises(Interrupted, match="Ctrl-C"):
        await pull(source(), work, cap=3, settle=results.append, stop=stop)
    assert [type(result) for result in results] == [Done]
    assert clock.monotonic() == 2


async def test_a_halt_ends_workers_that_wait_for_a_slow_source_too() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        await anyio.sleep_forever()

    async def work(n: int) -> None:
        await anyio.lowlevel.checkpoint()
        raise Halted(bound="calls", scope="run", limit="1")

    results: list[Result[int, None]] = []
    with pytest.raises(Halted, match="calls bound"):
        await pull(source(), work, cap=3, settle=results.append)
    assert len(results) == 1


async def test_an_item_that_comes_with_the_stop_is_settled_and_not_begun() -> None:
    stop, begun = Stop(), list[int]()

    def source() -> Iterator[int]:
        yield 1
        stop.ask()
        yield 2
        yield 3

    async def work(n: int) -> None:
        begun.append(n)

    results: list[Result[int, None]] = []
    with pytest.raises(Interrupted):
        await pull(source(), work, cap=1, settle=results.append, stop=stop)
    assert (begun, [(r.item, type(r)) for r in results]) == ([1], [(1, Done), (2, Failed)])


async def test_a_stop_that_was_asked_before_lets_nothing_begin() -> None:
    stop = Stop()
    stop.ask()
    stop.ask("SIGTERM")
    results: list[Result[int, None]] = []
    with pytest.raises(Interrupted, match="Ctrl-C"):
        await pull(
            iter([1]), lambda _: anyio.sleep_forever(), cap=2, settle=results.append, stop=stop
        )
    assert results == []


async def test_a_bound_that_was_reached_first_is_what_is_raised() -> None:
    clock = VirtualClock()
    stop = Stop(grace=5, clock=clock)

    async def work(n: int) -> None:
        await clock.sleep(1)
        if n == 0:
            raise Halted(bound="calls", scope="run", limit="1")
        stop.ask()
        await clock.sleep(60)

    results: list[Result[int, None]] = []
    with pytest.raises(Halted, match="calls bound"):
        await pull([0, 1], work, cap=2, settle=results.append, stop=stop)
    assert clock.monotonic() == 6
    assert [str(r.error) for r in results if isinstance(r, Failed)][1] == "stopped by Ctrl-C"


@pytest.mark.case("K13-11")
async def test_work_that_makes_a_result_of_its_cancellation_keeps_it_and_gets_no_more() -> None:
    async def work(n: int) -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "a result all the same"
        raise AssertionError

    stop = Stop(grace=0)
    results: list[Result[int, str]] = []
    async with anyio.create_task_group() as group:

        async def wave() -> None:
            with pytest.raises(Interrupted):
                await pull(range(100), work, cap=4, settle=results.append, stop=stop)

        group.start_soon(wave)
        await anyio.wait_all_tasks_blocked()
        stop.ask()
    assert sorted(r.item for r in results) == [0, 1, 2, 3]
    assert {type(r) for r in results} == {Done}


@pytest.mark.case("K9-4")
async def test_cancellation_passes_through_while_a_stop_is_heeded() -> None:
    stop = Stop()
    results: list[Result[int, None]] = []
    with anyio.move_on_after(0.01):
        await pull(
            range(9), lambda _: anyio.sleep_forever(), cap=2, settle=results.append, stop=stop
        )
    assert (results, stop.heeded) == ([], False)


@pytest.mark.case("S55")
async def test_the_handler_of_a_signal_may_ask() -> None:
    stop, settled = Stop(grace=0), list[Result[int, None]]()

    def heard(number: int, frame: FrameType | None) -> None:
        stop.ask(signal.Signals(number).name)

    before = signal.signal(signal.SIGUSR1, heard)

    async def work(n: int) -> None:
        signal.raise_signal(signal.SIGUSR1)
        await anyio.sleep_forever()

    try:
        with pytest.raises(Interrupted, match="SIGUSR1"):
            await pull([1, 2], work, cap=1, settle=settled.append, stop=stop)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [r.item for r in settled] == [1]


async def test_any_thread_may_ask_for_the_work_of_several_loops() -> None:
    stop, ends = Stop(grace=0), list[type[BaseException]]()

    async def endless() -> None:
        await pull([1], lambda _: anyio.sleep_forever(), cap=1, settle=lambda _: None, stop=stop)

    def run() -> None:
        try:
            anyio.run(endless)
        except Interrupted as error:
            ends.append(type(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len(stop._wakes) < 3:
        await anyio.sleep(0.001)
    asker = threading.Thread(target=stop.ask)
    asker.start()
    for thread in (*threads, asker):
        thread.join()
    assert (ends, stop.heeded, stop._wakes) == ([Interrupted] * 3, False, [])


async def test_who_waits_after_the_stop_was_asked_waits_no_longer() -> None:
    stop = Stop()
    stop.ask()
    with anyio.fail_after(1):
        await stop.wait()


async def test_work_says_whether_it_heeds() -> None:
    stop = Stop()
    assert not stop.heeded
    with stop.heeding(), stop.heeding():
        pass
    assert not stop.heeded

    async def work(n: int) -> bool:
        return stop.heeded

    results: list[Result[int, bool]] = []
    await pull([1], work, cap=1, settle=results.append, stop=stop)
    assert results == [Done(item=1, value=True)]
    assert (stop.heeded, stop.asked) == (False, False)


@pytest.mark.parametrize("grace", [-1, inf, nan])
def test_a_grace_has_an_end(grace: float) -> None:
    with pytest.raises(ValidationError, match="grace="):
        Stop(grace=grace)


@given(
    seconds=st.lists(st.sampled_from([0.0, 1.0, 4.0, 30.0]), max_size=12),
    cap=st.integers(1, 5),
    at=st.sampled_from([0.0, 0.5, 3.0, 9.0]),
    grace=st.sampled_from([0.0, 2.0, 50.0]),
)
def test_whatever_was_pulled_is_settled_once_whenever_the_stop_comes(
    seconds: list[float], cap: int, at: float, grace: float
) -> None:
    clock = VirtualClock()
    stop = Stop(grace=grace, clock=clock)
    read, results = list[int](), list[Result[int, None]]()

    def source() -> Iterator[int]:
        for n in range(len(seconds)):
            read.append(n)
            yield n

    async def work(n: int) -> None:
        await clock.sleep(seconds[n])

    async def scenario() -> None:
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                await clock.sleep(at)
                stop.ask()

            group.start_soon(ask)
            with suppress(Interrupted):
                await pull(source(), work, cap=cap, settle=results.append, stop=stop)
            group.cancel_scope.cancel()

    anyio.run(scenario)
    assert sorted(r.item for r in results) == read
