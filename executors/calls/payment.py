"""What one call draws on the budget: reserved before it leaves, settled after, whatever happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from math import inf
from typing import Final

import anyio

from executors.calls.log import CallLog
from executors.errors import DiskFault, Halted, ModelError
from executors.gate.allowance import Allowance, Estimate, Reservation, Tag
from executors.journal.records import Journal, Paid
from executors.makers import maker
from executors.messages import ModelReply
from executors.usage import Usage

__all__ = ["Payment", "Room"]

_made_paid = maker(Paid)
# How often one call may be given more than there was and find no room all the same.
_APPEALS: Final = 5


class Room:
    """The allowance, with a place to wait as long as calls in flight may still give some back."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._freed: anyio.Event | None = None
        self._appealing: anyio.Event | None = None
        self._closed: Halted | None = None
        self.sent = 0
        """Requests that left."""

    def close(self, halted: Halted) -> None:
        """Let nothing leave any more, whatever room there is."""
        self._closed = self._closed or halted
        self.tell()

    def leave(self) -> None:
        """Let one request leave.

        Raises:
            Halted: the run was halted meanwhile.
        """
        if self._closed is not None:
            raise self._closed
        self.sent += 1

    async def reserve(self, estimate: Estimate, tag: Tag) -> Reservation:
        """Return a reservation.

        Raises:
            Halted: there is no room, nothing in flight could make any, and nobody gave more.
        """
        appeals = 0
        while True:
            if self._closed is not None:
                raise self._closed
            got = self._allowance.reserve(estimate, tag=tag)
            if isinstance(got, Reservation):
                return got
            if not got.final:
                await self._some(got.again)
            elif self._appealing is not None:  # what somebody else is given may do for all
                await self._appealing.wait()
            elif appeals == _APPEALS or not await self._appealed(got.halted, estimate):
                raise got.halted
            else:
                appeals += 1

    async def _some(self, again: float | None) -> None:
        """Wait until somebody gives something back, here, or after so many seconds elsewhere."""
        if self._freed is None:
            self._freed = anyio.Event()
        with anyio.move_on_after(inf if again is None else again):
            await self._freed.wait()

    async def _appealed(self, halted: Halted, estimate: Estimate) -> bool:
        """Ask for more; nobody else does meanwhile."""
        asked = self._appealing = anyio.Event()
        try:
            given = await self._allowance.appeal(halted, estimate)
        finally:
            self._appealing = None
            asked.set()
        if given:
            self.tell()
        return given

    def settle(self, reservation: Reservation, tokens: int | None, usd: Decimal | None) -> bool:
        """Charge what was used, or all of it where that is unknown; True for an overrun."""
        overrun = self._allowance.settle(reservation, tokens=tokens, usd=usd)
        self.tell()
        return overrun

    def release(self, reservation: Reservation) -> None:
        """Give back what never left."""
        self._allowance.release(reservation)
        self.tell()

    def tell(self) -> None:
        """There may be room."""
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class Payment:
    """One paid call. A try that may have been billed keeps its charge; the next reserves anew."""

    __slots__ = (
        "_in_flight",
        "_journal",
        "_log",
        "_reservation",
        "_room",
        "_send",
        "_sent",
        "_tokens",
        "_usd",
        "_worst",
    )

    def __init__(
        self,
        room: Room,
        worst: Estimate,
        log: CallLog,
        send: Callable[[], Awaitable[ModelReply]],
        *,
        journal: Journal,
    ) -> None:
        self._room = room
        self._journal = journal
        self._tokens = 0
        self._usd = Decimal(0)
        self._worst = worst
        self._log = log
        self._send = send
        self._reservation: Reservation | None = None
        self._in_flight = False
        self._sent = 0

    def begin(self, reservation: Reservation) -> None:
        """Take over the reservation of the first try, and write down that it is about to leave."""
        self._reservation = reservation
        self._log.started()
        self._journal.intent(self._log.key, tokens=self._worst.tokens, usd=self._worst.usd)

    async def attempt(self) -> ModelReply:
        """Send the request once."""
        self._room.leave()
        self._sent += 1
        self._in_flight = True
        try:
            reply = await self._send()
        except ModelError as error:  # what a halt finds here must be known to be paid or not
            self._in_flight = error.maybe_paid
            raise
        self._in_flight = False
        return reply

    async def retried(self, attempt: int, error: ModelError, wait: float) -> None:
        """Charge a failed try that may have been billed, and find room for the next one.

        No slot is held here, so that waiting for room cannot block those who would make it.
        """
        self._in_flight = False
        self._log.retried(attempt, error, wait, self._worst if error.maybe_paid else None)
        if error.maybe_paid:
            self._close(charge=True)
            self._reservation = await self._room.reserve(replace(self._worst, calls=0), self._log)

    def settle(
        self,
        usage: Usage,
        cost: Decimal | None,
        attempts: int,
        *,
        unsettled: Estimate | None = None,
    ) -> Paid:
        """Charge an answer; return what the call drew in all.

        Args:
            unsettled: what tries at other models may have cost besides.
        """
        assert self._reservation is not None
        tokens = usage.total
        if unsettled is not None:
            tokens = None if tokens is None else tokens + unsettled.tokens
            cost = None if cost is None else cost + (unsettled.usd or 0)
        if self._room.settle(self._reservation, tokens, cost):
            self._log.overrun()
        self._reservation = None
        self._charge(tokens, cost)
        return self._paid(attempts)

    def fail(self, error: BaseException, seconds: float) -> None:
        """End without an answer: failed, cancelled, or out of room between two tries."""
        if isinstance(error, ModelError):
            paid, attempts = error.maybe_paid, error.attempts
        else:  # what is in flight may be billed
            paid, attempts = self._in_flight, self._sent
        self._close(charge=paid)
        worst = self._worst if paid else None
        self._log.failed(error, attempts=attempts, worst=worst, seconds=seconds)
        if not isinstance(error, DiskFault):  # what cannot be written any more is not tried again
            known = error if isinstance(error, ModelError) else None
            self._journal.failed(self._log.key, known, self._paid(attempts))

    def _close(self, *, charge: bool) -> None:
        if self._reservation is None:
            return
        if charge:
            self._room.settle(self._reservation, None, None)
            self._charge(None, None)
        elif self._sent:  # it cost nothing, and was a call
            self._room.settle(self._reservation, 0, Decimal(0))
        else:
            self._room.release(self._reservation)
        self._reservation = None

    def _charge(self, tokens: int | None, usd: Decimal | None) -> None:
        """Add a try to what the call drew; what is unknown is its worst case."""
        self._tokens += self._worst.tokens if tokens is None else tokens
        self._usd += (self._worst.usd or 0) if usd is None else usd

    def _paid(self, attempts: int) -> Paid:
        usd = None if self._worst.usd is None else self._usd
        return _made_paid(tokens=self._tokens, usd=usd, attempts=attempts)
