"""The pace that a server bears, found from its refusals. Pure: time and chance are given.

A refusal closes the endpoint for everybody: as long as the server wishes, else for a short while
that doubles with each refusal in a row. When it opens again, calls leave at the rate that the time
since the opening before has shown to be borne, the closed time included: which holds for buckets
that fill and for windows of a second or a minute alike. From there the rate grows: twofold each
third of a second as long as no rate is known to be too high, else towards the one that was, and the
slower the nearer, since a server that makes everybody wait for each refusal must be refused rarely.
"""

from __future__ import annotations

from random import Random

from executors.endpoint.buckets import Bucket
from executors.endpoint.retry import RetryPolicy

__all__ = ["Pace"]

_INF = float("inf")
# A wait that nobody wished for, in calls at the present rate, and its least in seconds.
_GAP, _SHORTEST = 8.0, 0.05
# Wishes are whole seconds as a rule: one of a second says little about the true wait.
_ROUNDED = 1.0
# Of a rate that was refused: what is safe at most, and what is tried where nothing was borne.
_SAFE, _HALF = 0.9, 0.5
# Calls a second at least: what was seen may have been an accident.
_LEAST = 1 / 120
# Of a wish: what is waited beyond it, so that processes that were told the same come apart.
_APART = 0.1
# Seconds in which the rate doubles while no bound is known.
_DOUBLES = 0.3
# Seconds in which it comes back to a bound: so many times the closed time, since a refusal that
# costs little may come often; not sooner than the first, and with long windows at most the others.
_SOONEST, _RETURNS, _WINDOWS = 4.0, 20.0, 5.0
# How it comes back in that time: fast at first, slowly near the bound, and what is added beyond it.
_FAST, _NEAR, _SLOW, _BEYOND = 3.0, 0.96, 0.03, 0.5
# Seconds that are looked back at most, and those of calls that may leave late and together.
_LOOK_BACK, _LATE = 60.0, 0.1
# Seconds between two marks that the present rate is measured from.
_RECENT = 1.0


class Pace:
    """When the next call may leave, as far as refusals tell."""

    __slots__ = (
        "_binding",
        "_bucket",
        "_ceiling",
        "_closed_at",
        "_crowded",
        "_grown_at",
        "_last",
        "_mark",
        "_next_mark",
        "_policy",
        "_proven",
        "_random",
        "_refused",
        "_refused_rate",
        "_returns",
        "_sent",
        "_since",
        "_unopened",
        "_wished",
        "closed_until",
        "epoch",
        "in_a_row",
        "refusals",
    )

    def __init__(self, policy: RetryPolicy, random: Random) -> None:
        self._policy = policy
        self._random = random
        self._bucket: Bucket | None = None
        self._ceiling = _INF
        """The lowest rate that is known to be too high."""
        self._returns = _RETURNS
        self._refused_rate = _INF
        self._since = self._grown_at = self._closed_at = 0.0
        self._sent: int = 0
        self._refused: int = 0
        """Calls since the last opening, and those of them that were refused."""
        self._last: tuple[float, int] = (0.0, 0)
        """When the opening before the last one was, and how many calls were borne until the last."""
        self._mark = self._next_mark = (0.0, 0, 0.0)
        """Time, calls borne until then, and rate: of one to two seconds ago, and of later."""
        self._proven = False
        """Whether the closed time is known to be needed."""
        self._wished = self._crowded = self._binding = False
        self._unopened = True
        """Nothing has left since the endpoint was closed, or at all."""
        self.closed_until = -_INF
        self.epoch = 0
        """How often the endpoint was closed: the refusal of a call from before is no news."""
        self.in_a_row = 0
        """Refusals without an answer to a later call."""
        self.refusals = 0
        """Calls that were refused, all in all."""

    @property
    def bound(self) -> bool:
        """Whether anything was ever refused."""
        return self.epoch > 0

    @property
    def rate(self) -> float:
        """Calls a second; infinite as long as nothing was refused."""
        return _INF if self._bucket is None else self._bucket.rate

    @property
    def borne(self) -> float | None:
        """Calls a second that went through; None where refusals tell nothing of it."""
        if self._bucket is None or self._crowded or self.in_a_row:
            return None
        return min(self._bucket.rate, self._ceiling)

    def wait(self, now: float) -> float:
        """Return the seconds until a call may leave."""
        if now < self.closed_until:
            return self.closed_until - now
        if self._bucket is None or self._unopened:
            return 0.0
        seconds = self._bucket.wait(1.0, now)
        self._binding = self._binding or seconds > 0
        return seconds

    def leave(self, now: float) -> None:
        """Count a call that leaves."""
        if self._unopened:
            self._open(now)
        elif now - self._since > _LOOK_BACK:  # what was long ago weighs less
            self._forget_half(now)
        if now - self._next_mark[0] > _RECENT:
            self._mark, self._next_mark = self._next_mark, self._here(now)
        self._sent += 1
        if self._bucket is not None:
            self._bucket.take(1.0, now)

    def _forget_half(self, now: float) -> None:
        self._since = now - _LOOK_BACK / 2
        forgotten = self._sent - self._sent // 2
        self._sent -= forgotten
        self._mark, self._next_mark = (
            (at, borne - forgotten, rate) for at, borne, rate in (self._mark, self._next_mark)
        )

    def answered(self, epoch: int, now: float) -> None:
        """Count an answer; the rate grows where it is what calls have waited for."""
        if self._bucket is None or epoch != self.epoch:
            return
        self.in_a_row = 0
        if self._binding:
            self._grow(self._bucket, min(now - self._grown_at, _DOUBLES), now)
        self._grown_at, self._binding = now, False

    def refused(
        self, epoch: int, now: float, *, wish: float | None, tries: int, crowded: bool = False
    ) -> None:
        """Close the endpoint.

        Args:
            epoch: the one that the call left in.
            wish: the server's own, in seconds.
            tries: of the caller that has tried least among those who wait.
            crowded: the call lacked a slot, which says little about the rate.
        """
        self.refusals += 1
        if epoch != self.epoch:
            self.closed_until = max(self.closed_until, now + (wish or 0.0))
            self._refused += self._unopened
            return
        self._begin_wait(now)
        self._crowded = crowded
        self._wished = bool(wish)
        self._proven = self.in_a_row > 1 or (wish or 0.0) > _ROUNDED
        self.epoch += 1
        self._unopened = True
        self.closed_until = max(self.closed_until, now + self._closed_for(wish, tries))

    def _begin_wait(self, now: float) -> None:
        self._refused += 1
        if self.in_a_row and self._refused == self._sent:  # nothing was borne: the wait goes on
            self._since, self._sent = self._last
            self._refused = 0
            self.in_a_row += 1
            return
        self._closed_at = now
        self._refused_rate = self.rate
        self.in_a_row = 1

    def _closed_for(self, wish: float | None, tries: int) -> float:
        policy = self._policy
        base = min(policy.first, max(_SHORTEST, _GAP / self.rate))
        if self._bucket is None:
            base = policy.first
        wait = max(base * 2.0 ** min(self.in_a_row - 1, 60), policy.patience(tries))
        wait = self._random.uniform(0.75, 1.0) * min(wait, policy.longest)
        if not wish:
            return wait
        apart = min(policy.first, max(_SHORTEST, wish * _APART))
        wish += self._random.uniform(0.0, apart)
        return wish if self.in_a_row == 1 else max(wish, wait)

    def _open(self, now: float) -> None:
        """Begin anew, at the rate that was borne."""
        borne = max(0, self._sent - self._refused)
        if self.in_a_row:
            self._set_rate(borne, now)
        self._last = (self._since, borne)
        self._since = self._grown_at = now
        self._sent = self._refused = 0
        self._mark = self._next_mark = self._here(now)
        self._unopened = False

    def _here(self, now: float) -> tuple[float, int, float]:
        rate = self.rate if self._binding else 0.0  # what was allowed was not made use of
        return now, self._sent - self._refused, rate

    def _set_rate(self, borne: int, now: float) -> None:
        known = self._refused_rate
        seen = self._seen(borne, now)
        if borne == 0:
            rate = min(known * _HALF, 1.0 / max(_SHORTEST, self._policy.first))
        elif self._crowded and known < _INF:
            rate = known
        else:
            rate = min(seen, known * _SAFE)
        self._ceiling = 2.0 * seen if self._proven and borne and known == _INF else known
        closed = now - self._closed_at
        self._returns = max(_SOONEST, min(_RETURNS * closed, _RETURNS + _WINDOWS * closed))
        rate = max(rate, _LEAST)
        self._bucket = Bucket(rate, _burst(rate), now=now, level=1.0)

    def _seen(self, borne: int, now: float) -> float:
        """Return the rate that was borne.

        A wait that is known to be needed is part of a window, whose calls all went before it. One
        that may be longer than needed is half taken for so, and the rate is that of the last
        seconds before it: not less than what was the rate already at their beginning.
        """
        if self._proven or self._refused_rate == _INF:
            return borne / max(_SHORTEST, now - self._since)
        at, before, rate = self._mark
        sending, closed = self._closed_at - at, now - self._closed_at
        needed = 0.5 * min(closed, _ROUNDED) if self._wished else closed
        seen = max(0, borne - before) / max(_SHORTEST, sending + needed)
        return seen if sending < _ROUNDED else max(seen, rate)

    def _grow(self, bucket: Bucket, seconds: float, now: float) -> None:
        rate, ceiling = bucket.rate, self._ceiling
        if ceiling == _INF:
            rate *= 2.0 ** (seconds / _DOUBLES)
        elif rate < ceiling:
            gap = max(0.0, _NEAR * ceiling - rate)
            rate += (_FAST * gap + _SLOW * ceiling) * seconds / self._returns
        else:
            rate *= 1.0 + _BEYOND * seconds / self._returns
        bucket.change(rate, _burst(rate), now)


def _burst(rate: float) -> float:
    return max(1.0, rate * _LATE)
