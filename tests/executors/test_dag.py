"""The ready set: what waits for nothing goes, failures stay values, nothing is lost or done twice."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.engine.dag import DagResult, Skipped, run_dag
from executors.engine.local import Done, Failed
from executors.engine.stop import Stop
from executors.errors import Halted, Interrupted, ValidationError
from executors.order import Circle, Order, order_of

pytestmark = pytest.mark.anyio

DIAMOND = {"s2": ["s1"], "s3": ["s1"], "s4": ["s2", "s3"]}
NAMES = ["s1", "s2", "s3", "s4"]


@dataclass
class Ran:
    """Work that notes when it runs and takes as long as it is told to."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    bad: Mapping[str, Exception] = field(default_factory=dict[str, Exception])
    begun: list[str] = field(default_factory=list[str])
    results: list[DagResult[str]] = field(default_factory=list[DagResult[str]])
    now: int = 0
    peak: int = 0

    async def __call__(self, id_: str) -> str:
        self.begun.append(id_)
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await self.clock.sleep(self.seconds.get(id_, 0.0))
            if id_ in self.bad:
                raise self.bad[id_]
            return id_.upper()
        finally:
            self.now -= 1

    async def run(
        self,
        depends: Mapping[str, list[str]],
        names: list[str] | None = None,
        *,
        cap: int | None = 8,
    ) -> list[DagResult[str]]:
        ids = NAMES if names is None else names
        await run_dag(ids, depends, self, cap=cap, settle=self.results.append)
        return self.results


async def test_a_free_place_takes_the_next_ready_id_without_waiting_for_its_wave() -> None:
    """s2 is quick and s3 slow: what waits for s2 alone goes while s3 still runs."""
    ran = Ran(seconds={"s3": 10.0, "s2": 1.0})
    await ran.run({"s2": ["s1"], "s3": ["s1"], "s4": ["s2"]})
    assert [r.item for r in ran.results] == ["s1", "s2", "s4", "s3"]
    assert ran.clock.monotonic() == 10.0


@pytest.mark.case("R-154")
async def test_a_wave_is_told_before_its_first_id_and_once() -> None:
    told: list[object] = []
    ran = Ran()

    async def work(id_: str) -> str:
        told.append(id_)
        return await ran(id_)

    async def wave(number: int, ids: tuple[str, ...]) -> None:
        await anyio.lowlevel.checkpoint()
        told.append((number, ids))

    await run_dag(NAMES, DIAMOND, work, cap=8, settle=ran.results.append, on_wave=wave)
    waves = [(1, ("s1",)), (2, ("s2", "s3")), (3, ("s4",))]
    assert told == [waves[0], "s1", waves[1], "s2", "s3", waves[2], "s4"]


@pytest.mark.case("R-152", "K9-1")
async def test_what_waits_for_a_failure_is_skipped_and_names_it_and_all_else_goes_on() -> None:
    ran = Ran(bad={"s2": OSError("no")})
    await ran.run({**DIAMOND, "s5": ["s4"], "s6": ["s3"]}, [*NAMES, "s5", "s6"])
    found = {r.item: r for r in ran.results}
    assert isinstance(found["s2"], Failed)
    assert found["s4"] == Skipped(item="s4", dependency="s2", cause="s2")
    assert found["s5"] == Skipped(item="s5", dependency="s4", cause="s2")
    assert isinstance(found["s6"], Done)
    assert ran.begun == ["s1", "s2", "s3", "s6"]


async def test_what_waits_for_two_failures_is_settled_once() -> None:
    ran = Ran(bad={"s2": OSError("a"), "s3": OSError("b")})
    await ran.run(DIAMOND)
    assert [r.item for r in ran.results] == ["s1", "s2", "s4", "s3"]


@pytest.mark.case("K9-2")
async def test_at_most_cap_run_at_once() -> None:
    names = [str(n) for n in range(200)]
    ran = Ran(seconds=dict.fromkeys(names, 1.0))
    await ran.run({}, names, cap=4)
    assert (ran.peak, len(ran.results), ran.clock.monotonic()) == (4, 200, 50.0)


@pytest.mark.case("K9-4")
async def test_cancellation_passes_through_and_is_no_failure() -> None:
    results: list[DagResult[None]] = []
    with anyio.move_on_after(0.01) as scope:
        await run_dag(NAMES, {}, lambda _: anyio.sleep_forever(), cap=2, settle=results.append)
    assert (scope.cancelled_caught, results) == (True, [])


@pytest.mark.case("K9-5", "K9-7")
async def test_a_halt_lets_what_runs_end_starts_nothing_more_and_then_nothing_is_alive() -> None:
    halt = Halted(bound="calls", scope="run", limit="1")
    ran = Ran(seconds={"s2": 1.0, "s3": 3.0}, bad={"s2": halt})
    with pytest.raises(Halted, match="the calls bound"):
        await ran.run({**DIAMOND, "s5": ["s3"]}, [*NAMES, "s5"])
    assert [(type(r), r.item) for r in ran.results] == [(Done, "s1"), (Failed, "s2"), (Done, "s3")]
    assert (ran.now, ran.clock.monotonic()) == (0, 3.0)


async def test_a_stop_ends_what_runs_after_its_grace() -> None:
    clock = VirtualClock()
    ran = Ran(clock=clock, seconds={"s1": 1.0, "s2": 1_000.0})
    stop = Stop(grace=5.0, clock=clock)

    async def work(id_: str) -> str:
        if id_ == "s2":
            stop.ask()
        return await ran(id_)

    with pytest.raises(Interrupted):
        await run_dag(
            NAMES, {"s2": ["s1"], "s3": ["s1"]}, work, cap=1, settle=ran.results.append, stop=stop
        )
    assert [type(r) for r in ran.results[-1:]] == [Failed]
    assert clock.monotonic() < 100


async def test_a_wave_that_raises_ends_it_all() -> None:
    def wave(number: int, ids: tuple[str, ...]) -> None:
        if number == 2:
            raise LookupError("not this one")

    ran = Ran()
    with pytest.raises(LookupError):
        await run_dag(NAMES, DIAMOND, ran, cap=8, settle=ran.results.append, on_wave=wave)
    assert ran.begun == ["s1"]


async def test_a_wave_that_is_halted_does_not_start_and_what_runs_ends() -> None:
    def wave(number: int, ids: tuple[str, ...]) -> None:
        if number == 2:
            raise Halted(bound="gate", scope="run", limit="no more")

    ran = Ran(seconds={"s2": 5.0})
    with pytest.raises(Halted, match="the gate bound"):
        await run_dag(NAMES, {"s3": ["s1"]}, ran, cap=8, settle=ran.results.append, on_wave=wave)
    found = {r.item: type(r) for r in ran.results}
    assert found == {"s1": Done, "s2": Done, "s3": Failed, "s4": Done}
    assert ran.begun == ["s1", "s2", "s4"]


@pytest.mark.parametrize(
    ("names", "depends", "says"),
    [
        (["a", "a"], {}, "'a' stands twice"),
        (["a"], {"a": ["b"]}, "'b' is none"),
        (["a"], {"b": ["a"]}, "'b' is none"),
        (["a", "b"], {"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        (["a"], {"a": ["a"]}, "a -> a"),
    ],
)
async def test_what_cannot_be_ordered_is_refused_before_any_work(
    names: list[str], depends: dict[str, list[str]], says: str
) -> None:
    ran = Ran()
    with pytest.raises(ValidationError, match=says):
        await ran.run(depends, names)
    assert ran.begun == []


async def test_a_cap_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(ValidationError, match="cap=0"):
        await Ran().run({}, cap=0)


async def test_nothing_to_do_is_done_at_once() -> None:
    assert await Ran().run({}, []) == []


graphs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just([str(i) for i in range(n)]),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=24),
        st.sets(st.integers(0, n - 1), max_size=3),
        st.integers(1, 5),
    )
)


@given(graphs)
def test_each_id_is_settled_once_and_after_all_it_waits_for(
    graph: tuple[list[str], list[tuple[int, int]], set[int], int],
) -> None:
    """Over random graphs: done only after all needs are done, skipped only beneath a failure."""
    names, pairs, bad, cap = graph
    depends: dict[str, list[str]] = {}
    for one, two in pairs:
        if one != two:
            depends.setdefault(str(max(one, two)), []).append(str(min(one, two)))
    ran = Ran(
        seconds={name: (int(name) * 7 % 5) * 0.25 for name in names},
        bad={str(n): OSError() for n in bad},
    )
    anyio.run(lambda: ran.run(depends, names, cap=cap))
    assert sorted(r.item for r in ran.results) == sorted(names)
    done = {r.item for r in ran.results if isinstance(r, Done)}
    for place, result in enumerate(ran.results):
        before = {r.item for r in ran.results[:place]}
        match result:
            case Skipped(dependency=dependency, cause=cause):
                assert dependency in depends[result.item]
                assert dependency not in done
                assert int(cause) in bad
            case _:
                assert set(depends.get(result.item, ())) <= before & done
    assert ran.peak <= cap


@given(graphs)
def test_an_order_has_each_id_deeper_than_its_needs_or_there_is_a_circle(
    graph: tuple[list[str], list[tuple[int, int]], set[int], int],
) -> None:
    names, pairs, _, _ = graph
    depends: dict[str, list[str]] = {}
    for one, two in pairs:
        depends.setdefault(str(one), []).append(str(two))
    match order_of(names, depends):
        case Order(depths=depths):
            assert sorted(depths) == sorted(names)
            for id_, needed in depends.items():
                assert depths[id_] == 1 + max(depths[n] for n in needed)
        case Circle(ids=ids):
            for at, next_ in zip(ids, (*ids[1:], ids[0]), strict=True):
                assert next_ in depends[at]
            assert len(set(ids)) == len(ids)
