"""A script that answers so many requests in a while and refuses the others, as providers do."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Literal

from executors.models.fakes.acts import Act, Completion, Received, rate_limited

__all__ = ["LimitKind", "Limited", "RetryAfter"]

LimitKind = Literal["fixed", "sliding", "bucket"]
"""Windows one after another from the first request on; the last so many seconds, always; a bucket
that holds `burst` and fills evenly."""
RetryAfter = Literal["seconds", "date"] | None
"""The form of the header that a refusal carries: whole seconds, rounded up; a date; none."""


class Limited:
    """Lets `calls` in `seconds` through to a script function; the rest is refused with a 429.

    Args:
        answer: what those that are let through get.
        burst: what a bucket holds; None is all of `calls`.
        now: where time comes from, in seconds.
    """

    def __init__(
        self,
        calls: int,
        seconds: float = 1.0,
        *,
        kind: LimitKind = "fixed",
        retry_after: RetryAfter = "seconds",
        answer: Act | Callable[[Received], Act] | None = None,
        burst: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._seconds = seconds
        self._kind: LimitKind = kind
        self._retry_after: RetryAfter = retry_after
        self._answer = answer or Completion()
        self._burst = float(calls if burst is None else burst)
        self._now = now
        self._level = self._burst
        self._began: float | None = None
        self._passed: deque[float] = deque()
        self.served = 0
        """Requests that were let through."""
        self.refused = 0
        """Requests that were not."""

    def __call__(self, received: Received) -> Act:
        wait = self._wait(self._now())
        if wait > 0:
            self.refused += 1
            return rate_limited(self._told(wait))
        self.served += 1
        return self._answer(received) if callable(self._answer) else self._answer

    def _wait(self, now: float) -> float:
        """Let a request through and return 0.0, or return the seconds until one could be."""
        match self._kind:
            case "bucket":
                return self._of_bucket(now)
            case "fixed":
                return self._of_windows(now)
            case "sliding":
                return self._of_last_seconds(now)

    def _of_bucket(self, now: float) -> float:
        rate = self._calls / self._seconds
        if self._began is not None:
            self._level = min(self._burst, self._level + (now - self._began) * rate)
        self._began = now
        if self._level < 1.0:
            return (1.0 - self._level) / rate
        self._level -= 1.0
        return 0.0

    def _of_windows(self, now: float) -> float:
        if self._began is None or now - self._began >= self._seconds:
            gone = 0.0 if self._began is None else (now - self._began) // self._seconds
            self._began = now if self._began is None else self._began + gone * self._seconds
            self._level = float(self._calls)
        if self._level < 1.0:
            return self._began + self._seconds - now
        self._level -= 1.0
        return 0.0

    def _of_last_seconds(self, now: float) -> float:
        while self._passed and self._passed[0] <= now - self._seconds:
            self._passed.popleft()
        if len(self._passed) >= self._calls:
            return self._passed[0] + self._seconds - now
        self._passed.append(now)
        return 0.0

    def _told(self, wait: float) -> str | None:
        match self._retry_after:
            case "seconds":
                return str(math.ceil(wait))
            case "date":
                when = datetime.now(UTC) + timedelta(seconds=math.ceil(wait))
                return format_datetime(when, usegmt=True)
            case None:
                return None
