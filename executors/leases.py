"""What one process of several may use: a share of the limits, and a slice of what may be spent.

The coordinator owns both. Shares are even, and no share is given that another still holds: whoever
comes gets what is free, the others give theirs up when they renew. A slice is set aside in the
coordinator's allowance before it is handed out, and charged as the worker reports; so what live
leases may use, and what was used, are within the bounds at every moment.

A lease that is not renewed in time lapses: its share is free at once, its slice stays set aside
until somebody knows what was made of it, since a worker that died may have spent it all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from executors.clock import Clock
from executors.endpoint.buckets import Limits
from executors.errors import ValidationError
from executors.gate.allowance import Drawn, Estimate, Full, Growing, Reservation

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Lease", "LeaseBook"]

# What a refusal leaves of the known limits, and what a calm lease's length adds to it.
_LESS, _MORE = 0.9, 0.05
# How often a slice that finds no room is halved.
_HALVES = 8
# Below this share of a limit a remainder is what sums of floats leave.
_HAIR = 1e-9
_NOTHING = Decimal(0)
_ONE = Estimate(calls=1, tokens=0, usd=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What a worker may use until `expires`, or until it gets the next one."""

    worker: str
    slots: int
    """Calls in flight; 0 where all are held by others: renew, and there will be some."""
    rpm: float | None
    """Requests a minute; None where no limit is known."""
    tpm: float | None
    calls: int
    """What it may spend from its last report on, what is in flight included."""
    tokens: int
    usd: Decimal
    expires: datetime
    """By the coordinator's clock; those of the machines have to agree within `LeaseBook.grace`."""

    @property
    def limits(self) -> Limits | None:
        """The share of the limits, as an endpoint takes it."""
        if self.rpm is None and self.tpm is None:
            return None
        return Limits(rpm=self.rpm, tpm=self.tpm)

    def to_json(self) -> bytes:
        """Return the lease as JSON."""
        return _adapter().dump_json(self)

    @staticmethod
    def from_json(raw: bytes) -> Lease:
        """Return a lease from its JSON."""
        return _adapter().validate_json(raw)


@dataclass(slots=True)
class _Holder:
    lease: Lease
    reservation: Reservation
    until: float
    """Monotonic; the grace is over then."""


class LeaseBook:
    """Hands out leases and takes them back.

    Args:
        slots: calls in flight of all workers together.
        limits: those of all workers together.
        allowance: what the run may spend.
        block: what a slice is filled up to where there is room.
        seconds: how long a lease holds.
        grace: how long after that it is taken for lapsed.
    """

    def __init__(
        self,
        *,
        slots: int,
        allowance: Growing,
        clock: Clock,
        limits: Limits | None = None,
        block: Estimate | None = None,
        seconds: float = 30.0,
        grace: float = 5.0,
    ) -> None:
        if slots < 1:
            raise ValidationError(f"slots={slots!r} lets no call through", hint="give 1 or more")
        self._slots = slots
        self._limits = limits or Limits()
        self._allowance = allowance
        self._clock = clock
        self._block = block or Estimate(calls=64, tokens=200_000, usd=Decimal("0.25"))
        self._seconds = seconds
        self.grace = grace
        self._holders: dict[str, _Holder] = {}
        self._lapsed: dict[str, Reservation] = {}
        self._borne = 1.0
        """The share of the limits that is handed out: less after refusals."""
        self._refused_at = float("-inf")

    @property
    def live(self) -> tuple[Lease, ...]:
        """The leases that are held now."""
        self._lapse()
        return tuple(holder.lease for holder in self._holders.values())

    def join(self, worker: str, *, need: Estimate = _ONE) -> Lease | Full:
        """Hand out a first lease.

        Args:
            need: the worst case of the call that waits; where there is no room even for that,
                the answer is what the allowance says.
        """
        self._lapse()
        if worker in self._holders or worker in self._lapsed:
            raise ValidationError(
                f"worker {worker!r} has a lease already", hint="renew it, or give each its own name"
            )
        reservation = self._allowance.reserve(Estimate(calls=0, tokens=0, usd=None))
        if isinstance(reservation, Full):
            return reservation
        full = self._fill(reservation, need)
        if full is not None:
            self._allowance.release(reservation)
            return full
        return self._hand_out(worker, reservation)

    def renew(
        self,
        worker: str,
        drawn: Drawn,
        *,
        need: Estimate = _ONE,
        refused: bool = False,
        idle: bool = False,
    ) -> Lease | Full:
        """Take a report and hand out the next lease; what waits for room waits for the one after.

        A halt is what the worker's calls end with; what is in flight still ends, and `leave` tells
        of it.

        Args:
            drawn: what was used since the last report.
            refused: the worker met a 429: for a while all shares are smaller.
            idle: it has nothing in flight. What its slice still holds is then of no use to it where
                the need finds no room, and goes back: two that each hold half of what either needs
                would wait for each other for ever.

        Raises:
            ValidationError: the worker holds no lease, or it has lapsed.
        """
        self._lapse()
        holder = self._holders.get(worker)
        if holder is None:
            raise ValidationError(
                f"worker {worker!r} holds no lease",
                hint="one that has lapsed is settled, not renewed",
            )
        self._allowance.draw(holder.reservation, drawn)
        self._adapt(refused=refused)
        full = self._fill(holder.reservation, need)
        if full is not None and idle and not full.final:
            full = self._filled_anew(holder, need)
        if full is not None and full.final:
            return full
        return self._hand_out(worker, holder.reservation)

    def leave(self, worker: str, drawn: Drawn) -> None:
        """Take a last report; what was not used is free again. Also settles a lapsed lease."""
        self._lapse()
        reservation = self._lapsed.pop(worker, None)
        if reservation is None:
            holder = self._holders.get(worker)
            if holder is None:
                raise ValidationError(
                    f"worker {worker!r} holds no lease", hint="each lease is given back once"
                )
            self._allowance.draw(holder.reservation, drawn)
            self._give_back(worker)
            return
        self._allowance.draw(reservation, drawn)
        self._allowance.release(reservation)

    def lapsed(self) -> dict[str, Drawn]:
        """Return what each worker that did not renew may have spent at most since its last report.

        Settle each with `leave`: with what its journal shows, or with all of this.
        """
        self._lapse()
        return {worker: _most(held.estimate) for worker, held in self._lapsed.items()}

    def _lapse(self) -> None:
        now = self._clock.monotonic()
        for worker in [name for name, holder in self._holders.items() if holder.until <= now]:
            self._lapsed[worker] = self._holders.pop(worker).reservation

    def _give_back(self, worker: str) -> None:
        self._allowance.release(self._holders.pop(worker).reservation)

    # ---------------------------------------------------------------- slices

    def _fill(self, reservation: Reservation, need: Estimate) -> Full | None:
        """Fill a slice up to a block, or as far as there is room; the need at least, or say why."""
        held, block = reservation.estimate, self._block
        for _ in range(_HALVES):
            if self._allowance.grow(reservation, _missing(held, need, block)) is None:
                return None
            block = Estimate(
                calls=block.calls // 2, tokens=block.tokens // 2, usd=(block.usd or _NOTHING) / 2
            )
        return self._allowance.grow(reservation, _missing(held, need, need))

    def _filled_anew(self, holder: _Holder, need: Estimate) -> Full | None:
        """Give a whole slice back and fill it again, or leave it empty and say why."""
        empty = self._allowance.reserve(Estimate(calls=0, tokens=0, usd=None))
        if isinstance(empty, Full):
            return empty
        self._allowance.release(holder.reservation)
        holder.reservation = empty
        return self._fill(empty, need)

    # ---------------------------------------------------------------- shares

    def _adapt(self, *, refused: bool) -> None:
        now = self._clock.monotonic()
        calm = (now - self._refused_at) / self._seconds
        if refused and calm >= 1.0:  # workers tell of one and the same refusal
            self._borne, self._refused_at = self._borne * _LESS, now
        elif not refused and calm >= 1.0 and self._borne < 1.0:
            self._borne, self._refused_at = min(1.0, self._borne + _MORE), now

    def _hand_out(self, worker: str, reservation: Reservation) -> Lease:
        others = [holder.lease for name, holder in self._holders.items() if name != worker]
        held, count = reservation.estimate, len(others) + 1
        slots = min(-(-self._slots // count), self._slots - sum(one.slots for one in others))
        rpm = self._share(self._limits.rpm, [one.rpm for one in others])
        tpm = self._share(self._limits.tpm, [one.tpm for one in others])
        lease = Lease(
            worker=worker,
            slots=0 if rpm == 0 or tpm == 0 else slots,
            rpm=rpm,
            tpm=tpm,
            calls=held.calls,
            tokens=held.tokens,
            usd=held.usd or _NOTHING,
            expires=self._clock.now() + timedelta(seconds=self._seconds),
        )
        until = self._clock.monotonic() + self._seconds + self.grace
        self._holders[worker] = _Holder(lease, reservation, until)
        return lease

    def _share(self, limit: float | None, others: list[float | None]) -> float | None:
        if limit is None:
            return None
        free = limit - sum(one or 0.0 for one in others)
        share = min(limit * self._borne / (len(others) + 1), free)
        return share if share > limit * _HAIR else 0.0


def _missing(held: Estimate, need: Estimate, block: Estimate) -> Estimate:
    """Return what a slice lacks to hold a block, and what is needed."""
    usd = max(need.usd or _NOTHING, block.usd or _NOTHING) - (held.usd or _NOTHING)
    return Estimate(
        calls=max(0, max(need.calls, block.calls) - held.calls),
        tokens=max(0, max(need.tokens, block.tokens) - held.tokens),
        usd=max(_NOTHING, usd),
    )


def _most(held: Estimate) -> Drawn:
    return Drawn(calls=held.calls, tokens=held.tokens, usd=held.usd or _NOTHING)


@cache
def _adapter() -> TypeAdapter[Lease]:
    # pydantic takes a while to load, and one process alone needs no leases.
    from pydantic import TypeAdapter

    return TypeAdapter(Lease)
