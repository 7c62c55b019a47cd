"""Connections to one server, for one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from executors.models.wire.bounds import Faults
from executors.models.wire.connection import Connection
from executors.models.wire.dialling import Dialler
from executors.models.wire.reading import HttpReply, Reading
from executors.models.wire.routes import Route

__all__ = ["Pool"]

# Seconds that an idle connection is kept: below the five after which many servers drop theirs, so
# that a request seldom meets a goodbye on its way.
_IDLE: Final = 4.0
# Seconds that closing may wait for sockets to be gone.
_CLOSING: Final = 1.0


class Pool:
    """As many connections as there are requests: the limit is the endpoint's, not the pool's.

    The one that was used last is used first, so that what a lesser load does not need grows old and
    is dropped. Belongs to the event loop that runs when it is made.
    """

    def __init__(self, route: Route) -> None:
        self._route = route
        self._dialler = Dialler(route)
        self._loop = asyncio.get_running_loop()
        self._open: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None

    async def request(self, request: bytes, reading: Reading, faults: Faults) -> HttpReply | None:
        """Send a request on a free connection or a new one; see `Connection.exchange`."""
        end = self._loop.time() + faults.bounds.total
        connection = self._take() or await self._dial(faults, end)
        return await connection.exchange(request, reading, faults, end)

    async def aclose(self) -> None:
        """Close every connection and wait until their sockets are gone."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in tuple(self._open):
            connection.close()
        if self._open:
            self._emptied = self._emptied or self._loop.create_future()
            await asyncio.wait([self._emptied], timeout=_CLOSING)

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.abort()
        return None

    async def _dial(self, faults: Faults, end: float) -> Connection:
        bounds, now = faults.bounds, self._loop.time()
        made: Connection | None = None

        def make() -> Connection:
            nonlocal made
            made = Connection(self._loop, self)
            return made

        scope = asyncio.timeout_at(min(end, now + bounds.connect))
        try:
            async with scope:
                await self._dialler.dial(make)
        except OSError as error:
            if scope.expired():
                raise faults.late("connect", whole=end < now + bounds.connect) from None
            raise faults.unconnected(f"{self._route.shown}: {error}") from None
        assert made is not None
        return made

    def opened(self, connection: Connection) -> None:
        self._open.add(connection)

    def freed(self, connection: Connection) -> None:
        if self._closed:
            connection.abort()
            return
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(_IDLE, self._sweep)

    def lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _sweep(self) -> None:
        """Drop who was idle for long; the longest stand first."""
        before = self._loop.time() - _IDLE
        while self._idle and self._idle[0].idle_since <= before:
            self._idle.popleft().abort()
        self._sweeper = None
        if self._idle:
            left = self._idle[0].idle_since - before
            self._sweeper = self._loop.call_later(left, self._sweep)
