"""A request over a transport of httpx's that somebody injected, within the same bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import anyio
import httpx

from executors.errors import ConnectTimeout, ModelError
from executors.models.wire.bounds import Faults, Phase
from executors.models.wire.reading import HttpReply, Reading

__all__ = ["Injected"]

# Seconds that letting go of a broken or cancelled response may take.
_CLEANUP: Final = 1.0


class Injected:
    """Posts over a transport.

    httpx's own transports apply the bounds on connecting and on headers by themselves; for any
    other the time to the headers is bounded by the sum of both.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, url: str, faults: Faults) -> None:
        self._transport = transport
        self._url = httpx.URL(url)
        self._faults = faults
        bounds = faults.bounds
        self._extensions = {
            "timeout": {
                "connect": bounds.connect,
                "read": max(bounds.headers, bounds.idle),
                "write": bounds.headers,
                "pool": bounds.connect,
            }
        }

    async def post(
        self, body: bytes, headers: Mapping[str, str], reading: Reading
    ) -> HttpReply | None:
        """Send a request; return the response, or None when it was a stream that was read."""
        request = httpx.Request(
            "POST", self._url, headers=headers, content=body, extensions=self._extensions
        )
        return await _Exchange(self._faults).run(self._transport, request, reading)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


class _Exchange:
    """One request and its response, under one cancel scope whose deadline moves on.

    The scope fires at the next bound: of the phase, or of the whole. Moving a deadline is cheaper
    than a scope for each chunk, and one scope cannot be left in the wrong order.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        bounds = faults.bounds
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + bounds.total
        self._phase: Phase = "headers"
        self._scope = anyio.CancelScope(
            deadline=min(self._end, self._now() + bounds.connect + bounds.headers)
        )

    async def run(
        self, transport: httpx.AsyncBaseTransport, request: httpx.Request, reading: Reading
    ) -> HttpReply | None:
        try:
            with self._scope:
                response = await transport.handle_async_request(request)
                await self._receive(response, reading)
                return reading.reply()
        except httpx.HTTPError as error:
            raise self._translated(error) from None
        except httpx.StreamError as error:
            raise self._faults.broken(str(error)) from None
        raise self._faults.late(self._phase, whole=self._scope.deadline >= self._end)

    async def _receive(self, response: httpx.Response, reading: Reading) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            self._expect_more()
            reading.begin(response.status_code, response.headers.raw)
            await self._read(response.stream, reading)
        except BaseException:
            with anyio.CancelScope(shield=True, deadline=self._now() + _CLEANUP):
                await response.stream.aclose()
            raise
        await response.stream.aclose()

    async def _read(self, stream: httpx.AsyncByteStream, reading: Reading) -> None:
        async for chunk in stream:
            match reading.take(chunk):
                case "end":
                    return
                case "content":
                    self._expect_more()
                case "nothing":
                    pass
        reading.close()

    def _expect_more(self) -> None:
        self._phase = "idle"
        self._scope.deadline = min(self._end, self._now() + self._faults.bounds.idle)

    def _translated(self, error: httpx.HTTPError) -> ModelError:
        detail = str(error) or type(error).__name__
        match error:
            case httpx.ConnectTimeout():
                return self._faults.late("connect", whole=False)
            case httpx.PoolTimeout():
                seconds = self._faults.bounds.connect
                what = f"no free connection within {seconds:g} s (connect)"
                return self._faults.make(ConnectTimeout, what)
            case httpx.ConnectError() | httpx.ProxyError():
                return self._faults.unconnected(detail)
            case httpx.TimeoutException():
                return self._faults.late(self._phase, whole=False)
            case httpx.DecodingError():
                return self._faults.undecodable(detail)
            case _:
                return self._faults.broken(detail)
