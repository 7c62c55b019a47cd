"""Time as a dependency: the system's clock, and a virtual one for tests."""

from __future__ import annotations

import heapq
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

import anyio
import anyio.lowlevel

__all__ = ["Clock", "SystemClock", "VirtualClock"]

# Turns of the event loop that a virtual sleeper grants to everybody else before time jumps.
_GRACE_TURNS = 25


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        ...

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds; a checkpoint also for zero and less."""
        ...


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        from asyncio import sleep  # heavy; whoever sleeps has a loop and so has loaded it

        await sleep(max(0.0, seconds))


class VirtualClock:
    """A clock that jumps to the next sleeper as soon as nobody else has anything to do.

    Sleepers wake in the order of their deadlines. `slept` lists what was asked for, in order.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int]] = []
        self._ticket = count()
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self._elapsed

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def advance(self, seconds: float) -> None:
        """Move time forward by hand."""
        self._elapsed += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        entry = (self._elapsed + max(0.0, seconds), next(self._ticket))
        heapq.heappush(self._sleepers, entry)
        try:
            while self._elapsed < entry[0]:
                for _ in range(_GRACE_TURNS):
                    await anyio.lowlevel.checkpoint()
                if self._sleepers[0] == entry:
                    self._elapsed = max(self._elapsed, entry[0])
            await anyio.lowlevel.checkpoint()
        finally:
            self._sleepers.remove(entry)
            heapq.heapify(self._sleepers)
