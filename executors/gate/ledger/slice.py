"""A process's own books between two reports: its block, what is in flight of it, and what was used."""

from __future__ import annotations

from dataclasses import replace

from executors.errors import BudgetUnavailable
from executors.gate.allowance import Estimate, Full
from executors.gate.ledger.amounts import NOTHING, Amounts, usd_of
from executors.gate.ledger.blocks import Block
from executors.gate.ledger.ledger import Ledger
from executors.gate.ledger.state import Spent
from executors.gate.ledger.totals import Totals

__all__ = ["Slice"]


class Slice:
    """What one holder may still use; whoever owns it lets in one thread at a time.

    A ledger that cannot be used any more lets nothing through. What was settled meanwhile counts
    with the block that it came of.
    """

    def __init__(self, ledger: Ledger, holder: str) -> None:
        self._ledger = ledger
        self._holder = holder
        self._block: Block | None = None
        # What the block holds beyond what is in flight and what is not reported.
        self._free = NOTHING
        self._in_flight = NOTHING
        self._spent = Spent(NOTHING)
        self.broken: BudgetUnavailable | None = None
        """Why nothing passes any more."""
        self.blind = 0
        """Calls in flight whose price nobody knows."""

    @property
    def alone(self) -> bool:
        """Nobody else held anything when the ledger was asked last."""
        return self._block is None or self._block.alone

    @property
    def keeps_others_waiting(self) -> bool:
        """It has the right to calls without a price, and makes none."""
        return self._block is not None and self._block.right and not self.blind

    def room(self, estimate: Estimate, need: Amounts, *, blind: bool) -> Full | None:
        """Make room for a call, or say why there is none."""
        block, free = self._block, self._free
        if block is not None and not (
            need[0] > free[0]
            or need[1] > free[1]
            or need[2] > free[2]
            or (blind and not block.free)
        ):
            return None
        try:
            return self._filled(estimate)
        except BudgetUnavailable as error:
            self.broken = error
            return Full(halted=error, final=True)

    def hold(self, more: Amounts) -> None:
        """Set some aside; give it back where it is negative."""
        self._in_flight = self._in_flight.plus(more)
        self._free = self._free.less(more)

    def spend(self, spent: Spent) -> None:
        """Note what was used, of what is free."""
        before = self._spent
        self._free = self._free.less(spent.amounts)
        self._spent = Spent(
            before.amounts.plus(spent.amounts),
            before.priced + spent.priced,
            before.unpriced if spent.unpriced is None else spent.unpriced,
        )

    def report(self, *, close: bool) -> None:
        """Report what was used; give the rest back where that is the end of it."""
        block, spent = self._block, self._spent
        if block is None or self.broken is not None:
            return
        try:
            block = replace(block, right=block.right and self.blind > 0)
            block = self._ledger.report(block, spent, close=close)
        except BudgetUnavailable as error:  # what was paid is paid: the next call ends the run
            self.broken = error
            return
        self._spent = Spent(NOTHING)
        self._block = None if close else block
        self._free = NOTHING if close else block.amounts.less(self._in_flight)

    def unreported(self) -> Totals:
        """Return what the ledger does not know yet."""
        amounts, priced, unpriced = self._spent
        return Totals(
            calls=amounts.calls,
            tokens=amounts.tokens,
            usd=usd_of(amounts.usd),
            unpriced=unpriced,
            priced=priced,
            turns=amounts.calls,
        )

    def _filled(self, estimate: Estimate) -> Full | None:
        if self.broken is not None:
            return Full(halted=self.broken, final=True)
        block = self._block or Block(id=0, holder=self._holder, amounts=NOTHING, expires=0.0)
        block, full = self._ledger.refill(
            block, self._spent, estimate, in_flight=self._in_flight, blind=self.blind > 0
        )
        self._spent = Spent(NOTHING)
        self._block = block if block.id else None
        self._free = block.amounts.less(self._in_flight)
        return full
