"""One endpoint: slots, known limits, the pace that is borne, and the only retry layer.

The loop is our own. What a retry library brings is a wait and a stop on the machine's clock; here
the wait is shared by all callers, has the server's floor, runs on the injected clock, and happens
without holding a slot, so that nothing of it would be left to use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random
from typing import TypeGuard, TypeVar

from executors.clock import Clock
from executors.endpoint.buckets import Limits, Meter
from executors.endpoint.pacing import Pace
from executors.endpoint.retry import RetryPolicy
from executors.endpoint.slots import Slots
from executors.endpoint.turns import Turns
from executors.errors import (
    ContextExceeded,
    ModelError,
    OutOfQuota,
    RateLimited,
    RetriesExhausted,
    ServerFault,
)
from executors.gate.allowance import Allowance

__all__ = ["Endpoint", "OnRetry", "RetryPolicy", "Warn"]

T = TypeVar("T")
_INF = float("inf")
# Longer wishes are told as one; dates end sooner than floats.
_CENTURY = 100 * 365 * 86_400.0
# Refusals from which on the rate that was found is worth telling.
_TELLING = 3
OnRetry = Callable[[int, ModelError, float], Awaitable[None]]
"""Awaited before each wait, without a slot: number of the failed try (from 1), its error, the wait
in seconds as far as it is known. What it raises ends the call."""
Warn = Callable[[str, str], None]
"""Told, once a kind, what the reader of a result should know: a code and a sentence."""


class Endpoint:
    """A server as one shared resource.

    Args:
        cap: calls in flight; a call that waits is not in flight.
        random: where jitter comes from.
        allowance: whose deadline ends each wait; None knows no deadline.
        limits: those that are known; what is not is found from refusals.
        warn: told when a server's wish was not waited out in full.
    """

    def __init__(
        self,
        *,
        cap: int,
        retry: RetryPolicy,
        clock: Clock,
        random: Random | None = None,
        allowance: Allowance | None = None,
        limits: Limits | None = None,
        warn: Warn | None = None,
    ) -> None:
        self._retry = retry
        self._clock = clock
        self._random = random or Random()
        self._allowance = allowance
        self._warn = warn
        self._slots = Slots(cap)
        self._pace = Pace(retry, self._random)
        self._turns = Turns(
            self._slots,
            self._pace,
            clock,
            meter=None if limits is None else Meter(limits, clock.monotonic()),
            allowance=allowance,
        )
        self.most_tokens: float | None = None
        """Tokens a minute of the server, where the limits held here are one share of several."""
        self._spent: RateLimited | ServerFault | None = None
        """What says that the server wants to be left alone for longer than a call may wait."""

    @property
    def rate(self) -> float:
        """Calls a second that the server was found to bear; infinite where it refused none."""
        return self._pace.rate

    @property
    def in_flight(self) -> int:
        """Calls that were sent and not answered yet."""
        return self._slots.taken

    @property
    def advice(self) -> str | None:
        """What the reader should know of a rate that was found; None where it was not refused much."""
        pace = self._pace
        a_minute = _rounded_down(60 * (pace.borne or 0.0))
        if pace.refusals < _TELLING or a_minute < 1:
            return None
        return (
            f"the server refused {pace.refusals:,} requests; about {a_minute:,} a minute went "
            f"through: --rpm {a_minute}"
        )

    def resize(self, *, cap: int, limits: Limits | None) -> None:
        """Go on with another cap and other limits, as a lease that was divided anew gives them."""
        now = self._clock.monotonic()
        self._slots.resize(cap)
        meter = self._turns.meter
        if limits is None or meter is None:
            self._turns.meter = None if limits is None else Meter(limits, now)
        else:
            meter.change(limits, now)
        self._turns.serve()

    def check(self, tokens: int) -> None:
        """Refuse a call that the limit on tokens can never let through: it alone is too long.

        Raises:
            ContextExceeded: its worst case is above the tokens of a whole minute.
        """
        meter = self._turns.meter
        limit = None if meter is None else self.most_tokens or meter.limits.tpm
        if limit is None or tokens <= limit:
            return
        raise ContextExceeded(
            f"a call of up to {tokens:,} tokens is above the limit of {limit:,.0f} tokens a minute",
            hint="use fewer items a window (--window), or raise the limit if the account has more",
        )

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        on_retry: OnRetry,
        tokens: int = 0,
        used: Callable[[T], int | None] | None = None,
    ) -> tuple[T, int]:
        """Return the attempt's value and how many requests it took.

        Args:
            tokens: the worst case of one try, held against the limit of tokens a minute.
            used: what a value used of it; None is unknown.

        Raises:
            RetriesExhausted: more than one try failed, the last one in a way that could pass.
            ModelError: the only try failed, or one in a way that no other try can pass.
            OutOfQuota: the server takes no calls for longer than a call may wait.
            Halted: the run's deadline came before the next try.
        """
        tries = sent = 0
        until = _INF
        failed: ModelError | None = None
        while True:
            now = self._clock.monotonic()
            if not self._turns.go(now):
                await self._turn(tokens, tries=tries, until=until, failed=failed, sent=sent)
                now = self._clock.monotonic()
            if failed is None:
                until = now + self._retry.seconds
            epoch, flight = self._pace.epoch, self._slots.taken
            try:
                value = await attempt()
            except ModelError as error:
                tries += 1
                sent += error.attempts
                self._refund(error, tokens)
                wait = self._wait_after(error, tries=tries, until=until, epoch=epoch, flight=flight)
                if wait is None:
                    last = _last(error, tries, sent)
                    if last is error:
                        raise
                    raise last from error
                failed = error
            else:
                self._slots.answered(flight)
                if epoch or self._turns.meter is not None:
                    self._borne(epoch, tokens, None if used is None else used(value))
                return value, sent + 1
            finally:
                self._turns.give()
            await on_retry(tries, failed, wait)
            if not _closes(failed):
                await self._sleep(wait)

    async def _turn(
        self, tokens: int, *, tries: int, until: float, failed: ModelError | None, sent: int
    ) -> None:
        """Wait for a turn that is not at once."""
        closed = self._pace.closed_until - self._clock.monotonic()
        if self._spent is not None and closed > 0:
            raise self._out_of_quota(self._spent)
        in_time = until >= self._pace.closed_until
        if in_time and await self._turns.take(tokens, tries=tries, until=until):
            return
        assert failed is not None
        raise _last(failed, tries, sent)

    async def _sleep(self, seconds: float) -> None:
        """Wait for a try of one's own, at most until the deadline."""
        left = _INF if self._allowance is None else self._allowance.seconds_left()
        await self._clock.sleep(min(seconds, left))
        if self._allowance is not None and seconds >= left:
            raise self._allowance.out_of_time()

    def _borne(self, epoch: int, tokens: int, used: int | None) -> None:
        """Count an answer where that changes anything."""
        now = self._clock.monotonic()
        if self._turns.meter is not None and used is not None:
            self._turns.meter.correct(used - tokens, now)
        self._pace.answered(epoch, now)

    def _refund(self, error: ModelError, tokens: int) -> None:
        """Give the tokens back that a failed try did not use."""
        if self._turns.meter is not None and not error.maybe_paid:
            self._turns.meter.correct(-tokens, self._clock.monotonic())

    def _wait_after(
        self, error: ModelError, *, tries: int, until: float, epoch: int, flight: int
    ) -> float | None:
        """Return how long to wait after a failure; None when this was the last try.

        Raises:
            OutOfQuota: the server's wish is longer than any call may wait.
        """
        if not error.retryable:
            return None
        now = self._clock.monotonic()
        if _closes(error):
            self._close(error, epoch, tries, now, flight)
            wait = self._pace.closed_until - now
        else:
            wait = self._retry.backoff(tries, self._random)
        if now + wait > until:
            if _closes(error):
                error.hint = self._reset_in(wait)
            return None
        return wait if tries < self._retry.attempts else None

    def _close(
        self, error: RateLimited | ServerFault, epoch: int, tries: int, now: float, flight: int
    ) -> None:
        """Let nobody go until the server may be asked again."""
        wish = error.retry_after
        too_late = wish is not None and wish > self._retry.seconds
        if wish is not None and not too_late and wish > self._retry.longest_wait:
            self._tell(wish)
            wish = self._retry.longest_wait
        anew = epoch == self._pace.epoch
        crowded = anew and self._slots.refused(flight)
        fewest = self._turns.fewest(tries)
        self._pace.refused(epoch, now, wish=wish, tries=fewest, crowded=crowded)
        if anew:
            self._spent = None
        if too_late:
            self._spent = error
            self._turns.dismiss(lambda: self._out_of_quota(error))
            raise self._out_of_quota(error) from error
        self._turns.dismiss()

    def _tell(self, wish: float) -> None:
        if self._warn is not None:
            self._warn(
                "long-wait",
                f"the server asked to be left alone for {wish:,.0f} s; it is asked again after "
                f"{self._retry.longest_wait:g} s, the longest wait allowed",
            )
            self._warn = None

    def _out_of_quota(self, error: RateLimited | ServerFault) -> OutOfQuota:
        seconds = self._pace.closed_until - self._clock.monotonic()
        return OutOfQuota(last=error, resume_after=self._in(seconds))

    def _reset_in(self, seconds: float) -> str:
        return (
            f"the server resets in {seconds:,.0f} s, at {self._in(seconds):%Y-%m-%d %H:%M:%S} UTC; "
            f"a call tries for {self._retry.seconds:g} s: come back then, or allow longer tries"
        )

    def _in(self, seconds: float) -> datetime:
        return self._clock.now() + timedelta(seconds=min(seconds, _CENTURY))


def _rounded_down(rate: float) -> int:
    """Return a rate to two digits, and never more than it is."""
    unit: int = 10 ** max(0, len(str(int(rate))) - 2)
    return int(rate) // unit * unit


def _closes(error: ModelError) -> TypeGuard[RateLimited | ServerFault]:
    """Whether it speaks of the server and not of this call."""
    if isinstance(error, RateLimited):
        return True
    return isinstance(error, ServerFault) and error.retry_after is not None


def _last(error: ModelError, tries: int, sent: int) -> ModelError:
    """Return what a call ends with whose last try failed so."""
    if tries > 1 and error.retryable:
        return RetriesExhausted(last=error, attempts=sent)
    error.attempts = sent
    return error
