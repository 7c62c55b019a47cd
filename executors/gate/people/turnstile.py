"""One after another, whatever loops and threads they come from: a person hears one question a time."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:  # heavy; whoever waits in line has a loop and so has loaded it
    from asyncio import AbstractEventLoop

__all__ = ["Turn", "Turnstile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Whose turn it is."""

    waited: bool
    """Others had theirs meanwhile: what was so before may not be so any more."""
    abandoned: bool
    """Nobody was there for one of them."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Ticket:
    loop: AbstractEventLoop
    called: anyio.Event


class Turnstile:
    """Lets through one at a time, in the order they came."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[_Ticket] = deque()
        self._taken = False
        self._walked_away = 0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Turn]:
        """Wait for one's turn, and hold it."""
        before = self._walked_away
        ticket = self._drawn()
        if ticket is not None:
            await self._called(ticket)
        try:
            yield Turn(waited=ticket is not None, abandoned=self._walked_away > before)
        finally:
            self._next()

    def walk_away(self) -> None:
        """Tell those who wait in line by now that nobody is there."""
        self._walked_away += 1

    def _drawn(self) -> _Ticket | None:
        from asyncio import get_running_loop  # as above

        with self._lock:
            if not self._taken:
                self._taken = True
                return None
            ticket = _Ticket(loop=get_running_loop(), called=anyio.Event())
            self._waiting.append(ticket)
            return ticket

    async def _called(self, ticket: _Ticket) -> None:
        try:
            await ticket.called.wait()
        except BaseException:
            with self._lock:
                waits = ticket in self._waiting
                if waits:
                    self._waiting.remove(ticket)
            if not waits:  # it was called just then
                self._next()
            raise

    def _next(self) -> None:
        with self._lock:
            while self._waiting:
                ticket = self._waiting.popleft()
                try:
                    ticket.loop.call_soon_threadsafe(ticket.called.set)
                    return
                except RuntimeError:  # its loop has ended, and so has who waited
                    continue
            self._taken = False
