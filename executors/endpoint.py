"""One endpoint: a cap on calls in flight, one shared cool-down, and the only retry layer.

The loop is our own. What a retry library brings is a wait and a stop on the machine's clock; here
the wait has the server's floor, is shared by all callers, runs on the injected clock, and happens
without holding a slot, so that nothing of it would be left to use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TypeVar

from executors.clock import Clock
from executors.errors import (
    ModelError,
    RateLimited,
    RetriesExhausted,
    ServerFault,
    ValidationError,
)
from executors.gate.allowance import Allowance
from executors.slots import Slots

__all__ = ["Endpoint", "OnRetry", "RetryPolicy"]

T = TypeVar("T")
# Longer wishes are told as one; dates end sooner than floats.
_CENTURY = 100 * 365 * 86_400.0
OnRetry = Callable[[int, ModelError, float], Awaitable[None]]
"""Awaited before each wait, without a slot: number of the failed try (from 1), its error, the wait
in seconds. What it raises ends the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to try.

    A wait is drawn evenly from 0 up to `first * 2**(tries - 1)`, at most `longest`; a server's own
    wish is waited out in full even where it is longer.
    """

    attempts: int = 5
    """Tries of one call, the first included; 1 never tries again."""
    seconds: float = 300.0
    """From the first try on; a wait that would reach beyond it is not begun."""
    first: float = 1.0
    """Seconds."""
    longest: float = 60.0
    """Seconds."""

    def __post_init__(self) -> None:
        if isinstance(self.attempts, bool) or self.attempts < 1:
            raise ValidationError(
                f"attempts={self.attempts!r} is no number of tries", hint="give 1 or more"
            )
        for name in ("seconds", "first", "longest"):
            value: float = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValidationError(
                    f"{name}={value!r} is no time", hint="give a finite number of seconds >= 0"
                )

    def backoff(self, tries: int, random: Random) -> float:
        """Return the wait after so many failed tries, in seconds: full jitter."""
        return random.uniform(0.0, min(self.longest, self.first * 2.0 ** min(tries - 1, 60)))


class Endpoint:
    """A server as one shared resource.

    Args:
        cap: calls in flight; a call that waits for its next try is not in flight.
        random: where jitter comes from.
        allowance: whose deadline ends each wait; None knows no deadline.
    """

    def __init__(
        self,
        *,
        cap: int,
        retry: RetryPolicy,
        clock: Clock,
        random: Random | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        if cap < 1:
            raise ValidationError(f"cap={cap!r} lets no call through", hint="give 1 or more")
        self._slots = Slots(cap)
        self._retry = retry
        self._clock = clock
        self._random = random or Random()
        self._allowance = allowance
        self._closed_until = float("-inf")
        """Before this time nobody sends: the server asked for it."""
        self._closed_where: str | None = None

    async def run(self, attempt: Callable[[], Awaitable[T]], *, on_retry: OnRetry) -> tuple[T, int]:
        """Return the attempt's value and how many requests it took.

        Raises:
            RetriesExhausted: more than one try failed, the last one in a way that could pass.
            ModelError: the only try failed, or one in a way that no other try can pass.
            Halted: the run's deadline came before the next try.
        """
        tries = sent = 0
        started = self._clock.monotonic()
        while True:
            try:
                await self._enter(started, again=tries > 0)
                try:
                    value = await attempt()
                finally:
                    self._slots.give()
            except ModelError as error:
                tries += 1
                sent += error.attempts
                wait = self._wait_after(error, tries, started)
                if wait is None:
                    if tries > 1 and error.retryable:
                        raise RetriesExhausted(last=error, attempts=sent) from error
                    error.attempts = sent
                    raise
                failed = error
            else:
                self._slots.widen()
                return value, sent + 1
            await on_retry(tries, failed, wait)
            await self._sleep(wait)

    async def _enter(self, started: float, *, again: bool) -> None:
        """Return with a slot, and not while the server wants to be left alone."""
        await self._take(again=again)
        while (closed := self._closed_until - (now := self._clock.monotonic())) > 0:
            self._slots.give()
            if now + closed > started + self._retry.seconds:
                raise self._still_closed(closed)
            await self._sleep(closed)
            await self._take(again=again)

    async def _take(self, *, again: bool) -> None:
        """Wait for a slot; one that comes after the deadline is given back.

        Those who hold the slots end by themselves, each within the total bound of its call.
        """
        await self._slots.take(again=again)
        if self._allowance is not None and self._allowance.seconds_left() <= 0:
            self._slots.give()
            raise self._allowance.out_of_time()

    async def _sleep(self, seconds: float) -> None:
        """Wait, at most until the deadline."""
        left = float("inf") if self._allowance is None else self._allowance.seconds_left()
        await self._clock.sleep(min(seconds, left))
        if self._allowance is not None and seconds >= left:
            raise self._allowance.out_of_time()

    def _wait_after(self, error: ModelError, tries: int, started: float) -> float | None:
        """Return how long to wait after a failure; None when this was the last try."""
        if not error.retryable:
            return None
        now = self._clock.monotonic()
        wait = self._retry.backoff(tries, self._random)
        wish = _wish_of(error)
        if wish is not None:
            # Those who were told the same must not come back together.
            wait = max(wait, wish + self._random.uniform(0.0, self._retry.first))
        if wish is not None or isinstance(error, RateLimited):
            self._closed_until = max(self._closed_until, now + wait)
            self._closed_where = error.where
            self._slots.narrow()
        if now + wait > started + self._retry.seconds:
            if wish is not None:
                error.hint = self._reset_in(wish)
            return None
        return wait if tries < self._retry.attempts else None

    def _still_closed(self, seconds: float) -> RateLimited:
        error = RateLimited(
            "not sent: the server asked to be left alone for longer than a call may wait",
            where=self._closed_where,
            hint=self._reset_in(seconds),
            retry_after=seconds,
        )
        error.attempts = 0
        return error

    def _reset_in(self, seconds: float) -> str:
        when = self._clock.now() + timedelta(seconds=min(seconds, _CENTURY))
        return (
            f"the server resets in {seconds:,.0f} s, at {when:%Y-%m-%d %H:%M:%S} UTC; a call tries "
            f"for {self._retry.seconds:g} s: come back then, or allow longer tries"
        )


def _wish_of(error: ModelError) -> float | None:
    return error.retry_after if isinstance(error, RateLimited | ServerFault) else None
