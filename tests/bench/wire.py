"""What carries HTTP: connections of our own beside the others, under the whole adapter.

Each is measured with the calls that a run makes, and with every second call cancelled: ten probes
afterwards show whether it survived. The table of `executors.models.wire.http` comes from here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import aiohttp
import httpx

from executors.errors import ModelError
from executors.messages import Message, ModelRequest
from executors.models.openai.model import OpenAIModel
from executors.models.wire.bounds import Bounds
from tests.bench.calls import _raw, _seconds, _server
from tests.bench.row import Row

__all__ = ["rows"]

# The machine may be busy with other things: the best of some rounds is the cost of ours.
_ROUNDS: Final = 3
_CALL: Final = 0.05
_CANCELLED_AFTER: Final = 0.01
# Connections of one of httpx's pools from which on its own book-keeping is the larger cost.
_SHARD: Final = 8
_BOUNDS: Final = Bounds(connect=5.0, headers=10.0, idle=10.0, total=20.0)
Make = Callable[[int], httpx.AsyncBaseTransport | None]
"""A transport for so many calls in flight; None is ours."""


# ---------------------------------------------------------------- transports


def _stock(in_flight: int) -> httpx.AsyncBaseTransport:
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    return httpx.AsyncHTTPTransport(limits=limits)


class _Shards(httpx.AsyncBaseTransport):
    """Small pools of httpx's, each taken in turn."""

    def __init__(self, in_flight: int) -> None:
        self._pools = [_stock(_SHARD) for _ in range(-(-in_flight // _SHARD))]
        self._sent = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._sent += 1
        return await self._pools[self._sent % len(self._pools)].handle_async_request(request)

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


class _Aiohttp(httpx.AsyncBaseTransport):
    """aiohttp's session and pool."""

    def __init__(self, in_flight: int) -> None:
        del in_flight  # its pool has no limit, as ours has none
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._session.post(
            str(request.url),
            headers=[(k.decode(), v.decode()) for k, v in request.headers.raw],
            data=request.read(),
            allow_redirects=False,
        )
        return httpx.Response(
            response.status, headers=response.raw_headers, stream=_AiohttpBody(response)
        )

    async def aclose(self) -> None:
        await self._session.close()


class _AiohttpBody(httpx.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._response.content.readany():
            yield chunk

    async def aclose(self) -> None:
        self._response.release()


def _ours(in_flight: int) -> None:
    """No transport: the model opens connections of its own."""
    del in_flight


_EVERY: Final[dict[str, Make]] = {
    "ours": _ours,
    "aiohttp": _Aiohttp,
    "shards": _Shards,
    "stock": _stock,
}
_SLOW: Final = frozenset({"shards", "stock"})


# ---------------------------------------------------------------- work


def _request(n: int, letters: int) -> ModelRequest:
    message = Message(role="user", content=f"{n} " + "x" * letters)
    return ModelRequest(messages=(message,), max_tokens=256, temperature=0.0)


async def _drive(model: OpenAIModel, count: int, in_flight: int, *, cancels: bool) -> int:
    """Return how many calls failed though nobody cancelled them."""
    pending = iter([_request(n, 3_000) for n in range(count)])
    failed = 0

    async def worker() -> None:
        nonlocal failed
        for n, request in enumerate(pending):
            try:
                async with asyncio.timeout(_CANCELLED_AFTER if cancels and n % 2 else None):
                    await model.generate(request)
            except TimeoutError:
                pass
            except ModelError:
                failed += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    return failed


async def _cpu(name: str, url: str, in_flight: int, *, cancels: bool) -> tuple[float, int]:
    """Return CPU seconds a call of this process, and how many of ten probes were answered."""
    transport = _EVERY[name](in_flight)
    model = OpenAIModel("bench", base_url=url, transport=transport, bounds=_BOUNDS)
    await _drive(model, in_flight, in_flight, cancels=False)  # connections are open from here on
    count, used = max(200, 2 * in_flight), float("inf")
    for _ in range(_rounds(name)):
        started = time.process_time()
        await _drive(model, count, in_flight, cancels=cancels)
        used = min(used, (time.process_time() - started) / count)
    answered = 10 - await _drive(model, 10, 1, cancels=False)
    await model.aclose()
    return used, answered


def _rounds(name: str) -> int:
    return 1 if name in _SLOW else _ROUNDS


# ---------------------------------------------------------------- rows


async def _call_row(url: str, in_flight: int, *, cancels: bool) -> Row:
    found = {name: await _cpu(name, url, in_flight, cancels=cancels) for name in _EVERY}
    notes = [f"{name} {used * 1e3:.2f} ({alive}/10)" for name, (used, alive) in found.items()]
    ours, answered = found["ours"]
    every = ", every second call cancelled" if cancels else ""
    return Row(
        name=f"adapter CPU a call, 50 ms, {in_flight} in flight{every}",
        ours=ours * 1e3 if answered == 10 else float("nan"),
        unit="ms",
        bar=0.35,
        floor=found["aiohttp"][0] * 1e3,
        note=f"floor: aiohttp; in ms, with the probes answered: {', '.join(notes)}",
    )


async def _cold(name: str, url: str, in_flight: int, count: int) -> int:
    transport = _EVERY[name](in_flight)
    model = OpenAIModel("bench", base_url=url, transport=transport, bounds=_BOUNDS)
    failed = await _drive(model, count, in_flight, cancels=False)
    await model.aclose()
    return failed


def _cold_seconds(name: str, url: str, in_flight: int, count: int) -> tuple[float, int]:
    """Return the best time of some rounds, and the calls that failed in them."""
    times: list[float] = []
    failed = 0
    for _ in range(_rounds(name)):
        started = time.perf_counter()
        failed += asyncio.run(_cold(name, url, in_flight, count))
        times.append(time.perf_counter() - started)
    return min(times), failed


def _cold_row(url: str) -> Row:
    in_flight, count = 256, 1_000
    floor = min([asyncio.run(_seconds(_raw(url, in_flight, count))) for _ in range(_ROUNDS)])
    found = {name: _cold_seconds(name, url, in_flight, count) for name in _EVERY}
    notes = [f"{name} {took:.2f} ({failed} failed)" for name, (took, failed) in found.items()]
    return Row(
        name="1,000 calls at 200 ms, 256 in flight, adapter alone, cold",
        ours=found["ours"][0],
        unit="s",
        bar=1.25,
        floor=floor,
        relative=True,
        note=f"floor: bare asyncio; in s: {', '.join(notes)}",
    )


def rows() -> list[Row]:
    """Measure what carries HTTP."""
    loads = [(in_flight, cancels) for cancels in (False, True) for in_flight in (16, 64, 256)]
    with _server(_CALL) as url:
        found = [asyncio.run(_call_row(url, n, cancels=cancels)) for n, cancels in loads]
    with _server(0.2) as url:
        found.append(_cold_row(url))
    return found
