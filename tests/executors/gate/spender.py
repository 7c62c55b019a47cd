"""A process of a run family, for tests: run as `python spender.py WHAT LEDGER BILL N [SALT]`.

It says "ready", waits for a line, and does what it is told. The bill is what a server would write:
one line a request, at the moment it comes in, with who is to pay and how much.
"""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from executors.gate.allowance import Estimate, Reservation
from executors.gate.config.budget import BudgetSection
from executors.gate.ledger import Ledger, LedgerAllowance

PRICE = Decimal("0.01")
"""What a request costs at most."""


def main(what: str, ledger: str, bill: str, n: str, salt: str = "0") -> None:
    """Do one of the things below, and print what came of it."""
    it = Ledger(Path(ledger), budget=BudgetSection.model_validate({"max_cost_usd": 1}))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    match what:
        case "count":
            for _ in range(int(n)):
                it.count("writes")
        case "reserve":
            sys.stdout.write(f"{_reserve(it, int(n))}\n")
        case "admit":
            sys.stdout.write(f"{sum(it.admit('spawn') is None for _ in range(int(n)))}\n")
        case "spend":
            _spend(it, Path(bill), int(n), random.Random(salt))
        case _:  # "hold"
            with it._file.transaction():
                sys.stdout.write("held\n")
                sys.stdout.flush()
                time.sleep(60)
    it.close()


def _reserve(ledger: Ledger, workers: int) -> int:
    """Let so many threads reserve at once; return how many could."""
    allowance, barrier = LedgerAllowance(ledger), Barrier(workers)
    worst = Estimate(tokens=1, usd=Decimal("0.9"))

    def worker(_: int) -> bool:
        barrier.wait()
        return isinstance(allowance.reserve(worst), Reservation)

    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(worker, range(workers)))


def _spend(ledger: Ledger, bill: Path, requests: int, chance: random.Random) -> None:
    """Send requests, a few in flight; each is billed before its answer is settled."""
    allowance = LedgerAllowance(ledger, holder=os.environ.get("HOLDER"))
    worst = Estimate(tokens=10, usd=PRICE)
    fd = os.open(bill, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    in_flight: list[tuple[Reservation, Decimal]] = []
    for _ in range(requests):
        got = allowance.reserve(worst)
        if not isinstance(got, Reservation):
            if got.final:
                break
            if not in_flight:
                time.sleep(0.002)
        elif chance.random() < 0.1:
            allowance.release(got)
        else:
            usd = PRICE * chance.randrange(1, 101) / 100
            os.write(fd, f"{allowance.holder} {usd}\n".encode())
            in_flight.append((got, usd))
        while in_flight and (len(in_flight) > 4 or not isinstance(got, Reservation)):
            reservation, usd = in_flight.pop(0)
            allowance.settle(reservation, tokens=5, usd=usd)
    for reservation, usd in in_flight:
        allowance.settle(reservation, tokens=5, usd=usd)
    allowance.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
