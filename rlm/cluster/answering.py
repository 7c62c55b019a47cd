"""What the coordinator answers to its units."""

from __future__ import annotations

from pathlib import Path

from corpus.spool import Spool
from executors.errors import DiskFault, Halted, InternalError
from executors.events import CallFailed, CallFinished, Emit
from executors.ids import ContentKey
from executors.journal.journal import RunJournal
from rlm.cluster.seats import Seats
from rlm.cluster.work import Out
from rlm.runs.history import read_event
from rlm.units.filed import pack_known
from rlm.units.lease import pack_halted
from rlm.units.sources import Sent
from rlm.units.values import LeaseAsk

__all__ = ["Answers"]

_GIVEN_UP = b"the coordinator has given this unit up"


class Answers:
    """Answers each unit that is out.

    Attributes:
        out: the units that run, by name.
        fault: what was wrong with the disk, once something could not be written.
    """

    def __init__(
        self, directory: Path, spool: Spool, seats: Seats, journal: RunJournal, *, emit: Emit
    ) -> None:
        self._directory = directory
        self._spool = spool
        self._seats = seats
        self._journal = journal
        self._emit = emit
        self.out: dict[str, Out] = {}
        self.fault: DiskFault | None = None

    async def __call__(self, unit: str, what: str, body: bytes) -> bytes:
        """Return the answer to what a unit asks; see `rlm.units.block` for what that is."""
        out = self.out.get(unit)
        if out is None or out.given_up:
            return _GIVEN_UP
        match what:
            case "events":
                return self._events(out, body)
            case "lease":
                return self._lease(out, LeaseAsk.of_bytes(body))
            case "lines":
                return await self._lines(out, body)
            case "drained":
                self._seats.drained(out.seat, out.slots)
            case "began":
                self._began(out, body.decode())
            case "known":
                return pack_known(out.work.known)
            case "block":
                return Sent.pack(self._spool, out.work.block.ordinals)
            case _:
                raise InternalError(f"the unit {unit!r} asks {what!r}, which nobody knows")
        return b""

    def _events(self, out: Out, lines: bytes) -> bytes:
        for line in lines.splitlines():
            event = read_event(line)
            match event:
                case CallFinished() | CallFailed():
                    out.trace.told.add(ContentKey(event.key))
                case _:
                    pass
            self._emit(event)
        return b""

    def _lease(self, out: Out, ask: LeaseAsk) -> bytes:
        out.reported += ask.drawn
        lease = self._seats.renew(out.seat, ask)
        if isinstance(lease, Halted):
            return pack_halted(lease)
        out.slots = lease.slots
        return lease.to_json()

    async def _lines(self, out: Out, lines: bytes) -> bytes:
        try:
            await self._journal.take(lines)
        except DiskFault as fault:
            self.fault = fault
            return fault.what.encode()
        for line in lines.splitlines():
            out.trace.take(line)
        return b""

    def _began(self, out: Out, segment: str) -> None:
        """Note where in its segment a unit begins: what stands before is told already."""
        path = self._directory / "journal" / Path(segment).name
        out.segment = path
        out.begin = path.stat().st_size if path.exists() else 0
