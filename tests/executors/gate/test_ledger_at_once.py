"""Many at once, in threads, tasks and processes: no more pass than may."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier

import anyio
import pytest

from executors.calls.payment import Room
from executors.clock import VirtualClock
from executors.errors import Halted, OverBudget
from executors.gate.allowance import Reservation
from executors.gate.config.budget import BudgetSection
from executors.gate.files import LEDGER, book
from executors.gate.ledger import Kind, Ledger, LedgerAllowance
from tests.executors.gate.families import ends, family, go
from tests.executors.gate.ledgers import Asker, Config, call, charge, made, refused, reserved

WORKERS = 256


def at_once(workers: int, act: Callable[[int], object]) -> list[object]:
    """Let so many threads act at the same moment."""
    barrier = Barrier(workers)

    def worker(number: int) -> object:
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(worker, range(workers)))


@pytest.mark.case("G-073", "K8-10")
@pytest.mark.parametrize("each", [False, True], ids=["one-allowance", "an-allowance-each"])
def test_of_256_threads_at_a_barrier_one_is_admitted(tmp_path: Path, *, each: bool) -> None:
    with made(tmp_path / "ledger", max_cost_usd=1) as ledger:
        shared = LedgerAllowance(ledger)
        allowances = [LedgerAllowance(ledger) if each else shared for _ in range(WORKERS)]
        got = at_once(WORKERS, lambda n: allowances[n].reserve(call("0.9")))
    assert sum(isinstance(one, Reservation) for one in got) == 1


@pytest.mark.case("G-073")
@pytest.mark.anyio
async def test_of_256_tasks_one_is_admitted_and_the_others_halt_once_it_is_settled() -> None:
    admitted: list[Reservation] = []
    halted: list[Halted] = []
    with made(max_cost_usd=1) as ledger:
        room = Room(LedgerAllowance(ledger))

        async def worker() -> None:
            try:
                reservation = await room.reserve(call("0.9"), Asker())
            except Halted as error:
                halted.append(error)
                return
            admitted.append(reservation)
            await anyio.sleep(0)
            room.settle(reservation, 1, Decimal("0.85"))

        async with anyio.create_task_group() as group:
            for _ in range(WORKERS):
                group.start_soon(worker)
        assert ledger.totals().usd in {0, Decimal("0.85")}
    assert (len(admitted), len(halted)) == (1, WORKERS - 1)
    assert all(isinstance(one, OverBudget) for one in halted)


@pytest.mark.case("G-073", "K8-17")
def test_of_256_workers_in_four_processes_one_is_admitted(tmp_path: Path) -> None:
    with family(4, "reserve", tmp_path / "ledger", "-", WORKERS // 4) as members:
        go(*members)
        assert sum(int(ends(member)) for member in members) == 1


def test_four_processes_with_200_increments_each_count_800(tmp_path: Path) -> None:
    with family(4, "count", tmp_path / "ledger", "-", 200) as members:
        go(*members)
        for member in members:
            ends(member)
    with made(tmp_path / "ledger") as ledger:
        assert ledger.totals().resources == {"writes": 800}


def test_sixteen_threads_of_one_ledger_count_every_time(tmp_path: Path) -> None:
    with made(tmp_path / "ledger") as ledger:
        at_once(16, lambda _: ledger.charge(charge("0", writes=25)))
        assert ledger.totals().resources == {"writes": 400}


@pytest.mark.case("G-089", "G-095")
def test_processes_share_the_rate_of_their_family(tmp_path: Path) -> None:
    with family(2, "admit", tmp_path / "ledger", "-", 10) as members:
        go(*members)
        assert sum(int(ends(member)) for member in members) == 10


@pytest.mark.case("G-080", "G-095")
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("child", Config(limits={"max_children": 1})),
        ("spawn", Config(spawn={"rate_per_minute": 1})),
        ("defer", Config(defer={"rate_per_minute": 1})),
        ("toolRound", Config(limits={"max_tool_rounds": 1})),
    ],
)
def test_of_three_at_once_one_is_admitted_though_none_is_recorded(
    kind: Kind, config: Config
) -> None:
    with made(config=config) as ledger:
        got = at_once(3, lambda _: ledger.admit(kind))
    assert sum(one is None for one in got) == 1


def test_what_is_admitted_together_counts_as_a_whole_or_not_at_all() -> None:
    with made(config=Config(limits={"max_children": 2}, spawn={"rate_per_minute": 1})) as ledger:
        assert ledger.admit({"turn": 1, "toolRound": 1, "child": 1, "spawn": 1}) is None
        refused_ = ledger.admit({"turn": 1, "toolRound": 1, "child": 1, "spawn": 1})
        assert refused_ is not None
        assert refused_.rule == "spawn.ratePerMinute"
        assert (ledger.totals().children, ledger.totals().turns) == (1, 1)
        excused = {"spawn.ratePerMinute"}
        assert ledger.admit({"child": 1, "spawn": 1}, excused=excused) is None
        assert ledger.totals().children == 2


@pytest.mark.case("G-093")
def test_rows_out_of_the_order_of_time_all_count(tmp_path: Path) -> None:
    """Two processes whose clocks differ write by turns."""
    late, early = VirtualClock(), VirtualClock()
    late.advance(50)
    config = Config(spawn={"rate_per_minute": 4})
    with (
        made(tmp_path / "ledger", config, clock=late) as one,
        made(tmp_path / "ledger", config, clock=early) as other,
    ):
        for ledger in (one, other, one, other):
            assert ledger.admit("spawn") is None
        assert one.admit("spawn") is not None
        assert other.admit("spawn") is not None
        late.advance(20)  # the rows of the other are 70 s old by this clock
        assert one.admit("spawn") is None
        assert other.admit("spawn") is not None  # by its own clock they are all there


@pytest.mark.case("G-090")
def test_two_families_with_two_files_do_not_count_for_each_other(tmp_path: Path) -> None:
    config = Config(spawn={"rate_per_minute": 1}, budget={"max_cost_usd": 1})
    with made(tmp_path / "one", config) as one, made(tmp_path / "two", config) as two:
        assert one.admit("spawn") is None
        one.charge(charge("1"))
        assert two.admit("spawn") is None
        assert two.halts() is None


@pytest.mark.case("G-091")
def test_a_grandchild_joins_the_ledger_of_its_root(tmp_path: Path) -> None:
    config = Config(spawn={"rate_per_minute": 2})

    def joined(environment: dict[str, str], folder: str) -> Ledger:
        where = book(LEDGER, configured=None, environment=environment, directory=tmp_path / folder)
        return made(where, config)

    with joined({}, "root") as root:
        passed_on = {LEDGER: str(root.path)}
        with joined(passed_on, "child") as child, joined(passed_on, "grandchild") as grandchild:
            assert root.path == child.path == grandchild.path
            assert [one.admit("spawn") for one in (grandchild, child)] == [None, None]
            assert root.admit("spawn") is not None


@pytest.mark.case("G-063", "G-064", "K8-11")
def test_a_second_process_goes_on_from_what_the_first_spent(tmp_path: Path) -> None:
    with made(tmp_path / "ledger", max_cost_usd=1) as one:
        first = LedgerAllowance(one)
        with made(tmp_path / "ledger", max_cost_usd=1) as two:
            second = LedgerAllowance(two)
            for allowance in [first, second] * 10:
                held = reserved(allowance, call("0.03"))
                allowance.settle(held, tokens=1, usd=Decimal("0.03"))
            first.close()
            second.close()
            assert one.totals().usd == two.totals().usd == Decimal("0.60")
            passed = 0
            while isinstance(got := second.reserve(call("0.1")), Reservation):
                second.settle(got, tokens=1, usd=Decimal("0.1"))
                passed += 1
            assert passed == 4
            assert second.halts() is not None
            assert refused(second, call("0.1")).final


def test_what_an_idle_process_holds_goes_back_to_those_it_shares_with(tmp_path: Path) -> None:
    clock = VirtualClock()
    with (
        made(tmp_path / "ledger", max_cost_usd=1, clock=clock) as one,
        made(tmp_path / "ledger", max_cost_usd=1, clock=clock) as two,
    ):
        parent, child = LedgerAllowance(one), LedgerAllowance(two)
        parent.settle(reserved(parent, call("0.1")), tokens=1, usd=Decimal("0.01"))
        waits = refused(child, call("0.95"))
        assert (waits.final, waits.again) == (False, 0.05)
        parent.share()
        clock.advance(0.05)
        reserved(child, call("0.95"))


def test_of_two_that_share_each_gives_back_by_itself_what_it_does_not_use(tmp_path: Path) -> None:
    with (
        made(tmp_path / "ledger", max_cost_usd=1) as one,
        made(tmp_path / "ledger", max_cost_usd=1) as two,
    ):
        first, second = LedgerAllowance(one), LedgerAllowance(two)
        held = reserved(first, call("0.05"))
        second.release(reserved(second, call("0.05")))
        first.release(held)
        assert two._look().held.usd == 100_000_000  # the first was alone when it drew
        first.settle(reserved(first, call("0.2")), tokens=1, usd=Decimal("0.2"))
        second.release(reserved(second, call("0.5")))
        assert two._look().held.usd == 0


@pytest.mark.anyio
async def test_who_waits_looks_again_since_others_may_make_room(tmp_path: Path) -> None:
    with _real(tmp_path / "ledger") as one, _real(tmp_path / "ledger") as two:
        other, mine = LedgerAllowance(one), Room(LedgerAllowance(two))
        held = reserved(other, call("0.6"))
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(mine.reserve, call("0.7"), Asker())
                await anyio.wait_all_tasks_blocked()
                other.release(held)
                other.close()


def _real(path: Path) -> Ledger:
    return Ledger(path, budget=BudgetSection.model_validate({"max_cost_usd": 1}))
