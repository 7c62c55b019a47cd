"""A unit's lease on the worker's side: renewed in time, and no bound on waits."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import anyio
import pytest

from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.endpoint.buckets import Limits
from executors.errors import ContextExceeded, Halted
from executors.gate.allowance import Caps, CapsAllowance, Drawn, Estimate, Full, Reservation
from executors.leases import Lease
from rlm.testing import ScriptedModel
from rlm.units.lease import LeaseKeeper, UnitAllowance, pack_halted
from rlm.units.outbox import Outbox
from rlm.units.values import LeaseAsk

pytestmark = pytest.mark.anyio

CALL = Estimate(tokens=10, usd=None)


class Book:
    """The coordinator's end of a line that speaks of leases alone."""

    def __init__(self, clock: VirtualClock, *answers: Lease | Halted) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.asked: list[LeaseAsk] = []
        self.drained = 0

    async def ask(self, what: str, body: bytes = b"") -> bytes:
        if what == "drained":
            self.drained += 1
            return b""
        self.asked.append(LeaseAsk.of_bytes(body))
        answer = self._answers.pop(0)
        return pack_halted(answer) if isinstance(answer, Halted) else answer.to_json()

    def on_word(self, hear: Callable[[str, bytes], None]) -> None:
        pass


def lease(clock: VirtualClock, *, slots: int = 2, calls: int = 1) -> Lease:
    expires = clock.now() + timedelta(seconds=30)
    return Lease(
        worker="seat 1", slots=slots, rpm=None, tpm=None, calls=calls, tokens=1_000,
        usd=Decimal(1), expires=expires,
    )  # fmt: skip


def keeper(clock: VirtualClock, book: Book, first: Lease) -> tuple[UnitAllowance, LeaseKeeper]:
    made: list[LeaseKeeper] = []

    def short(need: Estimate) -> None:
        made[0].short(need)

    allowance = UnitAllowance(first, clock, on_short=short)
    calls = Calls(allowance=allowance, emit=lambda _: None, clock=clock)
    model = ScriptedModel("x")
    made.append(LeaseKeeper(book, allowance, calls, model, lease=first, outbox=Outbox(book)))
    return allowance, made[0]


async def test_a_call_without_room_has_the_lease_renewed_at_once() -> None:
    clock = VirtualClock()
    book = Book(clock, lease(clock, calls=5), Halted(bound="calls", scope="run", limit="6"))
    allowance, keeping = keeper(clock, book, lease(clock))
    await keeping.begin()
    got = allowance.reserve(CALL)
    assert isinstance(got, Reservation)
    allowance.settle(got, tokens=7, usd=None)
    full = allowance.reserve(CALL)
    assert isinstance(full, Full)
    assert not full.final
    async with anyio.create_task_group() as group:
        group.start_soon(keeping.keep)
        while len(book.asked) < 1:
            await anyio.sleep(0.001)
        assert isinstance(allowance.reserve(CALL), Reservation)
        group.cancel_scope.cancel()
    assert book.asked[0] == LeaseAsk(
        drawn=Drawn(calls=1, tokens=7), need=CALL, refused=False, idle=True
    )


async def test_a_worker_begins_once_it_has_a_slot() -> None:
    clock = VirtualClock()
    book = Book(clock, lease(clock, slots=0), lease(clock, slots=3))
    _, keeping = keeper(clock, book, lease(clock, slots=0))
    await keeping.begin()
    assert keeping.lease.slots == 3
    assert len(book.asked) == 2


async def test_the_end_of_a_lease_bounds_no_wait_and_lets_no_call_begin() -> None:
    clock = VirtualClock()
    allowance, _ = keeper(clock, Book(clock), lease(clock))
    assert allowance.seconds_left() > 3_600
    assert allowance.lasts == 30
    clock.advance(31)
    full = allowance.reserve(CALL)
    assert isinstance(full, Full)
    assert full.halted.bound == "lease"
    assert allowance.seconds_left() == 0


def test_a_call_is_held_against_the_whole_limit_and_not_against_a_workers_share() -> None:
    calls = Calls(
        allowance=CapsAllowance(Caps(), VirtualClock()),
        emit=lambda _: None,
        limits=Limits(tpm=100.0),
    )
    endpoint = calls.endpoint(ScriptedModel("x"))
    endpoint.most_tokens = 1_000.0
    endpoint.check(500)
    with pytest.raises(ContextExceeded, match="limit of 1,000 tokens"):
        endpoint.check(1_500)
