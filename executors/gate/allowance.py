"""What a run may still spend: reserve the worst case in one step, settle with what was used.

Definitions. The wall clock runs from the first reservation and does not stop for pauses. At its
end, the deadline, no request leaves any more and every wait for a next try ends in a halt; what is
in flight may still be answered, within the total bound of its own call, since it may be billed
anyway. One logical call counts once, however many attempts it took, and also where it failed: so
the requests of a run are at most `calls` times the tries of a call. Its tokens and cost are those
of the answer; a failure that cannot have been billed has none. A call whose usage the server did
not report is charged its whole reservation. An unknown price draws nothing on the USD bound, and
the run is marked unpriced by whoever folds its events.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Protocol

from executors.clock import Clock
from executors.errors import Halted, ValidationError
from executors.ids import NodeId
from executors.messages import CallRole

__all__ = [
    "Allowance",
    "Caps",
    "CapsAllowance",
    "Drawn",
    "Estimate",
    "Full",
    "Growing",
    "Reservation",
    "Tag",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Finite bounds of a run."""

    calls: int = 100_000
    tokens: int = 200_000_000
    usd: Decimal = Decimal(10)
    seconds: float = 86_400.0

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "usd", "seconds"):
            value: object = getattr(self, name)
            if not _is_amount(value):
                raise ValidationError(
                    f"{name}={value!r} is not a bound", hint="give a finite number >= 0"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The worst case of one call."""

    tokens: int
    usd: Decimal | None
    """None when the price is unknown."""
    calls: int = 1
    """0 for a further try of a call that was counted before."""


class Tag(Protocol):
    """Whose call it is. The pipeline passes what it has of each call anyway, so it costs nothing."""

    @property
    def role(self) -> CallRole:
        """What the call is for."""
        ...

    @property
    def node(self) -> NodeId:
        """Where in the tree it is made."""
        ...

    @property
    def model(self) -> str:
        """The spec of the model that is asked."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Reservation:
    """A worst case set aside; settled or released exactly once."""

    estimate: Estimate
    open: bool = True
    tag: Tag | None = None
    """Whose it is; None where it stands for many calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What was used."""

    calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        _check(min(self.calls, self.tokens), self.usd)

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """No room now. `final` when even the settling of what is in flight could not make room."""

    halted: Halted
    final: bool
    again: float | None = None
    """Seconds after which to look again, since other processes may have made room by then; None where
    only what is in flight here can make any."""


class Allowance(Protocol):
    """A budget that is never passed, whatever the interleaving."""

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        """Set the worst case aside in one atomic step, or say why not.

        Args:
            tag: whose call it is, for whoever keeps books.
        """
        ...

    async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
        """Ask whoever may give more than there is; True where it is worth trying again.

        Args:
            halted: what a reservation of the estimate came to, for good.
        """
        ...

    def settle(self, reservation: Reservation, *, tokens: int | None, usd: Decimal | None) -> bool:
        """Replace a reservation by what was used; None charges the reservation.

        Returns:
            True when the actual was above its reservation: an overrun, which halts the run.
        """
        ...

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: the call never left."""
        ...

    def seconds_left(self) -> float:
        """Return the seconds until the deadline, 0.0 from there on."""
        ...

    def out_of_time(self) -> Halted:
        """Return what is raised where the deadline ends a wait."""
        ...


class Growing(Allowance, Protocol):
    """An allowance of which others hold parts: a part is one reservation, for many calls."""

    @property
    def caps(self) -> Caps:
        """The bounds that hold now."""
        ...

    @property
    def drawn(self) -> Drawn:
        """What was used until now, without what is set aside."""
        ...

    def grow(self, reservation: Reservation, more: Estimate) -> Full | None:
        """Set more aside under a reservation that stands for many calls, or say why not."""
        ...

    def draw(self, reservation: Reservation, drawn: Drawn) -> bool:
        """Charge what was used of such a reservation; the rest stays set aside. True for an overrun."""
        ...


class CapsAllowance:
    """The default: caps kept in memory, for one run in one process.

    Args:
        calls, tokens, usd: what earlier sessions of the run drew already. Each session has the
            whole of the seconds.
    """

    def __init__(
        self,
        caps: Caps,
        clock: Clock,
        *,
        scope: str = "run",
        calls: int = 0,
        tokens: int = 0,
        usd: Decimal = Decimal(0),
    ) -> None:
        self.caps = caps
        self._clock = clock
        self._scope = scope
        self._lock = Lock()
        self._started: float | None = None
        self._calls, self._tokens, self._usd = calls, tokens, usd
        self._held_calls = self._held_tokens = 0
        self._held_usd = Decimal(0)
        self._overrun: Halted | None = None

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        _check(estimate.tokens, estimate.usd)
        with self._lock:
            full = self._obstacle(estimate)
            if full is not None:
                return full
            self._hold(estimate)
            return Reservation(estimate=estimate, tag=tag)

    async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
        """Return False: nobody is here who could give more."""
        del halted, estimate
        return False

    def grow(self, reservation: Reservation, more: Estimate) -> Full | None:
        _check(more.tokens, more.usd)
        with self._lock:
            full = self._obstacle(more)
            if full is None:
                self._hold(more)
                held = reservation.estimate
                reservation.estimate = Estimate(
                    calls=held.calls + more.calls,
                    tokens=held.tokens + more.tokens,
                    usd=(held.usd or Decimal(0)) + (more.usd or Decimal(0)),
                )
            return full

    def draw(self, reservation: Reservation, drawn: Drawn) -> bool:
        held = reservation.estimate
        left = Estimate(
            calls=max(0, held.calls - drawn.calls),
            tokens=max(0, held.tokens - drawn.tokens),
            usd=max(Decimal(0), (held.usd or Decimal(0)) - drawn.usd),
        )
        with self._lock:
            self._let_go(reservation)
            self._hold(left)
            reservation.estimate, reservation.open = left, True
            self._calls += drawn.calls
            self._tokens += drawn.tokens
            self._usd += drawn.usd
            return self._overran(
                tokens=drawn.tokens > held.tokens, usd=drawn.usd > (held.usd or Decimal(0))
            )

    def settle(self, reservation: Reservation, *, tokens: int | None, usd: Decimal | None) -> bool:
        _check(tokens, usd)
        held = reservation.estimate
        with self._lock:
            self._let_go(reservation)
            self._calls += held.calls
            used = held.tokens if tokens is None else tokens
            self._tokens += used
            paid = held.usd if usd is None else usd
            dear = False
            if paid:  # most runs cost nothing, or nobody knows what
                self._usd += paid
                dear = held.usd is not None and paid > held.usd
            return self._overran(tokens=used > held.tokens, usd=dear)

    def release(self, reservation: Reservation) -> None:
        with self._lock:
            self._let_go(reservation)

    def seconds_left(self) -> float:
        """See `Allowance.seconds_left`; all of them before the first reservation."""
        started = self._started
        gone = 0.0 if started is None else self._clock.monotonic() - started
        return max(0.0, float(self.caps.seconds) - gone)

    def out_of_time(self) -> Halted:
        return self._halted("seconds", f"{self.caps.seconds:g} s")

    @property
    def is_idle(self) -> bool:
        """Whether nothing is set aside."""
        with self._lock:
            return not (self._held_calls or self._held_tokens or self._held_usd)

    @property
    def drawn(self) -> Drawn:
        with self._lock:
            return Drawn(calls=self._calls, tokens=self._tokens, usd=self._usd)

    def _overran(self, *, tokens: bool, usd: bool) -> bool:
        if tokens and self._tokens > self.caps.tokens:
            self._overrun = self._halted("tokens", f"{self.caps.tokens:,}")
        elif usd and self._usd > self.caps.usd:
            self._overrun = self._halted("usd", f"{self.caps.usd}")
        return tokens or usd

    def _hold(self, estimate: Estimate) -> None:
        self._held_calls += estimate.calls
        self._held_tokens += estimate.tokens
        if estimate.usd:
            self._held_usd += estimate.usd

    def _let_go(self, reservation: Reservation) -> None:
        if not reservation.open:
            raise ValidationError("a reservation is settled or released once, not twice")
        reservation.open = False
        estimate = reservation.estimate
        self._held_calls -= estimate.calls
        self._held_tokens -= estimate.tokens
        if estimate.usd:
            self._held_usd -= estimate.usd

    def _obstacle(self, estimate: Estimate) -> Full | None:
        if self._started is None:
            self._started = self._clock.monotonic()
        caps = self.caps
        if self._overrun is not None:
            return Full(halted=self._overrun, final=True)
        if self.seconds_left() <= 0:
            return Full(halted=self.out_of_time(), final=True)
        if estimate.calls and self._calls + self._held_calls + estimate.calls > caps.calls:
            final = self._calls + estimate.calls > caps.calls
            return Full(halted=self._halted("calls", f"{caps.calls:,}"), final=final)
        if self._tokens + self._held_tokens + estimate.tokens > caps.tokens:
            final = self._tokens + estimate.tokens > caps.tokens
            return Full(halted=self._halted("tokens", f"{caps.tokens:,}"), final=final)
        usd = estimate.usd
        if usd and self._usd + self._held_usd + usd > caps.usd:
            final = self._usd + usd > caps.usd
            return Full(halted=self._halted("usd", f"{caps.usd} USD"), final=final)
        return None

    def _halted(self, bound: str, limit: str) -> Halted:
        return Halted(
            bound=bound,
            scope=self._scope,
            limit=limit,
            hint=f"raise it with max_{bound}=… (--max-{bound}); what was answered so far is kept",
        )


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return Decimal(value).is_finite() and value >= 0


def _check(tokens: int | None, usd: object) -> None:
    """Refuse what would corrupt the sums: a reservation that is settled so stays held."""
    if tokens is not None and tokens < 0:
        raise ValidationError(f"tokens={tokens!r} is no amount", hint="give None when unknown")
    # Zero first: it is what most runs reserve, and costs nothing to see.
    good = isinstance(usd, Decimal) and (not usd or (usd.is_finite() and usd > 0))
    if usd is not None and not good:
        raise ValidationError(
            f"usd={usd!r} is no amount", hint="give a finite Decimal >= 0, or None when unknown"
        )
