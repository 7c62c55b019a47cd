"""Pull workers: a cap, values for failures, nothing left running."""

from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.engine.local import Done, Failed, Result, pull
from executors.errors import Halted, ValidationError
from executors.places import step_aside

pytestmark = pytest.mark.anyio


@pytest.mark.case("K9-1")
async def test_one_failing_item_leaves_its_siblings_alone() -> None:
    results: list[Result[int, int]] = []

    async def work(n: int) -> int:
        await anyio.lowlevel.checkpoint()
        if n == 2:
            raise ValueError("third")
        return n * 10

    await pull(range(5), work, cap=3, settle=results.append)
    assert sorted(r.value for r in results if isinstance(r, Done)) == [0, 10, 30, 40]
    (failed,) = [r for r in results if isinstance(r, Failed)]
    assert (failed.item, str(failed.error)) == (2, "third")


@pytest.mark.case("K9-2")
async def test_at_most_cap_items_are_in_progress_and_the_source_is_read_lazily() -> None:
    read = in_progress = peak = 0

    def source() -> Iterator[int]:
        nonlocal read
        for n in range(200):
            read += 1
            yield n

    async def work(n: int) -> int:
        nonlocal in_progress, peak
        in_progress += 1
        peak = max(peak, in_progress)
        assert read <= n + 1 + 4
        await anyio.lowlevel.checkpoint()
        in_progress -= 1
        return n

    results: list[Result[int, int]] = []
    await pull(source(), work, cap=4, settle=results.append)
    assert (len(results), peak) == (200, 4)


@pytest.mark.case("K6-17")
async def test_none_is_a_result_like_any_other() -> None:
    results: list[Result[int, None]] = []

    async def work(n: int) -> None:
        await anyio.lowlevel.checkpoint()

    await pull(range(6), work, cap=2, settle=results.append)
    assert [type(r) for r in results] == [Done] * 6


@pytest.mark.case("K6-17")
async def test_none_and_falsy_items_are_items() -> None:
    results: list[Result[object, object]] = []

    async def work(item: object) -> object:
        return item

    items: list[object] = [None, 0, "", (), False]
    await pull(items, work, cap=2, settle=results.append)
    assert [r.item for r in results] == items


@pytest.mark.case("K9-4")
async def test_cancellation_passes_through_and_is_no_failed_item() -> None:
    results: list[Result[int, None]] = []
    async with anyio.create_task_group() as group:

        async def wave() -> None:
            await pull(range(4), lambda _: anyio.sleep_forever(), cap=4, settle=results.append)

        group.start_soon(wave)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert results == []


@pytest.mark.case("K13-11")
async def test_work_that_makes_a_result_of_its_cancellation_gets_no_more_of_it() -> None:
    results: list[Result[int, str]] = []

    async def work(_: int) -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "a result all the same"
        raise AssertionError

    async with anyio.create_task_group() as group:

        async def wave() -> None:
            await pull(range(100), work, cap=4, settle=results.append)

        group.start_soon(wave)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert sorted(result.item for result in results) == [0, 1, 2, 3]


@pytest.mark.case("K9-5", "K9-7")
async def test_a_halt_lets_what_is_in_flight_end_and_then_nothing_is_alive() -> None:
    clock, alive = VirtualClock(), 0
    results: list[Result[int, int]] = []

    async def work(n: int) -> int:
        nonlocal alive
        alive += 1
        try:
            if n == 3:
                raise Halted(bound="calls", scope="run", limit="1")
            await clock.sleep(1.0)
            return n
        finally:
            alive -= 1

    with pytest.raises(Halted, match="the calls bound of run"):
        await pull(range(1_000), work, cap=4, settle=results.append)
    assert alive == 0
    assert sorted(r.item for r in results) == [0, 1, 2, 3]


async def test_a_halt_of_the_settling_stops_the_pulling_and_lets_the_rest_end() -> None:
    clock, settled = VirtualClock(), list[int]()

    async def work(n: int) -> int:
        await clock.sleep(float(n))
        return n

    def settle(result: Result[int, int]) -> None:
        settled.append(result.item)
        if result.item == 1:
            raise Halted(bound="failures", scope="run", limit="1")

    with pytest.raises(Halted, match="the failures bound"):
        await pull([1, 2, 3, 4], work, cap=2, settle=settle)
    assert settled == [1, 2]


@pytest.mark.case("K9-5")
async def test_an_error_of_the_source_ends_its_workers_and_is_raised_as_it_is() -> None:
    alive = 0

    async def source() -> AsyncIterator[int]:
        yield 0
        yield 1
        raise OSError("disk gone")

    async def work(n: int) -> int:
        nonlocal alive
        alive += 1
        try:
            await anyio.sleep_forever()
        finally:
            alive -= 1
        return n

    results: list[Result[int, int]] = []
    with pytest.raises(OSError, match="disk gone"):
        await pull(source(), work, cap=3, settle=results.append)
    assert alive == 0


async def test_a_cap_that_would_drop_every_item_is_refused() -> None:
    results: list[Result[int, None]] = []
    with pytest.raises(ValidationError, match="cap=0"):
        await pull([1], lambda _: anyio.sleep(0), cap=0, settle=results.append)


async def test_an_async_source_is_read_by_one_worker_at_a_time() -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(20):
            await anyio.lowlevel.checkpoint()
            yield n

    async def work(n: int) -> int:
        await anyio.lowlevel.checkpoint()
        return n

    results: list[Result[int, int]] = []
    await pull(source(), work, cap=5, settle=results.append)
    assert sorted(r.item for r in results) == list(range(20))


@given(
    items=st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=30),
    cap=st.integers(1, 8),
    bad=st.sets(st.integers(0, 29)),
)
def test_every_item_is_settled_exactly_once(items: list[object], cap: int, bad: set[int]) -> None:
    async def work(item: tuple[int, object]) -> object:
        await anyio.lowlevel.checkpoint()
        if item[0] in bad:
            raise RuntimeError
        return item[1]

    results: list[Result[tuple[int, object], object]] = []

    async def scenario() -> None:
        await pull(list(enumerate(items)), work, cap=cap, settle=results.append)

    anyio.run(scenario)
    assert sorted(r.item[0] for r in results) == list(range(len(items)))
    assert {r.item[0] for r in results if isinstance(r, Failed)} == bad & set(range(len(items)))


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("where", ["source", "work"])
async def test_what_ends_a_program_is_raised_as_it_is_and_stops_the_siblings(
    ending: BaseException, where: str
) -> None:
    begun: list[int] = []

    def source() -> Iterator[int]:
        yield 0
        yield 1
        if where == "source":
            raise ending
        yield 2

    async def work(n: int) -> None:
        begun.append(n)
        if n == 2:
            raise ending
        await anyio.sleep_forever()

    with pytest.raises(type(ending)) as caught:
        await pull(source(), work, cap=3, settle=lambda _: None)
    assert caught.value is ending


@pytest.mark.parametrize(("spare", "most"), [(0, 2), (1, 3), (3, 5)])
async def test_spare_workers_take_the_places_of_those_that_step_aside(
    spare: int, most: int
) -> None:
    """Who only waits for the disk counts no more; those in a place are never more than the cap."""
    working = in_progress = peak = 0
    durable = anyio.Event()

    async def work(n: int) -> int:
        nonlocal working, in_progress, peak
        working, in_progress = working + 1, in_progress + 1
        assert working <= 2
        peak = max(peak, in_progress)
        await anyio.lowlevel.checkpoint()
        working -= 1
        step_aside()
        step_aside()  # a second call about the same item
        if in_progress == most:
            durable.set()
        await durable.wait()
        in_progress -= 1
        return n

    results: list[Result[int, int]] = []
    await pull(range(20), work, cap=2, settle=results.append, spare=spare)
    assert (len(results), peak) == (20, most)


async def test_a_halt_ends_spare_workers_that_stand_by() -> None:
    async def work(n: int) -> int:
        raise Halted(bound="calls", scope="run", limit="1")

    with pytest.raises(Halted):
        await pull(range(20), work, cap=1, settle=_ignore, spare=4)


def _ignore(result: object) -> None:
    del result
