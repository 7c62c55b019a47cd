"""The allowance of one process: on its block in memory, filled up from the ledger where it is short.

A call costs the ledger nothing as long as the block holds. What is used is reported with the next
filling, at once where it was more than was reserved, and when nothing is in flight any more while
others share the budget; until then the block, which the ledger counts as set aside, covers it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from threading import Lock
from typing import Final

from executors.errors import BudgetUnavailable, Halted, OverBudget, ValidationError
from executors.gate.allowance import Caps, Drawn, Estimate, Full, Reservation, Tag
from executors.gate.decisions import Halt
from executors.gate.ledger.amounts import MOST, NOTHING, Amounts, nano, usd_of
from executors.gate.ledger.blocks import Block
from executors.gate.ledger.books import SoftWarning
from executors.gate.ledger.ledger import Ledger
from executors.gate.ledger.lending import is_blind
from executors.gate.ledger.slice import Slice
from executors.gate.ledger.state import Spent
from executors.gate.ledger.totals import Totals

__all__ = ["Appeal", "LedgerAllowance"]

Appeal = Callable[[Halted, Estimate], Awaitable[bool]]
_SECONDS: Final = Caps().seconds
_numbers = count()


@dataclass(slots=True, kw_only=True, eq=False)
class _Held(Reservation):
    """A reservation in whole units."""

    amounts: Amounts
    blind: bool = False
    """Nobody knows what it costs."""
    block: Block | None = None
    """Of its own, where a person allowed it beyond the bounds."""


class LedgerAllowance:
    """What this process may spend of the budget of its run family.

    Safe in threads; a forked child draws blocks of its own.

    Args:
        holder: a name of its own, see `Ledger.draw`; None makes one up.
        seconds: until the deadline, from the first reservation on, whatever pauses there are.
        appeal: asked where there is no room for good; True where it is worth trying again.
        on_soft: told of each bound that is nearly reached, once a family.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        holder: str | None = None,
        seconds: float = _SECONDS,
        scope: str = "run",
        appeal: Appeal | None = None,
        on_soft: Callable[[SoftWarning], None] | None = None,
    ) -> None:
        self.ledger = ledger
        self.holder = holder or _made_up()
        self._seconds = seconds
        self._scope = scope
        self._appeal = appeal
        self._on_soft = on_soft
        self._lock = Lock()
        self._process = os.getpid()
        self._slice = Slice(ledger, self.holder)
        self._open = 0
        self._exempted: list[tuple[Estimate, Block]] = []
        self._shared = False
        self._started: float | None = None

    # ---------------------------------------------------------------- reserving

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        need, blind = Amounts.of(estimate), is_blind(estimate)
        with self._lock:
            if self._exempted and (exempted := self._taken(estimate, tag)) is not None:
                return exempted
            full = self._room(estimate, need, blind=blind)
            if full is None:
                self._slice.hold(need)
                self._slice.blind += blind
                self._open += 1
        self._tell()
        if full is not None:
            return full
        return _Held(estimate=estimate, tag=tag, amounts=need, blind=blind)

    def grow(self, reservation: Reservation, more: Estimate) -> Full | None:
        """Set more aside under a reservation that stands for many calls, or say why not."""
        need = Amounts.of(more)
        with self._lock:
            full = self._room(more, need, blind=False)
            if full is None:
                self._slice.hold(need)
                _change(reservation, _ours(reservation).amounts.plus(need))
        self._tell()
        return full

    def exempt(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation:
        """Return a reservation beyond the bounds, for one action that a person allowed.

        Raises:
            BudgetUnavailable: the ledger cannot be used.
        """
        block = self.ledger.exempt(self.holder, estimate)
        return _exempted(estimate, tag, block)

    def exempt_next(self, estimate: Estimate) -> None:
        """Let the next reservation of this estimate pass: for who allows a call that waits."""
        block = self.ledger.exempt(self.holder, estimate)
        with self._lock:
            self._exempted.append((estimate, block))

    async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
        final = isinstance(halted, OverBudget) and halted.rule == "gate.terminated"
        if self._appeal is None or final or isinstance(halted, BudgetUnavailable):
            return False
        if await self._appeal(halted, estimate):
            return True
        with self._lock:  # who ended the run instead: the next reservation says so, and is none
            ended = self.ledger.terminated is not None
            self._slice.ask = self._slice.ask or ended
        return ended

    # ---------------------------------------------------------------- settling

    def settle(self, reservation: Reservation, *, tokens: int | None, usd: Decimal | None) -> bool:
        ours = _ours(reservation)
        held = ours.amounts
        used = Amounts(
            held[0],
            held[1] if tokens is None else _whole(tokens),
            held[2] if usd is None else nano(usd),
        )
        long, dear = used[1] > held[1], used[2] > held[2]
        self._close(ours, _spent(ours, used, usd), over=dear or long)
        return long or (dear and ours.estimate.usd is not None)

    def release(self, reservation: Reservation) -> None:
        self._close(_ours(reservation), Spent(NOTHING), over=False)

    def draw(self, reservation: Reservation, drawn: Drawn) -> bool:
        """Charge what was used of such a reservation; the rest stays set aside. True for an overrun."""
        ours, used = _ours(reservation), Amounts.of(drawn)
        held = ours.amounts
        left = held.over(used)
        over = used.tokens > held.tokens or used.usd > held.usd
        with self._lock:
            _is_open(ours)
            self._slice.end(held, Spent(used, int(used.usd > 0), False if used.usd else None))
            self._slice.hold(left)
            _change(ours, left)
            if over:
                self._overran()
        self._tell()
        return over

    # ---------------------------------------------------------------- looking

    @property
    def caps(self) -> Caps:
        """The bounds of the family that hold now; what has none is bounded by nine million USD."""
        held = self.ledger.caps()
        calls, tokens, usd = held["calls"], held["tokens"], held["usd"]
        return Caps(
            calls=MOST if calls is None else int(calls),
            tokens=MOST if tokens is None else int(tokens),
            usd=usd_of(MOST) if usd is None else usd,
            seconds=self._seconds,
        )

    @property
    def drawn(self) -> Drawn:
        """What the family used until now, without what is set aside."""
        used = self.totals()
        return Drawn(calls=used.calls, tokens=used.tokens, usd=used.usd)

    def totals(self) -> Totals:
        """Return what the family used, with what of it was not reported yet here."""
        with self._lock:
            return self.ledger.totals() + self._slice.unreported()

    def halts(self, *, skip: Collection[str] = ()) -> Halt | None:
        """Return why nothing may happen any more; see `Ledger.halts`."""
        with self._lock:
            return self.ledger.halts(skip=skip, more=self._slice.unreported())

    def seconds_left(self) -> float:
        """See `Allowance.seconds_left`; all of them before the first reservation."""
        started = self._started
        gone = 0.0 if started is None else self.ledger.clock.monotonic() - started
        return max(0.0, self._seconds - gone)

    def out_of_time(self) -> Halted:
        return Halted(
            bound="seconds",
            scope=self._scope,
            limit=f"{self._seconds:g} s",
            hint="raise it with max_seconds=… (--max-seconds); what was answered so far is kept",
        )

    # ---------------------------------------------------------------- sharing

    def share(self) -> None:
        """Others are about to join: keep nothing from now on while nothing is in flight."""
        with self._lock:
            self._shared = True
            if not self._open:
                self._rest()
        self._tell()

    def flush(self) -> None:
        """Report what was used; the block stays."""
        with self._lock:
            self._slice.report(close=False)
        self._tell()

    def close(self) -> None:
        """Report what was used, and give the rest back but for what is in flight."""
        with self._lock:
            for _, block in self._exempted:
                self._close_exempted(block, Spent(NOTHING))
            self._exempted.clear()
            self._slice.report(close=not self._open)
        self._tell()

    # ---------------------------------------------------------------- inside

    def _room(self, estimate: Estimate, need: Amounts, *, blind: bool) -> Full | None:
        if self._process != os.getpid():
            self._forked()
        if self._started is None:
            self._started = self.ledger.clock.monotonic()
        if self.seconds_left() <= 0:
            return Full(halted=self.out_of_time(), final=True)
        return self._slice.room(estimate, need, blind=blind)

    def _taken(self, estimate: Estimate, tag: Tag | None) -> Reservation | None:
        for place, (allowed, block) in enumerate(self._exempted):
            if allowed == estimate:
                del self._exempted[place]
                return _exempted(estimate, tag, block)
        return None

    def _close(self, ours: _Held, spent: Spent, *, over: bool) -> None:
        with self._lock:
            _is_open(ours)
            ours.open = False
            if ours.block is not None:
                self._close_exempted(ours.block, spent)
            else:
                self._slice.end(ours.amounts, spent)
                self._slice.blind -= ours.blind
                self._open -= 1
                if over:
                    self._overran()
                elif ours.blind and self._slice.keeps_others_waiting:
                    self._slice.report(close=False)
                if not self._open:
                    self._rest()
        self._tell()

    def _close_exempted(self, block: Block, spent: Spent) -> None:
        self._slice.forget()
        try:
            self.ledger.report(block, spent, close=True)
        except BudgetUnavailable as error:  # as with any other block
            self._slice.broken = error

    def _overran(self) -> None:
        """Tell the family at once, and ask before the next call whether it may go."""
        self._slice.report(close=False)
        self._slice.ask = True

    def _rest(self) -> None:
        """Give back what others may need while nothing is in flight here."""
        if self._shared or not self._slice.alone:
            self._slice.report(close=True)

    def _forked(self) -> None:
        """Begin anew: the block is the parent's, and so is what is in flight."""
        self._process = os.getpid()
        self.holder = _made_up()
        self._slice = Slice(self.ledger, self.holder)
        self._open = 0
        self._exempted.clear()

    def _tell(self) -> None:
        if self._on_soft is not None:
            for warning in self.ledger.take_warnings():
                self._on_soft(warning)


def _made_up() -> str:
    """Return a name that no other object has, in this process or another."""
    return f"{os.getpid()}-{time.time_ns()}-{next(_numbers)}"


def _ours(reservation: Reservation) -> _Held:
    if not isinstance(reservation, _Held):
        raise ValidationError(
            f"{reservation!r} is of another allowance", hint="settle it where it was reserved"
        )
    return reservation


def _is_open(reservation: Reservation) -> None:
    if not reservation.open:
        raise ValidationError("a reservation is settled or released once, not twice")


def _exempted(estimate: Estimate, tag: Tag | None, block: Block) -> _Held:
    return _Held(estimate=estimate, tag=tag, amounts=Amounts.of(estimate), block=block)


def _change(reservation: Reservation, amounts: Amounts) -> None:
    """Let a reservation that stands for many calls be another amount from now on."""
    _ours(reservation).amounts = amounts
    reservation.estimate = Estimate(
        calls=amounts.calls, tokens=amounts.tokens, usd=usd_of(amounts.usd)
    )


def _whole(tokens: int) -> int:
    if tokens < 0:
        raise ValidationError(f"tokens={tokens!r} is no amount", hint="give None when unknown")
    return min(tokens, MOST)


def _spent(held: _Held, used: Amounts, usd: Decimal | None) -> Spent:
    """Return what a call adds. One that failed unbilled says nothing about its price."""
    if usd is None:
        return Spent(used, 0, True if held.blind else None)
    known = bool(usd) or held.estimate.usd is not None
    return Spent(used, int(bool(usd)), False if known else None)
