"""The events of a unit, on their way to the coordinator: many at once, and none of them late."""

from __future__ import annotations

from typing import Final

import anyio

from executors.engine.units import Line
from executors.events import Event, Retried
from rlm.events import event_line

__all__ = ["Outbox"]

_PAUSE: Final = 0.2  # seconds between two batches


class Outbox:
    """Takes events from a judge; `run` sends them until `flush` was called at the end."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._lines: list[bytes] = []
        self._some = anyio.Event()
        self._sending = anyio.Lock()
        self.refused = False
        """A server refused a call; whoever reads it takes it back."""

    def __call__(self, event: Event) -> None:
        """Take an event."""
        self._lines.append(event_line(event))
        if isinstance(event, Retried) and event.error == "rate-limited":
            self.refused = True
        self._some.set()

    async def run(self) -> None:
        """Send what there is, again and again."""
        while True:
            await self._some.wait()
            await self.flush()
            await anyio.sleep(_PAUSE)

    async def flush(self) -> None:
        """Send what there is, and wait for what was being sent.

        Raises:
            OSError: the coordinator is gone.
        """
        async with self._sending:
            self._some = anyio.Event()
            lines, self._lines = self._lines, []
            if lines:
                await self._line.ask("events", b"".join(lines))
