"""What a gate writes down: each check, what people said, what actions took, where bounds stood."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Final, assert_never

from executors.gate.actions import Action
from executors.gate.allowance import Estimate
from executors.gate.amounts import finite
from executors.gate.audit.audit import Audit
from executors.gate.course.cases import Case, told
from executors.gate.decisions import Allow, Ask, Halt, Settled
from executors.gate.people.annotations import Annotation, Malformed
from executors.gate.people.human import Approve, Refuse, Reply, Terminate, TopUp
from executors.gate.results import Result

__all__ = ["Booking"]

_ASK: Final = "askHuman"


class Booking:
    """Writes lines of the audit. The audit redacts and bounds what it is given.

    Raises:
        DiskFault: of each method: the line could not be written.
    """

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def settled(self, case: Case, decision: Settled) -> None:
        """An action is decided about."""
        self._audit.write(
            "gate",
            aid=case.aid,
            action=told(case.action),
            decision=decision.outcome,
            severity=decision.severity,
            rule=decision.rule,
            reason=decision.reason,
            **({"counted": case.counted} if isinstance(decision, Allow) else {}),
        )

    def asked(self, case: Case, open_: Ask | Halt) -> None:
        """A person is going to be asked; at a bound, which one that is as well."""
        more: dict[str, object] = {}
        if isinstance(open_, Ask):
            named = {"classification": open_.classification, "tier": open_.tier}
            more = {name: value for name, value in named.items() if value is not None}
        self._audit.write(
            "gate",
            aid=case.aid,
            action=told(case.action),
            decision=_ASK,
            severity=open_.severity,
            rule=open_.rule,
            reason=open_.question if isinstance(open_, Ask) else open_.reason,
            **more,
        )
        if isinstance(open_, Halt):
            self._audit.write(
                "halt",
                aid=case.aid,
                action=None,
                dimension=open_.rule,
                rule=open_.rule,
                reason=open_.reason,
                awaiting=True,
            )

    def replied(self, case: Case, reply: Reply) -> None:
        """A person answered, or nobody did."""
        match reply:
            case Approve():
                more: dict[str, object] = {"decision": "allow"}
            case TopUp(cap=cap):
                more = {"decision": "topup", "new_cap": _number(cap)}
            case Terminate(reason=reason):
                more = {"decision": "terminate", "reason": reason}
            case Refuse(reason=reason):
                more = {"decision": "deny", "reason": reason}
            case _:
                assert_never(reply)
        self._audit.write("approval", aid=case.aid, **more)

    def topped_up(self, dimension: str, old: Decimal | None, new: object) -> None:
        """A cap was raised, or lowered, on behalf of a person."""
        self._audit.write("topup", dimension=dimension, old_cap=_number(old), new_cap=_number(new))

    def exempted(self, aid: str, estimate: Estimate) -> None:
        """An action goes beyond the bounds by a person's word, by its worst case at most."""
        self._audit.write("exempt", aid=aid, tokens=estimate.tokens, usd=_number(estimate.usd))

    def terminated(self, reason: str) -> None:
        """The run family has ended for good."""
        self._audit.write("terminate", reason=reason)

    def recorded(self, action: Action, result: Result, aid: str | None, *, held: bool) -> None:
        """An action took something.

        Args:
            held: its worst case was set aside, and what it drew of that has a line of its own.
        """
        self._audit.write(
            "record",
            aid=aid,
            action=told(action),
            **({"held": True} if held else {}),
            result={
                "cost_usd": None if result.unpriced else _number(result.usd),
                "tokens": result.tokens,
                "counts": dict(result.counts),
                "pricing": "unpriced" if result.unpriced else "priced",
                "error": result.error,
            },
        )
        if result.unpriced:
            self._audit.write("unpriced", aid=aid, tokens=result.tokens)

    def annotated(self, fact: Annotation | Malformed) -> None:
        """Somebody noted a fact, or what is none."""
        if isinstance(fact, Malformed):
            self._audit.write("annotate_malformed", reason=fact.why)
        else:
            self._audit.write("annotate", **asdict(fact))

    def nearly_reached(self, dimension: str, spent: str, cap: str, ratio: float) -> None:
        """A bound is nearly reached; nothing is refused for that."""
        self._audit.write("budget_warn", dimension=dimension, spent=spent, cap=cap, ratio=ratio)


def _number(amount: object) -> str | None:
    """Return an exact amount as text, as it is kept; None for no bound and for no number."""
    exact = finite(amount)
    return None if exact is None else f"{exact.normalize():f}"
