"""The budget of a run family: what it adds to a call, and what a block costs that is drawn."""

from __future__ import annotations

import time
from collections import deque
from decimal import Decimal
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from executors.clock import SystemClock
from executors.gate.allowance import Allowance, Caps, CapsAllowance, Estimate, Reservation
from executors.gate.ledger import Ledger, LedgerAllowance
from tests.bench.row import Row

__all__ = ["rows"]

_CALLS, _IN_FLIGHT, _ROUNDS = 25_000, 64, 5
_WORST = Estimate(tokens=1_200, usd=Decimal("0.00032"))
_USED = Decimal("0.00011")


def _us_each(allowance: Allowance, calls: int, in_flight: int) -> float:
    """Reserve and settle so many calls, as many in flight; return us a call."""
    flying: deque[Reservation] = deque()
    started = time.perf_counter()
    for _ in range(calls):
        got = allowance.reserve(_WORST)
        assert isinstance(got, Reservation)
        flying.append(got)
        if len(flying) == in_flight:
            allowance.settle(flying.popleft(), tokens=400, usd=_USED)
    while flying:
        allowance.settle(flying.popleft(), tokens=400, usd=_USED)
    return (time.perf_counter() - started) / calls * 1e6


def _scan(folder: Path) -> Row:
    ours, floor = float("inf"), float("inf")
    for n in range(_ROUNDS):  # the machine may be busy: the best of some is the cost of ours
        floor = min(floor, _us_each(CapsAllowance(Caps(), SystemClock()), _CALLS, _IN_FLIGHT))
        with Ledger(folder / f"scan{n}") as ledger:
            ours = min(ours, _us_each(LedgerAllowance(ledger), _CALLS, _IN_FLIGHT))
    return Row(
        name=f"reserve and settle, {_CALLS:,} calls, {_IN_FLIGHT} in flight, blocks drawn included",
        ours=ours,
        floor=floor,
        unit="us",
        bar=20,
        note="floor: caps in memory",
    )


def _draws(folder: Path) -> list[Row]:
    took: list[float] = []
    with Ledger(folder / "draws") as ledger:
        for n in range(1_000):
            started = time.perf_counter()
            ledger.draw(f"holder {n % 8}", _WORST)
            took.append((time.perf_counter() - started) * 1e3)
    worst = quantiles(took, n=100)[-1]
    note = f"99 of 100 within {worst:.2g} ms, all within {max(took):.2g} ms"
    return [Row(name="draw a block", ours=median(took), unit="ms", bar=1, note=note)]


def _shared(folder: Path) -> Row:
    """A call at a time where others share: each draws a block and gives it back."""
    with Ledger(folder / "shared") as ledger:
        other, mine = LedgerAllowance(ledger), LedgerAllowance(ledger)
        _us_each(other, 1, 1)
        each = _us_each(mine, 1_000, 1) / 1e3
    note = "a block is drawn and given back"
    return Row(name="one call at a time, beside others", ours=each, unit="ms", bar=1, note=note)


def rows() -> list[Row]:
    """Measure the ledger on the disk of temporary files."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        return [_scan(folder), *_draws(folder), _shared(folder)]
