"""How a check comes to its end: judged, put to a person where it is open, counted, written down."""

from __future__ import annotations

from executors.gate.course.admitting import Admitting
from executors.gate.course.booking import Booking
from executors.gate.course.cases import Case
from executors.gate.course.consulting import TERMINATED, Consulting
from executors.gate.course.judging import Judging
from executors.gate.decisions import Allow, Ask, Decision, Halt, Settled
from executors.gate.people.channel import Channel

__all__ = ["Deciding"]


class Deciding:
    """Settles cases. Between what is judged and what is counted nothing else happens on the loop."""

    def __init__(
        self,
        judging: Judging,
        admitting: Admitting,
        booking: Booking,
        channel: Channel,
        consulting: Consulting,
    ) -> None:
        self._judging = judging
        self._admitting = admitting
        self._booking = booking
        self._channel = channel
        self._consulting = consulting

    async def settled(self, case: Case) -> Settled:
        """Return how a case ends; it is written down by then.

        Raises:
            DiskFault, BudgetUnavailable: the audit or the ledger cannot be written.
        """
        decision = self._stepped(case)
        if (open_ := _opened(case, decision)) is None:
            return self._booked(case, decision)
        async with self._channel.turn() as turn:
            if turn.waited:  # what others were told may have settled it
                decision = self._stepped(case)
                open_ = _opened(case, decision)
            while open_ is not None:
                ended = await self._consulting.consult(case, open_, turn)
                if ended is not None:
                    return self._booked(case, ended)
                decision = self._stepped(case)
                open_ = _opened(case, decision)
            return self._booked(case, decision)

    def _stepped(self, case: Case) -> Decision:
        decision = self._judging.judged(case)
        if not isinstance(decision, Allow):
            return decision
        return self._admitting.admit(case) or decision

    def _booked(self, case: Case, decision: Decision) -> Settled:
        assert not isinstance(decision, Ask)  # it is open until a person has said something
        try:
            self._booking.settled(case, decision)
        except BaseException:
            self._admitting.release(case.aid)
            raise
        return decision


def _opened(case: Case, decision: Decision) -> Ask | Halt | None:
    """Return what a person is asked about; nobody is asked twice whether a bound may be passed."""
    match decision:
        case Ask():
            return decision
        case Halt(rule=rule) if rule != TERMINATED and rule not in case.excused:
            return decision
        case _:
            return None
