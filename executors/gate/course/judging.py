"""What bounds and rules say of an action, before anybody is asked and before anything is counted."""

from __future__ import annotations

from functools import partial
from typing import Final

from executors.gate.actions import Action
from executors.gate.course.cases import Case
from executors.gate.decisions import Allow, Ask, Decision
from executors.gate.ledger.allowance import LedgerAllowance
from executors.gate.rules.order import Rules

__all__ = ["Judging"]

_BY_PERSON: Final = Allow(rule="humanChannel.allow", reason="a person allowed it")


class Judging:
    """Bounds first, then rules; nobody is asked, and nothing is counted."""

    def __init__(self, rules: Rules, allowance: LedgerAllowance) -> None:
        self._rules = rules
        self._allowance = allowance

    def judged(self, case: Case) -> Decision:
        """Return what is said of a case as it stands.

        Raises:
            BudgetUnavailable: the ledger cannot be read.
        """
        halt = self._allowance.halts(skip=case.excused)
        if halt is not None:
            return halt
        limits = partial(self._allowance.ledger.refuses, depth=case.depth)
        decision = self._rules.evaluate(case.action, limits)
        if isinstance(decision, Ask) and case.approved:
            return _BY_PERSON
        if isinstance(decision, Allow) and case.excused:
            return _BY_PERSON
        return decision

    def allows(self, action: Action) -> bool:
        """Return whether an action could be allowed as things stand: alone, or by a person's word.

        Raises:
            BudgetUnavailable: the ledger cannot be read.
        """
        return self._allowance.halts() is None and self._rules.allows(action)
