"""Room for what is allowed: counted, and its worst case set aside until it is known what it took."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from threading import Lock

from executors.errors import OverBudget
from executors.gate.actions import Action
from executors.gate.allowance import Full, Reservation
from executors.gate.audit.audit import Audit
from executors.gate.audited import AuditedAllowance
from executors.gate.course.booking import Booking
from executors.gate.course.cases import Case
from executors.gate.decisions import Deny, Halt
from executors.gate.ledger.allowance import LedgerAllowance
from executors.gate.ledger.bounds import dimension_of
from executors.gate.ledger.counting import Kind
from executors.gate.ledger.ledger import Ledger
from executors.gate.ledger.totals import recorded
from executors.gate.results import Result

__all__ = ["Admitting"]


class Admitting:
    """Counts and reserves for the checks of one gate.

    Raises:
        BudgetUnavailable: of each method: the ledger cannot be read or written.
    """

    def __init__(
        self, ledger: Ledger, allowance: LedgerAllowance, booking: Booking, audit: Audit
    ) -> None:
        self._booking = booking
        self._settling = AuditedAllowance(allowance, audit)
        self._ledger = ledger
        self._allowance = allowance
        self._lock = Lock()
        self._held: dict[str, Reservation] = {}

    def admit(self, case: Case) -> Deny | Halt | None:
        """Count an action and set its worst case aside, or say why there is no room."""
        held = self._reserved(case)
        if isinstance(held, Full):
            return _halt(held)
        kinds = _kinds(case)
        try:
            refused = self._ledger.admit(kinds, depth=case.depth, excused=case.excused)
        except BaseException:
            self._give_back(held)
            raise
        if refused is not None:
            self._give_back(held)
            return refused
        case.counted = dict[str, int](kinds.items())
        if held is not None:
            with self._lock:
                self._held[case.aid] = held
        return None

    def record(self, action: Action, result: Result, aid: str | None) -> bool:
        """Charge what an action took; True where that replaces what was set aside for it.

        Args:
            aid: of its check, which counted it; None where there was none, and it counts now.
        """
        call = action.kind == "llm"
        taken = recorded(
            call=call,
            usd=result.usd,
            unpriced=result.unpriced,
            tokens=result.tokens,
            counts=result.counts,
        )
        held = self._taken(aid)
        if held is not None:
            self._settling.settle(
                held, tokens=result.tokens, usd=None if result.unpriced else result.usd
            )
            taken = replace(taken, calls=0, tokens=0, usd=Decimal(0), unpriced=None, priced=0)
        if aid is not None:
            taken = replace(taken, turns=0, tool_rounds=0)
        if taken.unpriced is not None:
            self._allowance.flush()  # what came before it: the last round says what prices are known
        self._ledger.charge(taken)
        return held is not None

    def release(self, aid: str) -> None:
        """Give back what was set aside for an action that did not happen, if anything was."""
        self._give_back(self._taken(aid))

    def charge_whole(self, aid: str) -> bool:
        """Charge all that was set aside for an action, since nobody knows what it took."""
        held = self._taken(aid)
        if held is not None:
            self._settling.settle(held, tokens=None, usd=None)
        return held is not None

    def _reserved(self, case: Case) -> Reservation | Full | None:
        if case.estimate is None:
            return None
        if any(dimension_of(rule) for rule in case.excused):
            self._booking.exempted(case.aid, case.estimate)
            return self._allowance.exempt(case.estimate)
        return self._allowance.reserve(case.estimate)

    def _taken(self, aid: str | None) -> Reservation | None:
        with self._lock:
            return None if aid is None else self._held.pop(aid, None)

    def _give_back(self, held: Reservation | None) -> None:
        if held is not None:
            self._allowance.release(held)


def _kinds(case: Case) -> dict[Kind, int]:
    """Return what an action counts as. A call of a model with an estimate is counted with that."""
    match case.action.kind:
        case "llm":
            return {} if case.estimate is not None and case.estimate.calls else {"turn": 1}
        case "spawn":
            return {"turn": 1, "toolRound": 1, "child": 1, "spawn": 1}
        case "defer":
            return {"turn": 1, "toolRound": 1, "defer": 1}
        case _:
            return {"turn": 1, "toolRound": 1}


def _halt(full: Full) -> Halt:
    halted = full.halted
    if isinstance(halted, OverBudget):
        return Halt(rule=halted.rule, reason=halted.reason, hint=halted.hint)
    return Halt(rule=halted.bound, reason=halted.what, hint=halted.hint)
