"""Rates in calls and tokens a minute, held by buckets that fill continuously. Pure: time is given.

A bucket fills with 59 sixtieths of its limit and holds a tenth of a second's worth, one call at
least, which is its burst: so no minute, wherever it begins, sees more than the limit, and hardly a
second does where a server counts by seconds and a stall is caught up with. At the start there is
one call in it. An amount larger than a burst goes when the bucket is full, and its debt is waited
out afterwards: then a minute may see more, by less than that amount.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from executors.errors import ValidationError

__all__ = ["Bucket", "Limits", "Meter"]

# Of a limit a minute: what fills a bucket in a second, and what it holds.
_FILLED, _BURST = 59 / 60 / 60, 1 / 60 / 10
# Sums of floats end a hair beside the whole; a wait for that hair might never end.
_HAIR = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server allows an account; None is unknown."""

    rpm: float | None = None
    """Requests a minute."""
    tpm: float | None = None
    """Tokens a minute, those of prompt and answer together."""

    def __post_init__(self) -> None:
        for name in ("rpm", "tpm"):
            value: object = getattr(self, name)
            if value is not None and not _is_rate(value):
                raise ValidationError(
                    f"{name}={value!r} is no limit a minute",
                    hint="give a finite number above 0, or None where it is unknown",
                )


def _is_rate(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value > 0


class Bucket:
    """Fills at `rate` a second up to `burst`; what is taken may leave it in debt.

    Args:
        level: what it starts with; None is a full bucket.
    """

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(
        self, rate: float, burst: float, *, now: float = 0.0, level: float | None = None
    ) -> None:
        self.rate = rate
        self.burst = burst
        self._level = burst if level is None else level
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until so much may be taken."""
        self._fill(now)
        missing = min(amount, self.burst) - self._level
        if missing <= _HAIR * max(1.0, amount):
            return 0.0
        return missing / self.rate

    def take(self, amount: float, now: float) -> None:
        """Take so much, whether it is there or not; a negative amount is given back."""
        self._fill(now)
        self._level = min(self.burst, self._level - amount)

    def change(self, rate: float, burst: float, now: float) -> None:
        """Go on at another rate with what is there."""
        self._fill(now)
        self.rate, self.burst = rate, burst
        self._level = min(self._level, burst)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self.burst, self._level + (now - self._at) * self.rate)
            self._at = now


class Meter:
    """The buckets of known limits: calls, and tokens at their worst until the usage is known."""

    __slots__ = ("_calls", "_tokens", "limits")

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self._calls = None if limits.rpm is None else _of_calls(limits.rpm, now)
        self._tokens = None if limits.tpm is None else _of_tokens(limits.tpm, now)

    def wait(self, tokens: int, now: float) -> float:
        """Return the seconds until a call of so many tokens may leave."""
        calls = 0.0 if self._calls is None else self._calls.wait(1.0, now)
        return calls if self._tokens is None else max(calls, self._tokens.wait(tokens, now))

    def take(self, tokens: int, now: float) -> None:
        """Count a call that leaves."""
        if self._calls is not None:
            self._calls.take(1.0, now)
        self.correct(tokens, now)

    def undo(self, tokens: int, now: float) -> None:
        """Give back what was taken for a call that did not leave."""
        if self._calls is not None:
            self._calls.take(-1.0, now)
        self.correct(-tokens, now)

    def correct(self, tokens: int, now: float) -> None:
        """Take what a call used beyond its estimate; a negative number is given back."""
        if self._tokens is not None:
            self._tokens.take(float(tokens), now)

    def change(self, limits: Limits, now: float) -> None:
        """Hold other limits from now on; debts stay."""
        made = Meter(limits, now)
        self._calls = _went_on(self._calls, made._calls, now)
        self._tokens = _went_on(self._tokens, made._tokens, now)
        self.limits = limits


def _of_calls(rpm: float, now: float) -> Bucket:
    return Bucket(rpm * _FILLED, max(1.0, rpm * _BURST), now=now, level=1.0)


def _of_tokens(tpm: float, now: float) -> Bucket:
    return Bucket(tpm * _FILLED, tpm * _BURST, now=now)


def _went_on(old: Bucket | None, new: Bucket | None, now: float) -> Bucket | None:
    if old is None or new is None:
        return new
    old.change(new.rate, new.burst, now)
    return old
