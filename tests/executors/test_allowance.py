"""What a run may still spend: never over a cap, whatever the interleaving."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from executors.clock import VirtualClock
from executors.errors import ValidationError
from executors.gate.allowance import Caps, CapsAllowance, Estimate, Full, Reservation


def allowance(clock: VirtualClock | None = None, **caps: object) -> CapsAllowance:
    return CapsAllowance(Caps(**caps), clock or VirtualClock())  # type: ignore[arg-type]


def worst(tokens: int = 10, usd: str | None = None, calls: int = 1) -> Estimate:
    return Estimate(tokens=tokens, usd=None if usd is None else Decimal(usd), calls=calls)


def reserved(it: CapsAllowance, estimate: Estimate) -> Reservation:
    got = it.reserve(estimate)
    assert isinstance(got, Reservation)
    return got


def refused(it: CapsAllowance, estimate: Estimate) -> Full:
    got = it.reserve(estimate)
    assert isinstance(got, Full)
    return got


@pytest.mark.case("K8-10", "K8-11")
@pytest.mark.parametrize(
    ("caps", "estimate"),
    [
        ({"tokens": 70}, worst(10)),
        ({"calls": 7}, worst(1)),
        ({"usd": Decimal("0.7")}, worst(1, "0.1")),
    ],
)
def test_sixteen_workers_at_a_barrier_share_a_cap_for_seven(
    caps: dict[str, Any], estimate: Estimate
) -> None:
    it, barrier = CapsAllowance(Caps(**caps), VirtualClock()), Barrier(16)

    def worker() -> Reservation | Full:
        barrier.wait()
        return it.reserve(estimate)

    with ThreadPoolExecutor(16) as pool:
        got = [future.result() for future in [pool.submit(worker) for _ in range(16)]]
    assert sum(isinstance(one, Reservation) for one in got) == 7
    assert not any(one.final for one in got if isinstance(one, Full))


def test_what_is_settled_for_less_makes_room_for_others() -> None:
    it = allowance(tokens=100)
    first = reserved(it, worst(80))
    assert not refused(it, worst(30)).final
    it.settle(first, tokens=20, usd=None)
    reserved(it, worst(80))


def test_a_refusal_is_final_when_nothing_in_flight_could_make_room() -> None:
    it = allowance(tokens=100)
    it.settle(reserved(it, worst(80)), tokens=80, usd=None)
    full = refused(it, worst(30))
    assert full.final
    assert str(full.halted) == (
        "halted: the tokens bound of run (100) is reached\n"
        "raise it with max_tokens=… (--max-tokens); what was answered so far is kept"
    )


@pytest.mark.case("K8-8")
def test_unknown_usage_is_charged_as_it_was_reserved() -> None:
    it = allowance(tokens=100, usd=Decimal(1))
    assert it.settle(reserved(it, worst(60, "0.6")), tokens=None, usd=None) is False
    assert refused(it, worst(50)).halted.bound == "tokens"
    assert refused(it, worst(10, "0.5")).halted.bound == "usd"


@pytest.mark.case("K8-13")
def test_a_released_reservation_is_whole_again() -> None:
    it = allowance(calls=1, tokens=10, usd=Decimal(1))
    for _ in range(3):
        it.release(reserved(it, worst(10, "1")))
    reserved(it, worst(10, "1"))


@pytest.mark.case("K8-13")
@pytest.mark.parametrize("usd", [Decimal("NaN"), Decimal(-1), Decimal("Infinity"), 0.1])
def test_money_that_is_none_is_refused_and_stays_held(usd: Decimal) -> None:
    it = allowance(usd=Decimal(1))
    with pytest.raises(ValidationError, match="is no amount"):
        it.reserve(Estimate(tokens=1, usd=usd))
    held = reserved(it, worst(1, "0.9"))
    with pytest.raises(ValidationError, match="is no amount"):
        it.settle(held, tokens=1, usd=usd)
    assert held.open
    assert refused(it, worst(1, "0.2")).halted.bound == "usd"


@pytest.mark.case("K8-13")
def test_a_negative_count_is_refused() -> None:
    it = allowance()
    with pytest.raises(ValidationError, match="tokens=-5"):
        it.settle(reserved(it, worst(10)), tokens=-5, usd=None)


def test_a_reservation_ends_once() -> None:
    it = allowance()
    once = reserved(it, worst())
    it.settle(once, tokens=1, usd=None)
    with pytest.raises(ValidationError, match="once, not twice"):
        it.release(once)


@pytest.mark.case("K8-16")
def test_the_wall_clock_runs_from_the_first_reservation_through_every_pause() -> None:
    clock = VirtualClock()
    it = allowance(clock, seconds=60.0)
    clock.advance(1_000.0)
    it.release(reserved(it, worst()))
    clock.advance(59.0)
    in_flight = reserved(it, worst())
    clock.advance(1.0)
    full = refused(it, worst())
    assert (full.halted.bound, full.final) == ("seconds", True)
    it.settle(in_flight, tokens=5, usd=None)


@pytest.mark.case("K8-16")
def test_a_further_try_of_a_call_is_no_further_call_but_further_tokens() -> None:
    it = allowance(calls=1, tokens=25)
    it.settle(reserved(it, worst(10)), tokens=None, usd=None)
    it.settle(reserved(it, worst(10, calls=0)), tokens=10, usd=None)
    assert refused(it, worst(6, calls=0)).halted.bound == "tokens"
    assert refused(it, worst(1)).halted.bound == "calls"


def test_an_overrun_is_said_and_halts_once_a_cap_is_passed() -> None:
    it = allowance(tokens=100)
    assert it.settle(reserved(it, worst(10)), tokens=15, usd=None) is True
    other = reserved(it, worst(10))
    assert it.settle(reserved(it, worst(10)), tokens=120, usd=None) is True
    it.settle(other, tokens=0, usd=None)
    assert refused(it, worst(0)).halted.bound == "tokens"


@pytest.mark.case("K8-5")
def test_an_unknown_price_draws_nothing_on_the_money_bound() -> None:
    it = allowance(usd=Decimal(0))
    it.settle(reserved(it, worst(10, None)), tokens=10, usd=None)
    assert refused(it, worst(10, "0.01")).halted.bound == "usd"


@pytest.mark.parametrize(
    "caps",
    [
        {"calls": -1},
        {"tokens": float("nan")},
        {"usd": Decimal("Infinity")},
        {"seconds": float("inf")},
        {"tokens": "many"},
        {"calls": True},
        {"usd": None},
    ],
)
def test_a_cap_that_bounds_nothing_is_refused(caps: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="is not a bound"):
        Caps(**caps)


class NeverOver(RuleBasedStateMachine):
    """Any order of reserving, settling and releasing, within what was reserved."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.it = allowance(calls=12, tokens=100, usd=Decimal(1))
        self.tokens = 0
        self.usd = Decimal(0)
        self.calls = 0

    @rule(target=held, tokens=st.integers(0, 60), cents=st.one_of(st.none(), st.integers(0, 60)))
    def reserve(self, tokens: int, cents: int | None) -> Reservation | Full:
        usd = None if cents is None else Decimal(cents) / 100
        return self.it.reserve(Estimate(tokens=tokens, usd=usd))

    @rule(one=consumes(held), share=st.floats(0, 1), known=st.booleans())
    def settle(self, one: Reservation | Full, share: float, known: bool) -> None:
        if isinstance(one, Full):
            return
        tokens = int(one.estimate.tokens * share) if known else None
        usd = None if not known or one.estimate.usd is None else one.estimate.usd / 2
        self.it.settle(one, tokens=tokens, usd=usd)
        self.calls += 1
        self.tokens += one.estimate.tokens if tokens is None else tokens
        self.usd += (one.estimate.usd or Decimal(0)) if usd is None else usd

    @rule(one=consumes(held))
    def release(self, one: Reservation | Full) -> None:
        if isinstance(one, Reservation):
            self.it.release(one)

    @invariant()
    def nothing_is_over(self) -> None:
        assert self.calls <= 12
        assert self.tokens <= 100
        assert self.usd <= 1
        assert (self.it._calls, self.it._tokens, self.it._usd) == (
            self.calls,
            self.tokens,
            self.usd,
        )
        assert self.it._held_calls >= 0
        assert self.it._held_tokens >= 0
        assert self.it._held_usd >= 0


TestNeverOver = NeverOver.TestCase


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_a_refusal_that_is_not_final_always_ends(sizes: list[int]) -> None:
    """Once all that is in flight has ended, every refusal is final or becomes a reservation."""
    it = allowance(tokens=100)
    held = [got for size in sizes if isinstance(got := it.reserve(worst(size)), Reservation)]
    for one in held:
        it.settle(one, tokens=None, usd=None)
    for size in sizes:
        got = it.reserve(worst(size))
        assert isinstance(got, Reservation) or got.final
        if isinstance(got, Reservation):
            it.release(got)
