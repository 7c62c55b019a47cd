"""The worker's side of a lease: an allowance that is filled up while it is used."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from executors.clock import Clock
from executors.errors import Halted
from executors.gate.allowance import Caps, CapsAllowance, Drawn, Estimate, Full, Reservation, Tag
from executors.leases import Lease

__all__ = ["LeaseAllowance"]

_NOTHING = Decimal(0)


class LeaseAllowance:
    """What a worker may spend: what its lease holds, and what the next ones bring.

    Where it is used up, calls wait: for what is in flight, or for the next lease. Whoever renews
    tells the pipeline, with `Calls.recheck`, that there may be room.

    Args:
        on_short: told what the call needs that found no room, so that the lease is renewed early.
    """

    def __init__(
        self, lease: Lease, clock: Clock, *, on_short: Callable[[Estimate], None] | None = None
    ) -> None:
        self._clock = clock
        self._on_short = on_short
        self._scope = f"the lease of {lease.worker}"
        self._reported = Drawn()
        self._halted: Halted | None = None
        self._lease = lease
        self._inner = CapsAllowance(self._caps(lease), clock, scope=self._scope)

    def report(self) -> Drawn:
        """Return what was used since the last report; each is handed over to the book once."""
        drawn, before = self._inner.drawn, self._reported
        self._reported = drawn
        return Drawn(
            calls=drawn.calls - before.calls,
            tokens=drawn.tokens - before.tokens,
            usd=drawn.usd - before.usd,
        )

    def pause(self) -> bool:
        """Let no call begin before the next lease, where nothing is in flight; return whether it is so."""
        idle = self._inner.is_idle
        if idle:
            used = self._inner.drawn
            self._inner.caps = Caps(calls=used.calls, tokens=used.tokens, usd=used.usd)
        return idle

    def extend(self, lease: Lease) -> None:
        """Go on with the lease that the last report was answered with."""
        self._lease = lease
        self._inner.caps = self._caps(lease)

    def end(self, halted: Halted) -> None:
        """Let no further call go: the book said so."""
        self._halted = halted

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        if self._halted is not None:
            return Full(halted=self._halted, final=True)
        if self.seconds_left() <= 0:
            return Full(halted=self.out_of_time(), final=True)
        got = self._inner.reserve(estimate, tag=tag)
        if isinstance(got, Reservation):
            return got
        if self._on_short is not None:
            self._on_short(estimate)
        return Full(halted=got.halted, final=False)

    async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
        """Return False: who could be asked for more was asked where the book is kept."""
        del halted, estimate
        return False

    def settle(self, reservation: Reservation, *, tokens: int | None, usd: Decimal | None) -> bool:
        return self._inner.settle(reservation, tokens=tokens, usd=usd)

    def release(self, reservation: Reservation) -> None:
        self._inner.release(reservation)

    def seconds_left(self) -> float:
        return max(0.0, (self._lease.expires - self._clock.now()).total_seconds())

    def out_of_time(self) -> Halted:
        return Halted(
            bound="lease",
            scope=self._scope,
            limit=f"{self._lease.expires:%H:%M:%S} UTC",
            hint="the coordinator did not renew it: is it still there?",
        )

    def _caps(self, lease: Lease) -> Caps:
        """A lease counts from the report that it answers."""
        before = self._reported
        return Caps(
            calls=before.calls + lease.calls,
            tokens=before.tokens + lease.tokens,
            usd=before.usd + lease.usd,
        )
