"""The budget of a run family: what each record adds, and what then halts.

What is shown where: rows of the case table here, several at once in test_ledger_at_once, any
interleaving with crashes in test_ledger_property and test_ledger_killed, the file in
test_ledger_file. Each of these turns at least one test of them red when it is taken away:

reserving      what others set aside counts; `BEGIN IMMEDIATE`; one thread at a time; a forked child
               draws a block of its own; turns in flight count; amounts that are negative or NaN are
               refused; a reservation is closed once; halts stop draws; who waits looks again
settling       an overrun is told at once, and what is free waits too; what is spent rounds up; an
               exemption shrinks to what was used; an idle process gives back where others share
crashes        what a dead holder held is charged; a resume charges what was not reported, once; who
               was taken for dead reports and goes on
unknown price  one call at a time; none where closed; the halt, and the round that ends it
counting       all or none; what was refused leaves no row; rows outlive slower clocks; children count
               at admission; depth; termination is final
bounds         the tighter of two; a person's holds; strict; one soft warning
the file       damaged without an audit is refused; broken in use: seen, and not written to; replaced:
               seen; another program's, newer, over a network: left alone
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from executors.clock import VirtualClock
from executors.errors import BudgetUnavailable, Halted, OverBudget, ValidationError
from executors.gate.allowance import Caps, Drawn, Estimate, Full, Reservation
from executors.gate.ledger import LedgerAllowance, Totals
from executors.usage import Usage
from tests.executors.gate.ledgers import (
    Config,
    Step,
    call,
    charge,
    made,
    refused,
    reserved,
    step_admit,
    step_halt,
    step_record,
    step_wait,
)

USD, UNPRICED = "budget.maxCostUsd", "budget.unpriced"


def row(case: str, config: Config, *steps: Step) -> object:
    return pytest.param(config, steps, marks=pytest.mark.case(case), id=case)


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        row("G-043", Config(budget={"max_cost_usd": 0}), step_halt(USD, "0 USD of 0 USD")),
        row(
            "G-044",
            Config(budget={"max_cost_usd": 0.8}),
            step_record(charge("0.7")),
            step_halt(None),
            step_record(charge("0.1")),
            step_halt(USD, "0.8 USD of 0.8 USD"),
        ),
        row(
            "G-045",
            Config(budget={"max_cost_usd": 0.00002}),
            step_record(charge("0.0000001"), times=199),
            step_halt(None),
            step_record(charge("0.0000001")),
            step_halt(USD),
        ),
        row(
            "G-051",
            Config(budget={"max_cost_usd": 5, "fail_closed_on_unpriced": True}),
            step_record(charge(None, tokens=7)),
            step_halt(UNPRICED, "nobody knows"),
        ),
        row(
            "G-053",
            Config(budget={"max_cost_usd": 5, "fail_closed_on_unpriced": True}),
            step_record(charge(None)),
            step_record(charge("0.1")),
            step_halt(None),
        ),
        row(
            "G-054",
            Config(budget={"max_tokens": 20}),
            step_record(charge(None, tokens=10)),
            step_halt(None),
            step_record(charge(None, tokens=10)),
            step_halt("budget.maxTokens", "20 of 20 tokens"),
        ),
        row(
            "G-056",
            Config(budget={"resources": {"writes": 2}}),
            step_record(charge("0", llm=False, writes=1)),
            step_halt(None),
            step_record(charge("0", llm=False, writes=1)),
            step_halt("budget.resource.writes", "2 of 2 writes"),
        ),
        row(
            "G-060",
            Config(budget={"max_cost_usd": 1, "strict": True}),
            step_record(charge("0.2")),
            step_record(charge("0.3")),
            step_record(charge("0.4")),
            step_halt(USD, "strict: at 0.3 USD on average"),
        ),
        row(
            "G-061",
            Config(budget={"max_cost_usd": 1, "strict": True, "soft_ratio": 0.8}),
            step_record(charge("0.45"), times=2),
            step_halt(None),
        ),
        row(
            "G-078",
            Config(limits={"max_tool_rounds": 2}),
            step_record(charge("0.01"), times=50),
            step_record(charge("0", llm=False)),
            step_halt(None),
            step_record(charge("0", llm=False)),
            step_halt("limits.maxToolRounds", "2 of 2"),
        ),
        row(
            "G-079",
            Config(limits={"max_children": 3}),
            step_admit("child", times=3),
            step_record(charge("0", llm=False), times=3),
            step_admit("child", "limits.maxChildren", "3 of 3"),
            step_halt(None),
        ),
        row(
            "G-081",
            Config(limits={"max_depth": 2}, depth=2),
            step_admit("child", "limits.maxDepth", "depth 2 of 2"),
        ),
        row(
            "G-083",
            Config(),
            step_admit("defer", times=15),
            step_admit("defer", "defer.ratePerMinute", "15/15"),
        ),
        row(
            "G-084",
            Config(),
            step_admit("spawn", times=10),
            step_admit("spawn", "spawn.ratePerMinute", "10/10"),
        ),
        row(
            "G-085",
            Config(spawn={"rate_per_minute": 2}),
            step_admit("spawn", times=2),
            step_wait(59),
            step_admit("spawn", "spawn.ratePerMinute"),
            step_wait(2),
            step_admit("spawn"),
        ),
        row(
            "G-086",
            Config(defer={"rate_per_minute": 1}),
            step_admit("defer"),
            step_wait(50),
            step_admit("defer", "defer.ratePerMinute", times=5),
            step_wait(11),
            step_admit("defer"),
        ),
        row(
            "G-088",
            Config(spawn={"rate_per_minute": float("inf")}),
            step_admit("spawn", times=100),
        ),
        row(
            "G-094",
            Config(defer={"rate_per_minute": 1}),
            step_admit("defer"),
            # What fires later is a call of its own type: it counts as that alone.
            step_admit("turn", times=30),
            step_admit("toolRound", times=30),
            step_wait(61),
            step_admit("defer"),
        ),
    ],
)
def test_a_script_of_records_and_actions_meets_its_bounds(
    config: Config, steps: Sequence[Step]
) -> None:
    clock = VirtualClock()
    with made(config=config, clock=clock) as ledger:
        for step in steps:
            step(ledger, clock)


@pytest.mark.case("G-046")
def test_a_round_of_unknown_price_adds_its_tokens_and_is_told() -> None:
    with made(max_cost_usd=5) as ledger:
        ledger.charge(charge("0.5", tokens=3))
        ledger.charge(charge(None, tokens=4))
        assert ledger.totals() == Totals(
            calls=2, turns=2, tokens=7, usd=Decimal("0.5"), priced=1, unpriced=True
        )


@pytest.mark.case("G-050")
def test_a_tool_that_tells_no_cost_has_none_and_is_not_unpriced() -> None:
    with made() as ledger:
        ledger.charge(charge("0", llm=False))
        assert ledger.totals() == Totals(turns=1, tool_rounds=1, unpriced=None)


@pytest.mark.case("G-048", "G-049", "K8-13")
@pytest.mark.parametrize("usd", ["NaN", "-0.5", "Infinity", "sNaN"])
def test_no_refund_and_no_amount_that_is_none(usd: str) -> None:
    with made(max_cost_usd=0.8) as ledger:
        allowance = LedgerAllowance(ledger)
        with pytest.raises(ValidationError, match="no amount"):
            allowance.reserve(call(usd))
        with pytest.raises(ValidationError, match="no amounts"):
            allowance.reserve(call("0.1", tokens=-5))
        held = reserved(allowance, call("0.1"))
        with pytest.raises(ValidationError, match="no amount"):
            allowance.settle(held, tokens=1, usd=Decimal(usd))
        with pytest.raises(ValidationError, match="no amount"):
            allowance.settle(held, tokens=-1, usd=None)
        allowance.release(held)
        assert allowance.totals() == Totals()
        reserved(allowance, call("0.8"))  # nothing of all that stayed set aside


@pytest.mark.case("G-055")
def test_cached_tokens_count_as_tokens() -> None:
    usage = Usage(input=10, output=5, cache_read=900, cache_write=100)
    assert usage.total == 1_015
    with made(max_tokens=1_015) as ledger:
        ledger.charge(charge("0.1", tokens=usage.total))
        assert ledger.halts() is not None


@pytest.mark.case("G-058")
def test_a_bound_that_is_nearly_reached_warns_once_and_refuses_nothing() -> None:
    with made(max_cost_usd=1, soft_ratio=0.8) as ledger:
        ledger.charge(charge("0.7"))
        assert ledger.take_warnings() == ()
        ledger.charge(charge("0.15"))
        (warning,) = ledger.take_warnings()
        assert (warning.dimension, warning.spent, warning.cap) == ("usd", "0.85 USD", "1 USD")
        ledger.charge(charge("0.05"))
        ledger.top_up("usd", 2)
        ledger.charge(charge("0.9"))  # once more, under the new bound
        assert ledger.take_warnings() == ()
        assert ledger.halts() is None


@pytest.mark.case("G-058")
def test_a_call_tells_of_the_soft_bound_as_well() -> None:
    heard: list[str] = []
    with made(max_cost_usd=1, soft_ratio=0.5) as ledger:
        allowance = LedgerAllowance(ledger, on_soft=lambda warning: heard.append(warning.spent))
        for _ in range(2):
            allowance.settle(reserved(allowance, call("0.3")), tokens=1, usd=Decimal("0.3"))
        allowance.flush()
        allowance.flush()
    assert heard == ["0.6 USD"]


@pytest.mark.case("G-074", "K8-13")
def test_what_was_cancelled_goes_back_and_what_may_be_billed_is_charged() -> None:
    with made(max_cost_usd=1) as ledger:
        allowance = LedgerAllowance(ledger)
        for _ in range(5):
            allowance.release(reserved(allowance, call("0.9")))
        assert allowance.totals() == Totals()
        allowance.settle(reserved(allowance, call("0.9")), tokens=None, usd=None)
        assert allowance.drawn.usd == Decimal("0.9")
        assert refused(allowance, call("0.2")).final


def test_a_reservation_is_closed_once() -> None:
    with made() as ledger:
        allowance = LedgerAllowance(ledger)
        held = reserved(allowance, call("0.1"))
        allowance.settle(held, tokens=1, usd=Decimal(0))
        with pytest.raises(ValidationError, match="once"):
            allowance.release(held)
        with pytest.raises(ValidationError, match="once"):
            allowance.settle(held, tokens=1, usd=None)


def test_calls_in_flight_take_turns_as_well() -> None:
    with made(config=Config(limits={"max_turns": 3})) as ledger:
        allowance = LedgerAllowance(ledger)
        assert ledger.admit("turn") is None
        held = [reserved(allowance, call("0.1")) for _ in range(2)]
        assert ledger.admit("turn") is not None
        full = refused(allowance, call("0.1"))
        assert isinstance(full.halted, OverBudget)
        assert (full.halted.rule, full.final) == ("limits.maxTurns", False)
        for one in held:
            allowance.settle(one, tokens=1, usd=Decimal("0.1"))
        assert refused(allowance, call("0.1")).final


@pytest.mark.case("G-075")
def test_a_call_without_a_price_does_not_leave_where_that_is_asked_for() -> None:
    with made(max_cost_usd=1, fail_closed_on_unpriced=True) as ledger:
        full = refused(LedgerAllowance(ledger), call(None))
        assert full.final
        assert isinstance(full.halted, OverBudget)
        assert full.halted.rule == UNPRICED


@pytest.mark.case("G-075")
def test_calls_without_a_price_go_one_at_a_time_over_the_whole_family() -> None:
    clock = VirtualClock()
    with made(max_cost_usd=1, clock=clock) as ledger:
        mine, other = LedgerAllowance(ledger), LedgerAllowance(ledger)
        held = reserved(mine, call(None))
        assert refused(mine, call(None)).final is False
        elsewhere = refused(other, call(None))
        assert (elsewhere.final, elsewhere.again) == (False, 0.05)
        reserved(mine, call("0.1"))  # one with a price may go beside it
        assert mine.settle(held, tokens=5, usd=Decimal("0.2")) is False
        clock.advance(0.05)
        other.settle(reserved(other, call(None)), tokens=5, usd=None)
        assert ledger.totals().unpriced
        reserved(mine, call(None))


def test_calls_without_a_price_go_as_they_like_where_no_bound_of_usd_was_asked_for() -> None:
    with made() as ledger:
        allowance = LedgerAllowance(ledger)
        held = [reserved(allowance, call(None)) for _ in range(10)]
        for one in held:
            allowance.settle(one, tokens=1, usd=None)
        assert allowance.totals() == Totals(calls=10, turns=10, tokens=10, unpriced=True)


@pytest.mark.anyio
async def test_a_call_over_whose_bound_a_person_ended_the_run_says_so() -> None:
    async def appeal(halted: Halted, estimate: Estimate) -> bool:
        reserved(allowance, call("0.1"))  # for which there is room meanwhile
        ledger.terminate("enough")
        return False

    with made(max_cost_usd=1) as ledger:
        allowance = LedgerAllowance(ledger, appeal=appeal)
        in_flight = reserved(allowance, call("0.4"))
        full = refused(allowance, call("1.5"))
        assert await allowance.appeal(full.halted, call("1.5"))
        allowance.release(in_flight)
        for usd in ("0.1", "1.5"):  # whatever the block still holds
            ended = refused(allowance, call(usd))
            assert ended.final
            assert isinstance(ended.halted, OverBudget)
            assert ended.halted.rule == "gate.terminated"
            assert "--budget" not in (ended.halted.hint or "")
            assert not await allowance.appeal(ended.halted, call(usd))


@pytest.mark.anyio
async def test_who_may_give_more_is_asked_unless_the_end_is_final() -> None:
    asked: list[Halted] = []

    async def appeal(halted: Halted, estimate: Estimate) -> bool:
        asked.append(halted)
        ledger.top_up("usd", 2)
        return True

    with made(max_cost_usd=1) as ledger:
        allowance = LedgerAllowance(ledger, appeal=appeal)
        full = refused(allowance, call("1.5"))
        assert await allowance.appeal(full.halted, call("1.5"))
        reserved(allowance, call("1.5"))
        ledger.terminate("enough")
        full = refused(allowance, call("1.5"))
        assert not await allowance.appeal(full.halted, call("1.5"))
        broken = BudgetUnavailable("gone", where="x", hint="y")
        assert not await allowance.appeal(broken, call("1.5"))
    assert len(asked) == 1


@pytest.mark.case("G-076")
def test_of_two_bounds_the_tighter_holds_unless_a_person_set_that_of_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger"
    made(path, max_cost_usd=100).close()
    with made(path, max_cost_usd=5) as ledger:
        assert ledger.caps()["usd"] == 5
    with made(path, max_cost_usd=500) as ledger:
        assert ledger.caps()["usd"] == 100
        assert ledger.top_up(USD, 200) == 100
    with made(path, max_cost_usd=5) as ledger:
        assert ledger.caps()["usd"] == 200
        assert ledger.top_up("usd", 1) == 200
        assert ledger.caps()["usd"] == 1


def test_a_bound_of_the_run_and_one_of_the_gate_are_both_kept() -> None:
    run = Caps(usd=Decimal(3), tokens=100, calls=7)
    with made(caps=run, max_cost_usd=5, max_tokens=50) as ledger:
        assert ledger.caps() == {"usd": 3, "tokens": 50, "calls": 7}
    with made(max_cost_usd=50) as ledger:  # nobody asked for the ten USD of a run
        assert ledger.caps() == {"usd": 50, "tokens": 200_000_000, "calls": 100_000}


@pytest.mark.parametrize("cap", [float("nan"), float("inf"), -1, "10", None, True])
def test_a_bound_is_raised_to_a_number_or_not_at_all(cap: object) -> None:
    with made(max_cost_usd=5) as ledger:
        with pytest.raises(ValidationError, match="no bound of usd"):
            ledger.top_up("usd", cap)
        with pytest.raises(ValidationError, match="not a bound"):
            ledger.top_up("limits.maxTurns", 5)
        assert ledger.caps()["usd"] == 5


def test_a_person_may_raise_the_bound_of_a_resource() -> None:
    with made(resources={"writes": 1}) as ledger:
        ledger.count("writes")
        assert ledger.halts() is not None
        assert ledger.top_up("budget.resource.writes", 2) == 1
        assert ledger.halts() is None
        assert ledger.totals().caps == {"resource.writes": 2}


@pytest.mark.case("G-025")
def test_what_a_person_allows_raises_the_bound_by_what_it_used_and_the_next_halts_again() -> None:
    with made(max_cost_usd=0.8) as ledger:
        allowance = LedgerAllowance(ledger)
        ledger.charge(charge("0.8"))
        assert allowance.halts() is not None
        held = allowance.exempt(call("0.5"))
        assert ledger.caps()["usd"] == Decimal("1.3")
        assert refused(allowance, call("0.1")).final is False  # it is for this action alone
        assert allowance.settle(held, tokens=1, usd=Decimal("0.2")) is False
        assert ledger.caps()["usd"] == ledger.totals().usd == 1
        assert allowance.halts() is not None
        assert refused(allowance, call("0.1")).final


def test_an_allowed_action_that_did_not_happen_leaves_the_bound_as_it_was() -> None:
    with made(max_cost_usd=0.8) as ledger:
        allowance = LedgerAllowance(ledger)
        allowance.release(allowance.exempt(call("0.5")))
        allowance.exempt_next(call("0.4"))
        allowance.close()
        assert ledger.caps()["usd"] == Decimal("0.8")


def test_a_call_that_waits_passes_once_somebody_allowed_it() -> None:
    with made(max_cost_usd=0.8) as ledger:
        allowance = LedgerAllowance(ledger)
        refused(allowance, call("0.9"))
        allowance.exempt_next(call("0.9"))
        refused(allowance, call("0.85"))  # another call
        held = reserved(allowance, call("0.9"))
        refused(allowance, call("0.9"))
        allowance.settle(held, tokens=1, usd=Decimal("0.9"))
        assert ledger.totals().usd == Decimal("0.9")
        assert ledger.caps()["usd"] == Decimal("1.7")


def test_an_overrun_is_charged_told_and_halts_at_the_bound() -> None:
    with made(max_cost_usd=1) as ledger:
        allowance = LedgerAllowance(ledger)
        held = reserved(allowance, call("0.5"))
        assert allowance.settle(held, tokens=10, usd=Decimal("1.2"))
        assert ledger.totals().usd == Decimal("1.2")  # at once, for the whole family
        full = refused(allowance, call("0", tokens=1))
        assert full.final
        assert "1.2 USD of 1 USD" in str(full.halted)


def test_at_a_bound_that_is_reached_exactly_what_costs_nothing_still_passes() -> None:
    with made(max_cost_usd=1) as ledger:
        allowance = LedgerAllowance(ledger)
        allowance.settle(reserved(allowance, call("1")), tokens=1, usd=Decimal(1))
        assert allowance.halts() is not None
        assert refused(allowance, call("0.000000001")).final
        reserved(allowance, call("0"))


def test_part_of_an_allowance_is_one_reservation_for_many_calls() -> None:
    with made(max_cost_usd=1, max_calls=10) as ledger:
        allowance = LedgerAllowance(ledger)
        part = reserved(allowance, Estimate(calls=0, tokens=0, usd=None))
        assert allowance.grow(part, call("0.6", calls=6)) is None
        assert allowance.grow(part, call("0.5")) is not None
        assert allowance.draw(part, Drawn(calls=2, tokens=4, usd=Decimal("0.2"))) is False
        assert part.estimate == Estimate(calls=4, tokens=6, usd=Decimal("0.4"))
        assert allowance.drawn == Drawn(calls=2, tokens=4, usd=Decimal("0.2"))
        assert allowance.draw(part, Drawn(usd=Decimal("0.5")))  # an overrun
        allowance.release(part)
        with pytest.raises(ValidationError, match="once"):
            allowance.draw(part, Drawn())
        assert allowance.drawn.usd == Decimal("0.7")
        assert allowance.caps == Caps(calls=10, usd=Decimal(1))
        reserved(allowance, call("0.3"))


def test_termination_is_final_for_every_process() -> None:
    with made() as ledger:
        first, second = LedgerAllowance(ledger), LedgerAllowance(ledger)
        held = reserved(first, call("0.1"))
        ledger.terminate("the operator said so")
        ledger.terminate("again")
        assert ledger.terminated == "the operator said so"
        halt = second.halts(skip={"budget.maxCostUsd"})
        assert halt is not None
        assert halt.rule == "gate.terminated"
        assert refused(second, call("0.1")).final
        first.settle(held, tokens=1, usd=Decimal("0.1"))  # what was in flight is charged


@pytest.mark.case("K8-16")
class TestDefinitions:
    """What the docstring of the ledger's package says."""

    def test_pauses_count_as_wall_time(self) -> None:
        clock = VirtualClock()
        with made(clock=clock) as ledger:
            allowance = LedgerAllowance(ledger, seconds=100)
            clock.advance(1_000)
            assert allowance.seconds_left() == 100
            allowance.release(reserved(allowance, call("0.1")))
            clock.advance(60)
            assert allowance.seconds_left() == 40
            clock.advance(41)
            full = refused(allowance, call("0.1"))
            assert (full.final, full.halted.bound) == (True, "seconds")

    def test_each_try_that_may_be_billed_is_charged_and_they_are_one_call(self) -> None:
        with made() as ledger:
            allowance = LedgerAllowance(ledger)
            allowance.settle(reserved(allowance, call("0.1", tokens=10)), tokens=None, usd=None)
            again = reserved(allowance, call("0.1", tokens=10, calls=0))
            allowance.settle(again, tokens=4, usd=Decimal("0.05"))
            assert allowance.totals() == Totals(
                calls=1, turns=1, tokens=14, usd=Decimal("0.15"), priced=1, unpriced=False
            )

    def test_a_failure_that_was_not_billed_is_a_call_and_says_nothing_of_its_price(self) -> None:
        with made() as ledger:
            allowance = LedgerAllowance(ledger)
            allowance.settle(reserved(allowance, call(None)), tokens=0, usd=Decimal(0))
            assert allowance.totals() == Totals(calls=1, turns=1, unpriced=None)

    def test_calls_in_flight_at_a_halt_may_end_and_are_charged(self) -> None:
        with made(max_cost_usd=0.4) as ledger:
            allowance = LedgerAllowance(ledger)
            held = [reserved(allowance, call("0.1")) for _ in range(4)]
            assert refused(allowance, call("0.1")).final is False
            for one in held:
                allowance.settle(one, tokens=1, usd=Decimal("0.1"))
            assert refused(allowance, call("0.1")).final
            assert ledger.totals().usd == Decimal("0.4")

    def test_another_process_sends_at_most_its_block_after_a_halt(self) -> None:
        with made() as ledger:
            allowance = LedgerAllowance(ledger)
            allowance.release(reserved(allowance, call("0.0001")))
            ledger.terminate("now")
            assert sum(not isinstance(_tried(allowance, "0.0001"), Full) for _ in range(100)) == 64


@pytest.mark.case("G-045")
def test_what_is_spent_rounds_up_and_what_may_be_spent_rounds_down() -> None:
    with made(max_cost_usd="0.0000000019") as ledger:
        ledger.charge(charge("0.0000000001"))
        assert ledger.totals().usd == ledger.caps()["usd"] == Decimal("1e-9")


@pytest.mark.case("K8-14")
def test_a_batch_of_fifty_under_a_bound_for_three_stops_after_three() -> None:
    with made(max_cost_usd=0.3) as ledger:
        allowance = LedgerAllowance(ledger)
        done = 0
        for _ in range(50):
            got = _tried(allowance, "0.1")
            if isinstance(got, Reservation):
                allowance.settle(got, tokens=1, usd=Decimal("0.1"))
                done += 1
        assert done == 3


def _tried(allowance: LedgerAllowance, usd: str) -> Reservation | Full:
    return allowance.reserve(call(usd))
