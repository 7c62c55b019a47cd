"""Leases: whatever workers do, their shares and slices stay within what the coordinator owns."""

from contextlib import suppress
from decimal import Decimal

import anyio
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.endpoint.buckets import Limits
from executors.errors import Halted, ValidationError
from executors.gate.allowance import Caps, CapsAllowance, Drawn, Estimate, Full, Reservation
from executors.lease_allowance import LeaseAllowance
from executors.leases import Lease, LeaseBook
from executors.models.fakes.scripted import ScriptedModel
from tests.executors.asks import ask
from tests.executors.benches import NODE, reply, reserve_of

pytestmark = pytest.mark.anyio

NOTHING = Drawn()
BLOCK = Estimate(calls=10, tokens=1_000, usd=Decimal("0.1"))


class Desk:
    """A book with everything in view."""

    def __init__(self, *, slots: int = 16, limits: Limits | None = None, **caps: object) -> None:
        self.clock = VirtualClock()
        self.allowance = CapsAllowance(Caps(**caps), self.clock)  # type: ignore[arg-type]
        self.book = LeaseBook(
            slots=slots, limits=limits, allowance=self.allowance, clock=self.clock, block=BLOCK
        )

    def join(self, worker: str) -> Lease:
        got = self.book.join(worker)
        assert isinstance(got, Lease)
        return got

    def renew(self, worker: str, drawn: Drawn = NOTHING, *, refused: bool = False) -> Lease:
        got = self.book.renew(worker, drawn, refused=refused)
        assert isinstance(got, Lease)
        return got

    def held(self) -> tuple[int, int, Decimal]:
        it = self.allowance
        return it._held_calls, it._held_tokens, it._held_usd


def slots_of(*leases: Lease) -> list[int]:
    return [lease.slots for lease in leases]


# ---------------------------------------------------------------- values


async def test_a_lease_comes_back_from_its_json_as_it_was() -> None:
    lease = Desk(limits=Limits(rpm=100 / 3)).join("a")
    assert Lease.from_json(lease.to_json()) == lease
    assert isinstance(lease.usd, Decimal)


async def test_a_lease_without_known_limits_names_none() -> None:
    assert Desk().join("a").limits is None
    assert Desk(limits=Limits(tpm=900.0)).join("a").limits == Limits(tpm=900.0)


# ---------------------------------------------------------------- shares


async def test_who_joins_gets_what_is_free_and_the_rest_when_the_others_renew() -> None:
    desk = Desk(limits=Limits(rpm=600.0))
    first, second = desk.join("a"), desk.join("b")
    assert (first.slots, first.rpm) == (16, 600.0)
    assert (second.slots, second.rpm) == (0, 0.0)
    assert (desk.renew("a").slots, desk.renew("b").slots) == (8, 8)
    assert {lease.rpm for lease in desk.book.live} == {300.0}


async def test_a_share_of_a_worker_that_left_goes_to_the_others() -> None:
    desk = Desk()
    for name in "abc":
        desk.join(name)
    for name in "abc":
        desk.renew(name)
    desk.book.leave("b", NOTHING)
    assert slots_of(desk.renew("a"), desk.renew("c")) == [8, 8]


@pytest.mark.case("S24")
async def test_slots_of_a_killed_worker_come_back_when_its_lease_lapses() -> None:
    """It held 8 of 16 and says nothing any more: after its time the other has all of them."""
    desk = Desk()
    desk.join("lives")
    desk.join("dies")
    assert slots_of(desk.renew("lives"), desk.renew("dies")) == [8, 8]
    desk.clock.advance(20.0)
    assert desk.renew("lives").slots == 8
    desk.clock.advance(20.0)
    assert desk.renew("lives").slots == 16
    assert list(desk.book.lapsed()) == ["dies"]


async def test_a_worker_that_meets_a_limit_makes_all_shares_smaller_for_a_while() -> None:
    desk = Desk(limits=Limits(rpm=600.0))
    desk.join("a")
    assert desk.renew("a", refused=True).rpm == pytest.approx(540.0)
    assert desk.renew("a", refused=True).rpm == pytest.approx(540.0)  # one and the same refusal
    rates: list[float | None] = []
    for _ in range(4):
        desk.clock.advance(30.0)
        rates.append(desk.renew("a").rpm)
    assert rates[-1] == pytest.approx(600.0)


# ---------------------------------------------------------------- slices


async def test_a_slice_is_set_aside_charged_as_it_is_reported_and_given_back_at_the_end() -> None:
    desk = Desk(calls=100, tokens=100_000, usd=Decimal(10))
    desk.join("a")
    assert desk.held() == (10, 1_000, Decimal("0.1"))
    lease = desk.renew("a", Drawn(calls=4, tokens=300, usd=Decimal("0.02")))
    assert (lease.calls, lease.tokens, lease.usd) == (10, 1_000, Decimal("0.1"))
    assert desk.allowance.drawn == Drawn(calls=4, tokens=300, usd=Decimal("0.02"))
    desk.book.leave("a", Drawn(calls=1, tokens=10))
    assert desk.held() == (0, 0, Decimal(0))
    assert desk.allowance.drawn == Drawn(calls=5, tokens=310, usd=Decimal("0.02"))


async def test_where_little_is_left_slices_are_small_and_the_last_call_is_not_wasted() -> None:
    desk = Desk(calls=11)
    desk.join("a")
    assert desk.join("b").calls == 1
    full = desk.book.join("c")
    assert isinstance(full, Full)
    assert not full.final
    desk.book.leave("a", Drawn(calls=3))
    assert desk.join("c").calls == 5


async def test_an_idle_slice_goes_to_whoever_can_use_it() -> None:
    desk, need = Desk(tokens=1_500), Estimate(calls=1, tokens=900, usd=None)
    desk.join("one")
    desk.join("other")  # 1,000 and what is left of 1,500
    desk.book.renew("one", Drawn(calls=1, tokens=300))
    waiting = desk.book.renew("other", NOTHING, need=need, idle=True)
    assert isinstance(waiting, Lease)
    assert waiting.tokens == 0
    got = desk.book.renew("one", NOTHING, need=need, idle=True)
    assert isinstance(got, Lease)
    assert got.tokens >= 900


async def test_what_a_dead_worker_may_have_spent_stays_set_aside_until_that_is_known() -> None:
    desk = Desk(calls=10)
    desk.join("dies")
    desk.clock.advance(36.0)
    assert desk.book.lapsed() == {"dies": Drawn(calls=10, tokens=1_000, usd=Decimal("0.1"))}
    assert isinstance(desk.book.join("next"), Full)
    desk.book.leave("dies", Drawn(calls=7))
    assert (desk.join("next").calls, desk.book.lapsed()) == (2, {})


async def test_a_lease_that_lapsed_is_not_renewed_and_none_is_given_back_twice() -> None:
    desk = Desk()
    desk.join("a")
    with pytest.raises(ValidationError, match="has a lease already"):
        desk.book.join("a")
    desk.clock.advance(36.0)
    with pytest.raises(ValidationError, match="holds no lease"):
        desk.book.renew("a", NOTHING)
    desk.book.leave("a", NOTHING)
    with pytest.raises(ValidationError, match="holds no lease"):
        desk.book.leave("a", NOTHING)


async def test_at_the_deadline_no_lease_is_renewed_and_what_was_in_flight_is_still_charged() -> (
    None
):
    desk = Desk(seconds=20.0)
    desk.join("a")
    desk.clock.advance(20.0)
    full = desk.book.renew("a", Drawn(calls=1))
    assert isinstance(full, Full)
    assert (full.final, full.halted.bound) == (True, "seconds")
    desk.book.leave("a", Drawn(calls=2, tokens=30))
    assert desk.allowance.drawn == Drawn(calls=3, tokens=30)


# ---------------------------------------------------------------- the worker's side


@pytest.mark.case("S32", "K8-17")
async def test_calls_of_two_workers_stay_within_one_bound() -> None:
    """Each asks through its own pipeline; the slices are refilled as they report."""
    desk, bound = Desk(calls=25), reserve_of(ask("item 00"))
    assert bound * 10 <= 1_000
    answered: list[str] = []

    async def work(name: str) -> None:
        mine = LeaseAllowance(desk.join(name), desk.clock)
        calls = Calls(allowance=mine, emit=lambda _: None, clock=desk.clock, concurrency=4)
        model = ScriptedModel(lambda _: reply(5), latency=0.1, clock=desk.clock)

        async def renewing() -> None:
            while True:
                await desk.clock.sleep(1.0)
                got = desk.book.renew(name, mine.report())
                mine.end(got.halted) if isinstance(got, Full) else mine.extend(got)
                calls.recheck()

        async def one(n: int) -> None:
            with suppress(Halted):
                await calls.ask(model, ask(f"{name} {n:02}"), role="judge", node=NODE)
                answered.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(renewing)
            async with anyio.create_task_group() as asking:
                for n in range(40):
                    asking.start_soon(one, n)
            group.cancel_scope.cancel()
        desk.book.leave(name, mine.report())

    async with anyio.create_task_group() as group:
        group.start_soon(work, "a")
        group.start_soon(work, "b")
    assert len(answered) == desk.allowance.drawn.calls == 25
    assert desk.held() == (0, 0, Decimal(0))


async def test_a_worker_whose_coordinator_is_gone_stops_when_its_lease_ends() -> None:
    desk = Desk()
    mine = LeaseAllowance(desk.join("a"), desk.clock)
    assert mine.seconds_left() == 30.0
    desk.clock.advance(30.0)
    full = mine.reserve(Estimate(tokens=1, usd=None))
    assert isinstance(full, Full)
    assert (full.final, full.halted.bound, full.halted.scope) == (True, "lease", "the lease of a")


async def test_a_call_that_finds_no_room_asks_for_the_lease_to_be_renewed() -> None:
    desk, short = Desk(), list[Estimate]()
    mine = LeaseAllowance(desk.join("a"), desk.clock, on_short=short.append)
    need = Estimate(tokens=5_000, usd=None)
    full = mine.reserve(need)
    assert isinstance(full, Full)
    assert (full.final, short) == (False, [need])
    got = desk.book.renew("a", mine.report(), need=need)
    assert isinstance(got, Lease)
    mine.extend(got)
    assert isinstance(mine.reserve(need), Reservation)


# ---------------------------------------------------------------- whatever happens


class NeverOver(RuleBasedStateMachine):
    """Workers come, ask, report, renew, leave, die and are settled, in any order."""

    NAMES = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.caps = Caps(calls=40, tokens=4_000, usd=Decimal("0.5"))
        self.desk = Desk(
            slots=5,
            limits=Limits(rpm=100.0, tpm=7.0),
            calls=self.caps.calls,
            tokens=self.caps.tokens,
            usd=self.caps.usd,
        )
        self.serial = 0
        self.workers: dict[str, tuple[str, LeaseAllowance]] = {}
        self.spent = NOTHING

    @rule(name=NAMES)
    def joins(self, name: str) -> None:
        if name not in self.workers:
            self.serial += 1
            known = f"{name}{self.serial}"
            got = self.desk.book.join(known)
            if isinstance(got, Lease):
                self.workers[name] = known, LeaseAllowance(got, self.desk.clock)

    @rule(name=NAMES, tokens=st.integers(0, 400), used=st.integers(0, 400))
    def asks(self, name: str, tokens: int, used: int) -> None:
        if name in self.workers:
            mine = self.workers[name][1]
            got = mine.reserve(Estimate(tokens=tokens, usd=Decimal("0.03")))
            if isinstance(got, Reservation):
                actual = min(used, tokens)
                mine.settle(got, tokens=actual, usd=Decimal("0.01"))
                self.spent += Drawn(calls=1, tokens=actual, usd=Decimal("0.01"))

    @rule(name=NAMES, refused=st.booleans(), need=st.integers(0, 2_000))
    def renews(self, name: str, refused: bool, need: int) -> None:
        if name in self.workers:
            known, mine = self.workers[name]
            if known in self.desk.book.lapsed():
                self.desk.book.leave(known, mine.report())
                del self.workers[name]
                return
            wanted = Estimate(calls=1, tokens=need, usd=None)
            got = self.desk.book.renew(known, mine.report(), need=wanted, refused=refused)
            if isinstance(got, Lease):
                mine.extend(got)

    @rule(name=NAMES)
    def leaves(self, name: str) -> None:
        if name in self.workers:
            known, mine = self.workers.pop(name)
            self.desk.book.leave(known, mine.report())

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def dies(self, data: st.DataObject) -> None:
        """Nobody knows what it spent: all of its slice is charged in the end."""
        name = data.draw(st.sampled_from(sorted(self.workers)))
        del self.workers[name]

    @rule()
    def settles(self) -> None:
        alive = {known for known, _ in self.workers.values()}
        for known, most in self.desk.book.lapsed().items():
            if known not in alive:
                self.desk.book.leave(known, most)

    @rule(seconds=st.floats(0.0, 40.0))
    def time_passes(self, seconds: float) -> None:
        self.desk.clock.advance(seconds)

    @invariant()
    def shares_are_within_the_limits(self) -> None:
        live = self.desk.book.live
        assert sum(lease.slots for lease in live) <= 5
        assert sum(lease.rpm or 0.0 for lease in live) <= 100.0 * (1 + 1e-9)
        assert sum(lease.tpm or 0.0 for lease in live) <= 7.0 * (1 + 1e-9)

    @invariant()
    def slices_and_what_was_used_are_within_the_caps(self) -> None:
        drawn, (calls, tokens, usd) = self.desk.allowance.drawn, self.desk.held()
        assert drawn.calls + calls <= self.caps.calls
        assert drawn.tokens + tokens <= self.caps.tokens
        assert drawn.usd + usd <= self.caps.usd
        assert (calls >= 0, tokens >= 0, usd >= 0) == (True, True, True)

    @invariant()
    def what_was_really_spent_is_within_what_was_drawn_or_is_set_aside(self) -> None:
        drawn, (calls, tokens, usd) = self.desk.allowance.drawn, self.desk.held()
        assert self.spent.calls <= drawn.calls + calls
        assert self.spent.tokens <= drawn.tokens + tokens
        assert self.spent.usd <= drawn.usd + usd


TestNeverOver = NeverOver.TestCase
