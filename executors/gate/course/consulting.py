"""What follows from a person's answer: go on, stop, a higher cap, or the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from executors.errors import ValidationError
from executors.gate.course.booking import Booking
from executors.gate.course.cases import Case, told
from executors.gate.decisions import Ask, Deny, Halt
from executors.gate.harmless import harmless_json
from executors.gate.ledger.bounds import dimension_of
from executors.gate.ledger.ledger import Ledger
from executors.gate.people.annotations import Annotations
from executors.gate.people.channel import Channel
from executors.gate.people.human import Approve, HumanEvent, Refuse, Terminate, TopUp
from executors.gate.people.standing import Standing
from executors.gate.people.turnstile import Turn
from executors.replies import JsonValue
from executors.secrets import scrub

__all__ = ["TERMINATED", "Consulting"]

TERMINATED: Final = "gate.terminated"


class Consulting:
    """Asks about what is open, and does what the answer says.

    Args:
        topups: caps that may be raised for one action.
        standing: where the run stands.
        redact: makes of an action what may be shown of it.
    """

    def __init__(
        self,
        channel: Channel,
        ledger: Ledger,
        booking: Booking,
        annotations: Annotations,
        *,
        topups: int,
        standing: Callable[[], Standing],
        redact: Callable[[object], JsonValue],
    ) -> None:
        self._channel = channel
        self._ledger = ledger
        self._booking = booking
        self._annotations = annotations
        self._topups = topups
        self._standing = standing
        self._redact = redact
        self._noes: dict[tuple[str, Decimal | None], str] = {}
        """What people said to bounds, by the rule and where it stood."""

    async def consult(self, case: Case, open_: Ask | Halt, turn: Turn) -> Deny | Halt | None:
        """Return how a case ends, or None where it is to be judged again.

        A no to a bound, and silence, hold for all who come to that bound, as long as it is the same.

        Raises:
            DiskFault, BudgetUnavailable: the audit or the ledger cannot be written.
        """
        bound = (open_.rule, self._cap(open_))
        if isinstance(open_, Halt) and (no := self._noes.get(bound)) is not None:
            return _refused(open_, no)
        self._booking.asked(case, open_)
        reply = await self._channel.ask(self._event(case, open_), turn)
        self._booking.replied(case, reply)
        match reply:
            case Refuse(reason=reason):
                if isinstance(open_, Halt) and not turn.abandoned:  # else nobody heard it
                    self._noes[bound] = reason
                return _refused(open_, reason)
            case Terminate(reason=reason):
                self._ledger.terminate(reason)
                self._booking.terminated(reason)
                return Halt(rule=TERMINATED, reason=reason)
            case TopUp(cap=cap) if isinstance(open_, Halt):
                return self._raised(case, open_, cap)
            case Approve() | TopUp():
                case.allow(open_)
                return None

    async def appeal(self, case: Case, halt: Halt) -> bool:
        """Ask about a bound that a call of a model has no room under; whether to try again.

        Raises:
            DiskFault, BudgetUnavailable: as above.
        """
        async with self._channel.turn() as turn:
            settled = turn.abandoned or (halt.rule, self._cap(halt)) in self._noes
            if turn.waited and not settled:  # what others were given may do for this one too
                return True
            return await self.consult(case, halt, turn) is None

    def _cap(self, open_: Ask | Halt) -> Decimal | None:
        """Return where a bound stands; None for one that nobody can raise."""
        name = dimension_of(open_.rule) if isinstance(open_, Halt) else None
        return None if name is None else self._ledger.caps().get(name)

    def _event(self, case: Case, open_: Ask | Halt) -> HumanEvent:
        ask = open_ if isinstance(open_, Ask) else None
        return HumanEvent(
            kind="halt" if ask is None else "ask",
            action=case.action,
            shown=harmless_json(self._redact(told(case.action))),
            severity=open_.severity,
            rule=open_.rule,
            reason=scrub(open_.reason if isinstance(open_, Halt) else open_.question),
            standing=self._standing(),
            aid=case.aid,
            tier=None if ask is None else ask.tier,
            classification=None if ask is None else ask.classification,
            annotations=self._annotations.riding(case.action.type),
        )

    def _raised(self, case: Case, halt: Halt, cap: object) -> Deny | Halt | None:
        if dimension_of(halt.rule) is None:
            return _refused(halt, "no cap can be raised for it: the top-up is not applicable")
        if case.topups >= self._topups:
            return _refused(halt, f"its cap was raised {self._topups} times for this action")
        try:
            old = self._ledger.top_up(halt.rule, cap)
        except ValidationError:
            return _refused(halt, "invalid newCap, which is no finite number >= 0")
        case.topups += 1
        self._booking.topped_up(halt.rule, old, cap)
        return None


def _refused(open_: Ask | Halt, reason: str) -> Deny | Halt:
    match open_:
        case Ask(rule=rule, question=question):
            return Deny(rule=rule, reason=f"{question}: {reason}" if question else reason)
        case Halt(rule=rule, reason=bound, hint=hint):
            return Halt(rule=rule, reason=f"{bound}; {reason}", hint=hint)
