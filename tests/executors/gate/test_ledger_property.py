"""Spend never passes the bound: over any interleaving of calls, crashes, retries, cancels, resumes.

A tree of depth 3 works on one budget: a root, two children, and a child of each. The server bills by
a price list, at the moment a request comes in, whatever becomes of who sent it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.gate.allowance import Drawn, Estimate, Reservation
from executors.gate.ledger import Ledger, LedgerAllowance
from tests.executors.gate.ledgers import made

CAP = Decimal(1)
WORST = [Decimal(price) for price in ("0.003", "0.02", "0.07", "0.11", "0.3", "0.9")]
"""What a call costs at most, by the price list."""
SHARES = [Decimal(share) for share in ("0", "0.1", "0.5", "1")]
"""What of it the server bills in the end."""
TREE = ("root", "root.0", "root.1", "root.0.0", "root.1.0")
OPS = ("send", "send", "send", "answer", "answer", "lose", "retry", "cancel", "kill", "resume")
RARE = ("wait", "rest", "share", "allow")


@dataclass
class Sent:
    """A request that the server has."""

    reservation: Reservation
    worst: Decimal
    actual: Decimal


@dataclass
class Process:
    """One node of the tree, over its lives."""

    allowance: LedgerAllowance | None
    journal: Drawn = field(default_factory=Drawn)
    """What it drew in all its lives, as it is written down when it is known."""
    in_flight: deque[Sent] = field(default_factory=deque[Sent])


class World:
    """The family, its server, and what the server billed."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.ledger: Ledger = made(clock=self.clock, max_cost_usd=CAP)
        self.processes = {name: Process(self._born(name)) for name in TREE}
        self.billed = self.charged = Decimal(0)

    def _born(self, name: str) -> LedgerAllowance:
        return LedgerAllowance(self.ledger, holder=name)

    def act(self, op: str, name: str, worst: Decimal, share: Decimal) -> None:
        process = self.processes[name]
        allowance = process.allowance
        if op == "wait":
            self.clock.advance(40)
        elif allowance is None:
            if op == "resume":
                self.resume(name)
        elif op == "send":
            self.send(process, allowance, worst, share)
        elif op == "cancel":
            got = allowance.reserve(_estimate(worst))
            if isinstance(got, Reservation):
                allowance.release(got)
        elif op == "allow":
            self.sent(process, allowance.exempt(_estimate(worst)), worst, share)
        elif op == "rest":
            allowance.close()
        elif op == "share":
            allowance.share()
        elif op == "kill":
            self.kill(process)
        elif process.in_flight and op in {"answer", "lose", "retry"}:
            self.end(process, allowance, op)

    def send(
        self,
        process: Process,
        allowance: LedgerAllowance,
        worst: Decimal,
        share: Decimal,
        calls: int = 1,
    ) -> None:
        got = allowance.reserve(_estimate(worst, calls))
        if isinstance(got, Reservation):
            self.sent(process, got, worst, share)

    def sent(
        self, process: Process, reservation: Reservation, worst: Decimal, share: Decimal
    ) -> None:
        self.billed += worst * share
        process.in_flight.append(Sent(reservation, worst, worst * share))

    def end(self, process: Process, allowance: LedgerAllowance, op: str) -> None:
        one = process.in_flight.popleft()
        known = op == "answer"
        usd = one.actual if known else None
        assert not allowance.settle(one.reservation, tokens=3 if known else None, usd=usd)
        self.book(process, one, one.actual if known else one.worst)
        if op == "retry":
            self.send(process, allowance, one.worst, Decimal(1), calls=0)

    def book(self, process: Process, one: Sent, usd: Decimal) -> None:
        calls = one.reservation.estimate.calls
        process.journal += Drawn(calls=calls, tokens=3, usd=usd)
        self.charged += usd

    def kill(self, process: Process) -> None:
        """It is gone with what it knew; what it had sent is lost, at its worst."""
        process.allowance = None
        while process.in_flight:
            one = process.in_flight.popleft()
            self.book(process, one, one.worst)

    def resume(self, name: str) -> None:
        process = self.processes[name]
        self.ledger.reconcile(name, process.journal)
        process.allowance = self._born(name)

    def finish(self) -> None:
        """Let all that is there end, and settle for who is gone."""
        for name, process in self.processes.items():
            if process.allowance is None:
                self.resume(name)
            assert process.allowance is not None
            while process.in_flight:
                self.end(process, process.allowance, "answer")
            process.allowance.close()


def _estimate(worst: Decimal, calls: int = 1) -> Estimate:
    return Estimate(calls=calls, tokens=10, usd=worst)


_ops = st.lists(
    st.tuples(
        st.sampled_from(OPS * 3 + RARE),
        st.sampled_from(TREE),
        st.sampled_from(WORST),
        st.sampled_from(SHARES),
    ),
    max_size=40,
)


@pytest.mark.case("G-073", "G-074", "K8-10", "K8-13")
@settings(max_examples=1_000)
@given(_ops)
def test_the_server_never_bills_more_than_the_bound(
    ops: list[tuple[str, str, Decimal, Decimal]],
) -> None:
    world = World()
    with world.ledger:
        for op in ops:
            world.act(*op)
            cap = world.ledger.caps()["usd"]
            assert cap is not None
            assert world.billed <= cap
            totals = world.ledger.totals()
            assert min(totals.calls, totals.tokens) >= 0 <= totals.usd
        world.finish()
        assert world.ledger.totals().usd == world.charged >= world.billed
        held = world.ledger._look().held
        assert not any(held)
        cap = world.ledger.caps()["usd"]
        assert cap is not None
        room = cap - world.charged
        if room > 0:  # nothing of it got lost
            assert isinstance(world._born("last").reserve(_estimate(room)), Reservation)
