"""One request and its response, within finite bounds, every failure a typed error."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import anyio
import httpx

from executors.errors import (
    ConnectFault,
    ConnectTimeout,
    DeadlineExceeded,
    HeadersTimeout,
    IdleTimeout,
    MalformedReply,
    ModelError,
    TransportFault,
    ValidationError,
)
from executors.models.wire.sse import EventSplitter, ServerEvent
from executors.secrets import scrub

__all__ = ["Bounds", "Exchange", "Feed", "HttpReply"]

Feed = Callable[[ServerEvent], bool]
"""Takes an event; True says that it was the end marker."""
_Phase = Literal["headers", "idle"]
# Seconds that letting go of a broken or cancelled response may take.
_CLEANUP = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long one request may take, in seconds. Each is finite.

    An injected transport of httpx's own applies `connect` and `headers` by itself; for any other
    the time to the headers is bounded by their sum.
    """

    connect: float = 10.0
    headers: float = 120.0
    """From the request sent to the response's headers."""
    idle: float = 60.0
    """Between two parsed events of a stream (comments do not count), or two chunks of a body."""
    total: float = 600.0
    """The whole request, any wait for a connection included."""
    body: int = 64 * 1024 * 1024
    """Bytes of a response."""

    def __post_init__(self) -> None:
        for name in ("connect", "headers", "idle", "total", "body"):
            value: object = getattr(self, name)
            good = isinstance(value, int | float) and not isinstance(value, bool)
            if not good or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type,operator]
                raise ValidationError(
                    f"{name}={value!r} is not a bound", hint="give a finite number above 0"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """A response whose body was read to its end."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class Exchange:
    """One request and its response, under one cancel scope whose deadline moves on.

    The scope fires at the next bound: of the phase, or of the whole. Moving a deadline is cheaper
    than a scope for each chunk, and one scope cannot be left in the wrong order.
    """

    def __init__(self, bounds: Bounds, where: str) -> None:
        self._bounds = bounds
        self._where = where
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + bounds.total
        self._phase: _Phase = "headers"
        self._scope = anyio.CancelScope(
            deadline=min(self._end, self._now() + bounds.connect + bounds.headers)
        )
        self._size = 0

    async def run(
        self, transport: httpx.AsyncBaseTransport, request: httpx.Request, feed: Feed | None
    ) -> HttpReply | None:
        try:
            with self._scope:
                response = await transport.handle_async_request(request)
                return await self._receive(response, feed)
        except httpx.HTTPError as error:
            raise self._translated(error) from None
        except httpx.StreamError as error:
            raise self._fault(TransportFault, str(error)) from None
        raise self._expired()

    async def _receive(self, response: httpx.Response, feed: Feed | None) -> HttpReply | None:
        self._expect("idle", self._bounds.idle)
        try:
            if feed is not None and _is_event_stream(response):
                await self._stream(_body_of(response), feed)
                reply = None
            else:
                reply = await self._collect(response)
        except BaseException:
            with anyio.CancelScope(shield=True, deadline=self._now() + _CLEANUP):
                await response.stream.aclose()  # type: ignore[union-attr]
            raise
        await response.stream.aclose()  # type: ignore[union-attr]
        return reply

    async def _collect(self, response: httpx.Response) -> HttpReply:
        parts: list[bytes] = []
        async for chunk in _body_of(response):
            self._count(chunk)
            parts.append(chunk)
            self._expect("idle", self._bounds.idle)
        return HttpReply(
            status=response.status_code, headers=response.headers, body=b"".join(parts)
        )

    async def _stream(self, body: AsyncIterator[bytes], feed: Feed) -> None:
        splitter = EventSplitter()
        async for chunk in body:
            self._count(chunk)
            for event in splitter.feed(chunk):
                if feed(event):
                    return
                self._expect("idle", self._bounds.idle)
        for event in splitter.close():
            if feed(event):
                return

    def _count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._bounds.body:
            raise MalformedReply(
                f"the response is longer than {self._bounds.body:,} bytes",
                where=self._where,
                hint="raise Bounds(body=...) if the server may say that much",
            )

    def _expect(self, phase: _Phase, seconds: float) -> None:
        """Set the bound of what comes next; the same bound again within a hundredth of it stays."""
        deadline = min(self._end, self._now() + seconds)
        moves = deadline - self._scope.deadline
        if phase != self._phase or moves > seconds / 100 or (deadline == self._end and moves):
            self._scope.deadline = deadline
        self._phase = phase

    def _expired(self) -> ModelError:
        bounds = self._bounds
        if self._scope.deadline >= self._end:
            return self._fault(DeadlineExceeded, f"not done within {bounds.total:g} s (total)")
        if self._phase == "idle":
            return self._fault(IdleTimeout, f"no event for {bounds.idle:g} s (idle)")
        return self._fault(HeadersTimeout, f"no answer within {bounds.headers:g} s (headers)")

    def _translated(self, error: httpx.HTTPError) -> ModelError:
        bounds, detail = self._bounds, str(error) or type(error).__name__
        match error:
            case httpx.ConnectTimeout() | httpx.PoolTimeout():
                what = f"no connection within {bounds.connect:g} s (connect)"
                return self._fault(ConnectTimeout, what)
            case httpx.ConnectError() | httpx.ProxyError():
                return self._fault(ConnectFault, f"cannot connect: {detail}")
            case httpx.TimeoutException() if self._phase == "idle":
                return self._fault(IdleTimeout, f"no event for {bounds.idle:g} s (idle)")
            case httpx.TimeoutException():
                what = f"no answer within {bounds.headers:g} s (headers)"
                return self._fault(HeadersTimeout, what)
            case httpx.DecodingError():
                return self._fault(MalformedReply, f"the body cannot be decoded: {detail}")
            case _:
                return self._fault(TransportFault, f"the connection broke: {detail}")

    def _fault(self, kind: type[ModelError], what: str) -> ModelError:
        return kind(scrub(what), where=self._where, hint=_HINTS.get(kind))


_HINTS: dict[type[ModelError], str] = {
    ConnectFault: "check that the server runs, and its host and port",
    ConnectTimeout: "check host, port and network, or raise the connect bound",
    HeadersTimeout: "raise the headers bound for a slow model, or ask for a stream",
    IdleTimeout: "raise the idle bound for a slow model",
    DeadlineExceeded: "raise the total bound or ask for fewer output tokens",
}


def _is_event_stream(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and kind.lower().startswith("text/event-stream")


def _body_of(response: httpx.Response) -> AsyncIterator[bytes]:
    if "content-encoding" in response.headers:  # we ask for none, so this is rare
        return response.aiter_bytes()
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return aiter(response.stream)
