"""The wire: posts JSON to one URL, and reads a JSON reply or a stream of events.

Whatever fulfils httpx's transport interface can be injected. By default the requests go over
connections of our own (`pool`, `connection`), by the figures of `tests/bench/wire.py`: CPU of this
process a call of 50 ms in ms, adapter included, with so many in flight, then with every second call
cancelled; and seconds for 1,000 calls of 200 ms, 256 in flight, from cold (bare asyncio 0.85).

                                      16     64    256    cancelled 16     64    256    cold
    ours                            0.13   0.11   0.07            0.25   0.20   0.09    0.88
    aiohttp's session and pool      0.37   0.34   0.35            0.67   0.55   0.46    1.27
    httpx's pools of 8, in turn     2.1    2.3    2.2             2.4    2.8    1.8     3.0
    httpx's one pool                2.0     12     23             2.0     15     22      22

httpx's pool looks through all its connections at each step; of its 1,000 calls 36 were not answered
within 10 s. The others stand under httpx's interface, which is a part of their cost.
There are no redirects, cookies or authentication flows: a key belongs to its origin alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from executors.models.wire.bounds import Bounds, Faults
from executors.models.wire.reading import Feed, Heard, HttpReply, Reading
from executors.models.wire.routes import route_of

if TYPE_CHECKING:
    import httpx

    from executors.models.wire.injected import Injected
    from executors.models.wire.pool import Pool

__all__ = ["Bounds", "Feed", "Heard", "HttpReply", "Wire"]


class Wire:
    """Posts to one URL.

    Args:
        where: what errors give as their place; it holds no secret.
        transport: used as it is; None opens connections of ours, a pool for each running loop.
    """

    def __init__(
        self,
        url: str,
        *,
        where: str,
        bounds: Bounds,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._faults = Faults(bounds, where)
        self._injected = _over(transport, url, self._faults) if transport else None
        self._route = None if transport else route_of(url)
        self._pools = _PerLoop(self._make)
        self._head = lru_cache(maxsize=8)(self._head_of)

    async def post(
        self, body: bytes, headers: Mapping[str, str], feed: Feed | None = None
    ) -> HttpReply | None:
        """Send a body; return the reply, or None when it was a stream that `feed` took.

        A reply that is no event stream is returned as it is, also where `feed` was given.

        Raises:
            ConnectFault, ConnectTimeout: nothing was sent.
            HeadersTimeout, IdleTimeout, TransportFault: the server may have done the work.
            DeadlineExceeded: the total bound fired, whatever was flowing.
            MalformedReply: the body is longer than its bound.
        """
        reading = Reading(self._faults, feed)
        if self._injected is not None:
            return await self._injected.post(body, headers, reading)
        pool = self._pools.found() or await self._pools.made()
        head = self._head(tuple(headers.items()))
        return await pool.request(
            b"%b%d\r\n\r\n%b" % (head, len(body), body), reading, self._faults
        )

    async def aclose(self) -> None:
        """Close the sockets of the running loop; the next request opens new ones."""
        await self._pools.aclose()
        if self._injected is not None:
            await self._injected.aclose()

    def _head_of(self, headers: tuple[tuple[str, str], ...]) -> bytes:
        assert self._route is not None
        return self._route.head(dict(headers))

    def _make(self) -> Pool:
        # asyncio, TLS and the parser: only who calls a server pays for their import.
        from executors.models.wire.pool import Pool

        assert self._route is not None
        return Pool(self._route)


def _over(transport: httpx.AsyncBaseTransport, url: str, faults: Faults) -> Injected:
    # httpx is slow to import: who injects a transport has it already.
    from executors.models.wire.injected import Injected

    return Injected(transport, url, faults)


class _PerLoop:
    """A pool for each running loop: one object serves several synchronous runs and threads.

    Each is closed when its loop ends, at the latest: loops close their asynchronous generators.
    """

    def __init__(self, make: Callable[[], Pool]) -> None:
        self._make = make
        # Each loop has one thread and touches its own key alone, so no lock is needed.
        self._open: dict[asyncio.AbstractEventLoop, tuple[Pool, AsyncGenerator[None]]] = {}

    def found(self) -> Pool | None:
        """Return the running loop's pool if it is there."""
        found = self._open.get(asyncio.get_running_loop())
        return None if found is None else found[0]

    async def made(self) -> Pool:
        """Make the running loop's pool."""
        loop = asyncio.get_running_loop()
        pool = self._make()
        keeper = self._keep(loop, pool)
        self._open[loop] = (pool, keeper)
        await anext(keeper)
        return pool

    async def aclose(self) -> None:
        # Taken out first: a second one who closes finds nothing, and the next request opens anew.
        found = self._open.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[1].aclose()

    async def _keep(self, loop: asyncio.AbstractEventLoop, pool: Pool) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._open.get(loop, (None,))[0] is pool:
                del self._open[loop]
            await pool.aclose()
