"""What calls of models draw on the budget, with a line of the audit for each."""

from __future__ import annotations

from decimal import Decimal

from executors.errors import Halted
from executors.gate.allowance import Caps, Drawn, Estimate, Full, Reservation, Tag
from executors.gate.audit.audit import Audit
from executors.gate.audit.reading import read
from executors.gate.audit.rebuilding import totals_of
from executors.gate.ledger.allowance import LedgerAllowance
from executors.gate.ledger.ledger import Ledger
from executors.gate.ledger.lending import is_blind

__all__ = ["AuditedAllowance", "caught_up"]

_FREE = Decimal(0)


class AuditedAllowance:
    """An allowance whose settlements stand in the audit, written when that is flushed."""

    def __init__(self, inner: LedgerAllowance, audit: Audit) -> None:
        self._inner = inner
        self._audit = audit

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        return self._inner.reserve(estimate, tag=tag)

    def grow(self, reservation: Reservation, more: Estimate) -> Full | None:
        return self._inner.grow(reservation, more)

    async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
        return await self._inner.appeal(halted, estimate)

    def settle(self, reservation: Reservation, *, tokens: int | None, usd: Decimal | None) -> bool:
        held = reservation.estimate
        over = self._inner.settle(reservation, tokens=tokens, usd=usd)
        charged = held.usd if usd is None else usd
        self._audit.call(
            reservation.tag,
            calls=held.calls,
            tokens=held.tokens if tokens is None else tokens,
            usd=charged or _FREE,
            unpriced=_unpriced(held, usd),
            overrun=over,
        )
        return over

    def release(self, reservation: Reservation) -> None:
        self._inner.release(reservation)

    def draw(self, reservation: Reservation, drawn: Drawn) -> bool:
        over = self._inner.draw(reservation, drawn)
        if drawn != Drawn():
            _write(self._audit, drawn, over=over)
        return over

    @property
    def caps(self) -> Caps:
        return self._inner.caps

    @property
    def drawn(self) -> Drawn:
        return self._inner.drawn

    def seconds_left(self) -> float:
        return self._inner.seconds_left()

    def out_of_time(self) -> Halted:
        return self._inner.out_of_time()


def caught_up(ledger: Ledger, audit: Audit, holder: str, drawn: Drawn) -> None:
    """Charge what a holder drew in its life, and write it down, where it was killed before it could.

    Its journal, the audit and the ledger were each written up to a moment of their own: what any of them
    knows was drawn, and all of them are brought there. The line goes first and at once, so that a process
    that is killed in here leaves nothing that the next one does not see.
    """
    reported = ledger.reported(holder)
    # Lines of a gate that is not this holder's own do not say whose they are.
    written = _written(audit, holder) if audit.run.run == holder else reported
    known = _most(drawn, written, reported)
    more = Drawn(
        calls=known.calls - written.calls,
        tokens=known.tokens - written.tokens,
        usd=known.usd - written.usd,
    )
    if more != Drawn():
        _write(audit, more, over=False)
        audit.flush()
    ledger.reconcile(holder, known, counted=lambda: written)


def _most(*drawn: Drawn) -> Drawn:
    return Drawn(
        calls=max(one.calls for one in drawn),
        tokens=max(one.tokens for one in drawn),
        usd=max(one.usd for one in drawn),
    )


def _written(audit: Audit, holder: str) -> Drawn:
    """Return what calls of a run drew, by the lines of the audit."""
    if audit.path is None or not audit.path.exists():
        return Drawn()
    mine = (line for line in read(audit.path) if line.text("run_id") == holder)
    sums = totals_of(line for line in mine if line.phase == "call")
    return Drawn(calls=sums.calls, tokens=sums.tokens, usd=sums.usd)


def _write(audit: Audit, drawn: Drawn, *, over: bool) -> None:
    audit.call(
        None,
        calls=drawn.calls,
        tokens=drawn.tokens,
        usd=drawn.usd,
        unpriced=False if drawn.usd else None,
        overrun=over,
    )


def _unpriced(held: Estimate, usd: Decimal | None) -> bool | None:
    """Return whether nobody knows what a call cost; None where it says nothing of that."""
    if usd is None:
        return True if is_blind(held) else None
    return False if usd or held.usd is not None else None
