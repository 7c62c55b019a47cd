"""A wish to stop: stated by a signal handler or any thread, heeded by workers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from math import inf
from typing import Final

import anyio

from executors.clock import Clock, SystemClock
from executors.errors import Interrupted, ValidationError

__all__ = ["GRACE", "Stop"]

GRACE: Final = 10.0
"""Seconds that what is in flight may still take, unless said otherwise."""


class Stop:
    """Asked once, it stays asked. One stop may end many pieces of work, on several loops.

    Args:
        grace: seconds that what is in flight may take to end by itself before it is cancelled;
            0 cancels it at once.
        clock: where the grace is measured.

    Raises:
        ValidationError: a grace that is negative or endless.
    """

    def __init__(self, *, grace: float = GRACE, clock: Clock | None = None) -> None:
        if not 0 <= grace < inf:
            raise ValidationError(f"grace={grace!r}", hint="give seconds, from 0 on")
        self.grace: Final = grace
        self.clock: Final = clock or SystemClock()
        self._by: str | None = None
        # A list takes one operation at a time whoever interrupts whom. A lock would dead-lock where
        # the handler of a signal interrupts its owner.
        self._heeding: list[object] = []
        self._wakes: list[Callable[[], object]] = []

    @property
    def asked(self) -> bool:
        """Whether somebody asked."""
        return self._by is not None

    @property
    def heeded(self) -> bool:
        """Whether work is under way that ends when asked; other work has to be cancelled."""
        return bool(self._heeding)

    def ask(self, by: str = "Ctrl-C") -> None:
        """Ask what heeds this to stop; returns at once.

        Args:
            by: what people are told: "Ctrl-C", "SIGTERM". The first one stays.
        """
        if self._by is None:
            self._by = by
        for wake in tuple(self._wakes):
            wake()

    def error(self) -> Interrupted:
        """Return what the work raises that heeded this."""
        return Interrupted() if self._by is None else Interrupted(self._by)

    @contextmanager
    def heeding(self) -> Generator[None]:
        """Say that what runs inside ends when asked; may be nested."""
        mark = object()
        self._heeding.append(mark)
        try:
            yield
        finally:
            self._heeding.remove(mark)

    async def wait(self) -> None:
        """Wait until somebody asks."""
        import asyncio  # heavy; whoever waits has a loop and so has loaded it

        loop, asked = asyncio.get_running_loop(), anyio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # its loop has ended, and so has who waited
                loop.call_soon_threadsafe(asked.set)

        self._wakes.append(wake)
        try:
            # In this order: who asks from now on wakes us, who asked before is seen here.
            if not self.asked:
                await asked.wait()
        finally:
            self._wakes.remove(wake)
