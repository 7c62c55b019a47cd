"""Slots for calls in flight, whose number narrows when a server says "too many" and widens again.

After a 429 one call goes alone. Each success then adds a slot until half of what was too much, and
from there one slot in four rounds, much as TCP does it: nobody rushes, and what the server takes
is found and rarely passed.
"""

from __future__ import annotations

from collections import deque

import anyio

__all__ = ["Slots"]


class Slots:
    """At most `cap` at once, in the order of coming; who was sent back comes first."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._width = float(cap)
        self._calm = float(cap)
        """Below this width each success adds a whole slot."""
        self._taken = 0
        self._waiting: deque[anyio.Event] = deque()

    @property
    def width(self) -> int:
        """How many may be in flight now."""
        return int(self._width)

    async def take(self, *, again: bool = False) -> None:
        """Wait for a slot; no turn of the loop is spent when one is free.

        Args:
            again: go before all who have not tried yet, so that nobody is refused time after time.
        """
        if self._taken < self.width and not self._waiting:
            self._taken += 1
            return
        mine = anyio.Event()
        if again:
            self._waiting.appendleft(mine)
        else:
            self._waiting.append(mine)
        try:
            await mine.wait()
        except BaseException:
            # Cancelled. The slot may have been handed over in the same turn: then it goes on.
            if mine.is_set():
                self.give()
            else:
                self._waiting.remove(mine)
            raise

    def give(self) -> None:
        """Give a slot back."""
        self._taken -= 1
        self._hand_on()

    def narrow(self) -> None:
        """Let one at a time through from now on."""
        if self._width > 1:
            self._calm = max(1.0, self._width / 2)
        self._width = 1.0

    def widen(self) -> None:
        """Count a success."""
        if self._width >= self._cap:
            return
        step = 1.0 if self._width < self._calm else 0.25 / self._width
        self._width = min(float(self._cap), self._width + step)
        self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting and self._taken < self.width:
            self._taken += 1
            self._waiting.popleft().set()
