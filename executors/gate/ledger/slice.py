"""A process's own books between two reports: its block, what is in flight of it, and what was used."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from executors.clock import Clock
from executors.errors import BudgetUnavailable
from executors.gate.allowance import Estimate, Full
from executors.gate.ledger.amounts import NOTHING, Amounts, usd_of
from executors.gate.ledger.blocks import Block
from executors.gate.ledger.ledger import Ledger
from executors.gate.ledger.state import Spent
from executors.gate.ledger.totals import Totals

__all__ = ["Slice"]

_NONE: tuple[int, int, int] = NOTHING


class _Refused:
    """A refusal that holds until something ends here: of many that wait, one asks the ledger."""

    def __init__(self, need: Amounts, full: Full, clock: Clock, *, blind: bool) -> None:
        self._need = need
        self._full = full
        self._blind = blind
        self._until = clock.monotonic() + (inf if full.again is None else full.again)

    def of(self, need: Amounts, clock: Clock, *, blind: bool) -> Full | None:
        """Return it for a call that needs no less; None where somebody has to ask anew."""
        least = self._need
        less = need[0] < least[0] or need[1] < least[1] or need[2] < least[2]
        other = self._blind and not blind
        if less or other or self._full.final or clock.monotonic() >= self._until:
            return None
        return self._full


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
        self._free = self._in_flight = self._used = _NONE
        self._priced = 0
        self._unpriced: bool | None = None
        self._refused: _Refused | None = None
        self.broken: BudgetUnavailable | None = None
        """Why nothing passes any more."""
        self.blind = 0
        """Calls in flight whose price nobody knows."""
        self.ask = False
        """Whether to ask the ledger before the next call, whatever the block holds."""

    @property
    def alone(self) -> bool:
        """Nobody else was there of late, when the ledger was told last."""
        return self._block is None or self._block.alone

    @property
    def keeps_others_waiting(self) -> bool:
        """It has the right to calls without a price, and makes none."""
        return self._block is not None and self._block.right and not self.blind

    def room(self, estimate: Estimate, need: Amounts, *, blind: bool) -> Full | None:
        """Make room for a call, or say why there is none."""
        block, free = self._block, self._free
        if block is not None and not (
            self.ask
            or need[0] > free[0]
            or need[1] > free[1]
            or need[2] > free[2]
            or (blind and not block.free)
        ):
            return None
        clock, known = self._ledger.clock, self._refused
        if known is not None and (full := known.of(need, clock, blind=blind)) is not None:
            return full
        try:
            full = self._filled(estimate)
            self._refused = None if full is None else _Refused(need, full, clock, blind=blind)
            return full
        except BudgetUnavailable as error:
            self.broken = error
            return Full(halted=error, final=True)

    def hold(self, more: Amounts) -> None:
        """Set some aside."""
        calls, tokens, usd = more
        free, held = self._free, self._in_flight
        self._free = (free[0] - calls, free[1] - tokens, free[2] - usd)
        self._in_flight = (held[0] + calls, held[1] + tokens, held[2] + usd)

    def end(self, was: Amounts, spent: Spent) -> None:
        """Note what was used of what was set aside; the rest is free again."""
        self._refused = None
        (calls, tokens, usd), priced, unpriced = spent
        free, held, used = self._free, self._in_flight, self._used
        self._free = (free[0] + was[0] - calls, free[1] + was[1] - tokens, free[2] + was[2] - usd)
        self._in_flight = (held[0] - was[0], held[1] - was[1], held[2] - was[2])
        self._used = (used[0] + calls, used[1] + tokens, used[2] + usd)
        self._priced += priced
        if unpriced is not None:
            self._unpriced = unpriced

    def forget(self) -> None:
        """There may be room that was not there before."""
        self._refused = None

    def report(self, *, close: bool) -> None:
        """Report what was used; give the rest back where that is the end of it."""
        block = self._block
        if block is None or self.broken is not None:
            return
        try:
            block = replace(block, right=block.right and self.blind > 0)
            block = self._ledger.report(block, self._spent(), close=close)
        except BudgetUnavailable as error:  # what was paid is paid: the next call ends the run
            self.broken = error
            return
        self._told(block)
        if close:
            self._block = None

    def unreported(self) -> Totals:
        """Return what the ledger does not know yet."""
        amounts, priced, unpriced = self._spent()
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
            block,
            self._spent(),
            estimate,
            in_flight=Amounts(*self._in_flight),
            blind=self.blind > 0,
        )
        self._block = block if block.id else None
        self.ask = full is not None and full.final
        self._told(block)
        return full

    def _spent(self) -> Spent:
        return Spent(Amounts(*self._used), self._priced, self._unpriced)

    def _told(self, block: Block) -> None:
        """The ledger knows all that was used."""
        self._used, self._priced, self._unpriced = _NONE, 0, None
        self._free = block.amounts.less(Amounts(*self._in_flight))
