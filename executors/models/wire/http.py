"""The wire: posts JSON to one URL, and reads a JSON reply or a stream of events.

The seam is httpx's transport interface: whatever fulfils it can be injected. `httpx.AsyncClient`
itself is left out: it costs half of a call's CPU for redirects, cookies and auth flows that must
not happen here, since a key belongs to its origin alone. The default transport is in `sockets`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache

import httpx

from executors.models.wire.exchange import Bounds, Exchange, Feed, HttpReply
from executors.models.wire.origins import proxy_of

__all__ = ["Bounds", "Feed", "HttpReply", "Wire"]


class Wire:
    """Posts to one URL.

    Args:
        where: what errors give as their place; it holds no secret.
        transport: used as it is; None makes one of ours for each running loop.
    """

    def __init__(
        self,
        url: str,
        *,
        where: str,
        bounds: Bounds,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = httpx.URL(url)
        self._where = where
        self._bounds = bounds
        self._injected = transport
        self._proxy = None if transport else proxy_of(url)
        self._own = _PerLoop(self._make)
        self._prepared = lru_cache(maxsize=8)(self._prepare)
        self._extensions = {
            "timeout": {
                "connect": bounds.connect,
                "read": max(bounds.headers, bounds.idle),
                "write": bounds.headers,
                "pool": bounds.connect,
            }
        }

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
        transport = self._injected or await self._own.get()
        request = self._request(body, headers)
        return await Exchange(self._bounds, self._where).run(transport, request, feed)

    async def aclose(self) -> None:
        """Close the sockets of the running loop; the next request opens new ones."""
        await self._own.aclose()
        if self._injected is not None:
            await self._injected.aclose()

    def _request(self, body: bytes, headers: Mapping[str, str]) -> httpx.Request:
        """Return a request; httpx would look at each of its headers anew, the same in every call."""
        request = httpx.Request(
            "POST",
            self._url,
            headers=self._prepared(tuple(headers.items())),
            stream=httpx.ByteStream(body),
            extensions=self._extensions,
        )
        request.headers["content-length"] = str(len(body))
        return request

    def _prepare(self, headers: tuple[tuple[str, str], ...]) -> httpx.Headers:
        return httpx.Headers([("host", self._url.netloc.decode("ascii")), *headers])

    def _make(self) -> httpx.AsyncBaseTransport:
        # aiohttp is a tenth of a second to import: only who calls a server pays it.
        from executors.models.wire.sockets import SocketTransport

        return SocketTransport(
            connect=self._bounds.connect,
            headers=self._bounds.headers,
            secure=self._url.scheme == "https",
            proxy=self._proxy,
        )


class _PerLoop:
    """A transport for each running loop: one object serves several synchronous runs and threads.

    Each is closed when its loop ends, at the latest: loops close their asynchronous generators.
    """

    def __init__(self, make: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._make = make
        # Each loop has one thread and touches its own key alone, so no lock is needed.
        self._open: dict[
            asyncio.AbstractEventLoop, tuple[httpx.AsyncBaseTransport, AsyncGenerator[None]]
        ] = {}

    async def get(self) -> httpx.AsyncBaseTransport:
        loop = asyncio.get_running_loop()
        found = self._open.get(loop)
        if found is not None:
            return found[0]
        transport = self._make()
        keeper = self._keep(loop, transport)
        self._open[loop] = (transport, keeper)
        await anext(keeper)
        return transport

    async def aclose(self) -> None:
        # Taken out first: a second one who closes finds nothing, and the next request opens anew.
        found = self._open.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[1].aclose()

    async def _keep(
        self, loop: asyncio.AbstractEventLoop, transport: httpx.AsyncBaseTransport
    ) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._open.get(loop, (None,))[0] is transport:
                del self._open[loop]
            await transport.aclose()
