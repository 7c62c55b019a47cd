"""Processes that are killed in the middle of their spending, and others that go on in their place."""

import os
import time
from decimal import Decimal
from pathlib import Path

import pytest

from executors.clock import VirtualClock
from executors.gate.allowance import Drawn, Reservation
from executors.gate.ledger import LedgerAllowance
from tests.executors.gate.families import Process, billed, ends, go, kill, process
from tests.executors.gate.ledgers import call, made, refused, reserved

HOLDERS = ("root", "root.0", "root.1")


@pytest.mark.case("K8-17", "G-074")
def test_spend_is_within_the_bound_across_kill_and_resume(tmp_path: Path) -> None:
    path, bill = tmp_path / "ledger", tmp_path / "bill"
    bill.touch()
    for round_ in range(3):  # each is ended by a kill, at any point
        members = [_spender(path, bill, holder, round_) for holder in HOLDERS]
        try:
            go(*members)
            _wait(bill, Decimal("0.2") * (round_ + 1))
        finally:
            for member in members:
                kill(member)
        assert _total(bill) <= 1
        _settle(path, bill)
    members = [_spender(path, bill, holder, 9) for holder in HOLDERS]
    go(*members)
    for member in members:
        ends(member)
    with made(path, max_cost_usd=1) as ledger:
        assert ledger.totals().usd == _total(bill)
        assert ledger.lapsed() == {}
    assert Decimal("0.98") < _total(bill) <= 1


def _spender(path: Path, bill: Path, holder: str, salt: int) -> Process:
    environment = {"HOLDER": holder}
    return process("spend", path, bill, 2_000, f"{holder}{salt}", environment=environment)


def _settle(path: Path, bill: Path) -> None:
    """Do what a resume does: settle for who is gone by what is written down."""
    with made(path, max_cost_usd=1) as ledger:
        for holder, drawn in billed(bill).items():
            ledger.reconcile(holder, drawn)
        assert ledger.totals().usd == _total(bill)
        assert not any(ledger._look().held)


def _total(bill: Path) -> Decimal:
    return sum((one.usd for one in billed(bill).values()), Decimal(0))


def _wait(bill: Path, usd: Decimal) -> None:
    end = time.monotonic() + 30
    while _total(bill) < usd and time.monotonic() < end:
        time.sleep(0.001)


def test_what_a_dead_process_held_counts_as_used_until_somebody_knows_better() -> None:
    clock = VirtualClock()
    with made(clock=clock, max_cost_usd=1) as ledger:
        dead = LedgerAllowance(ledger, holder="dead")
        reserved(dead, call("0.6"))
        other = LedgerAllowance(ledger)
        assert not refused(other, call("0.5")).final  # it may still be there
        clock.advance(61)
        assert refused(other, call("0.5")).final
        assert ledger.totals().usd == Decimal("0.6")
        assert ledger.lapsed() == {"dead": Drawn(calls=64, tokens=640, usd=Decimal("0.6"))}
        ledger.reconcile("dead", Drawn(calls=1, tokens=3, usd=Decimal("0.1")))
        assert ledger.totals().usd == Decimal("0.1")
        reserved(other, call("0.5"))


def test_a_process_that_was_taken_for_dead_reports_and_goes_on() -> None:
    clock = VirtualClock()
    with made(clock=clock, max_cost_usd=1) as ledger:
        slow, other = LedgerAllowance(ledger), LedgerAllowance(ledger)
        held = reserved(slow, call("0.6"))
        clock.advance(61)
        assert ledger.reap() == 1
        assert ledger.totals().usd == Decimal("0.6")
        slow.settle(held, tokens=1, usd=Decimal("0.2"))
        slow.flush()
        assert ledger.totals().usd == Decimal("0.2")
        slow.close()
        reserved(other, call("0.8"))


def test_a_forked_child_draws_a_block_of_its_own(tmp_path: Path) -> None:
    with made(tmp_path / "ledger", max_cost_usd=1) as ledger:
        allowance = LedgerAllowance(ledger)
        allowance.release(reserved(allowance, call("0.01")))
        parents = ledger._look().held.usd
        child = os.fork()
        if not child:  # nothing of the test may run here
            try:
                got = allowance.reserve(call("0.01"))
                if isinstance(got, Reservation) and ledger._look().held.usd > parents:
                    allowance.settle(got, tokens=1, usd=Decimal("0.01"))
                    allowance.close()
                    os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ledger._look().held.usd == parents
        allowance.settle(reserved(allowance, call("0.01")), tokens=1, usd=Decimal("0.01"))
        allowance.flush()
        assert ledger.totals().usd == Decimal("0.02")
