"""Seats at a cluster: who has a seat has a lease, and all leases together are the run's bounds.

A seat belongs to a unit while that runs, and is kept for the next one. A worker that is given fewer
slots than it had may still have calls in flight: until it says that these have ended, nobody gets
the slots, so that the server never sees more than the cap.
"""

from __future__ import annotations

from dataclasses import replace

from executors.errors import Halted
from executors.gate.allowance import Drawn, Full
from executors.leases import Lease, LeaseBook
from rlm.units.values import LeaseAsk

__all__ = ["Seats"]


class Seats:
    """Hands out seats, each with its lease.

    Args:
        slots: calls in flight of all together.
    """

    def __init__(self, book: LeaseBook, *, slots: int) -> None:
        self._book = book
        self._slots = slots
        self._free: list[str] = []
        self._held: dict[str, int] = {}
        """Calls that each seat may have in flight at most."""
        self._made = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._held)

    def open(self, workers: int) -> None:
        """Make a seat for each of so many workers, all alike, before any of them is used."""
        for _ in range(min(workers, self._slots)):
            lease = self._join()
            if not isinstance(lease, Lease):
                break
            self._free.append(lease.worker)
        for seat in self._free:
            self._idle(seat)

    def take(self, workers: int) -> Lease | Full | None:
        """Return the lease of a seat that is free; None when all are taken.

        Args:
            workers: how many there are now; one more than seats gets a new one.
        """
        while self._free:
            seat = self._free.pop()
            if seat in self._book.lapsed():
                self.leave(seat, Drawn())
                break
            lease = self._idle(seat)
            if isinstance(lease, Lease):
                return lease
            self.leave(seat, Drawn())
            return Full(halted=lease, final=True)
        if self.count >= min(workers, self._slots):
            return None
        return self._join()

    def renew(self, seat: str, ask: LeaseAsk) -> Lease | Halted:
        """Take a report and return the next lease, or why there is none."""
        if seat in self._book.lapsed():  # the coordinator slept, as laptops do
            self._book.leave(seat, ask.drawn)
            lease = self._book.join(seat)
            if isinstance(lease, Full):
                return lease.halted
            return self._clamped(lease)
        return self._renewed(seat, ask)

    def drained(self, seat: str, slots: int) -> None:
        """Hear that a seat has no more calls in flight than its lease has slots."""
        self._held[seat] = min(self._held[seat], slots)

    def give_back(self, seat: str, drawn: Drawn) -> None:
        """Take the last report of a unit; its seat is free for the next one."""
        if seat in self._book.lapsed():
            self.leave(seat, drawn)
            return
        lease = self._book.renew(seat, drawn)
        if isinstance(lease, Lease):
            self._held[seat] = min(self._held[seat], lease.slots)
            self._free.append(seat)
        else:
            self.leave(seat, Drawn())

    def leave(self, seat: str, drawn: Drawn) -> None:
        """Close a seat whose worker has nothing in flight any more."""
        self._book.leave(seat, drawn)
        self._held.pop(seat, None)

    def close_free(self) -> None:
        """Close the seats that nobody will take: what they hold is the others'."""
        for seat in self._free:
            self.leave(seat, Drawn())
        self._free.clear()

    def _join(self) -> Lease | Full:
        self._made += 1
        lease = self._book.join(f"seat {self._made}")
        return lease if isinstance(lease, Full) else self._clamped(lease)

    def _idle(self, seat: str) -> Lease | Halted:
        """Renew the lease of a seat that nobody uses: it has nothing in flight."""
        self._held[seat] = 0
        return self._renewed(seat, LeaseAsk(drawn=Drawn(), need=None, refused=False))

    def _renewed(self, seat: str, ask: LeaseAsk) -> Lease | Halted:
        need = {} if ask.need is None else {"need": ask.need}
        lease = self._book.renew(seat, ask.drawn, refused=ask.refused, idle=ask.idle, **need)
        return lease.halted if isinstance(lease, Full) else self._clamped(lease)

    def _clamped(self, lease: Lease) -> Lease:
        """Return a lease with no more slots than the others leave, whatever they have in flight."""
        seat = lease.worker
        others = sum(slots for name, slots in self._held.items() if name != seat)
        slots = max(0, min(lease.slots, self._slots - others))
        self._held[seat] = max(slots, self._held.get(seat, 0))
        return replace(lease, slots=slots)
