"""A model call: what the pipeline adds in this process, and what the client costs on the wire."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import httpx

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.messages import Message, ModelReply, ModelRequest
from executors.models.base import Model
from executors.models.fakes.scripted import ScriptedModel
from executors.models.openai.model import OpenAIModel
from executors.usage import Usage
from tests.bench.row import Row

__all__ = ["rows"]

_ROOT = Path(__file__).resolve().parents[2]
_REPLY = ModelReply(text="ok", stop="end", usage=Usage(input=200, output=5))
# The machine may be busy with other things: the best of some rounds is the cost of ours.
_ROUNDS = 5
_NODE = NodeId("root")
Ask = Callable[[ModelRequest], Awaitable[object]]


def _requests(count: int, letters: int, salt: str) -> list[ModelRequest]:
    """Make requests of which no two are the same, so that none shares another's flight."""
    system = Message(role="system", content="You judge.")
    return [
        ModelRequest(
            messages=(system, Message(role="user", content=f"{salt} {n} " + "x" * letters)),
            max_tokens=256,
            temperature=0.0,
        )
        for n in range(count)
    ]


def _calls(in_flight: int) -> Calls:
    caps = Caps(calls=10**9, tokens=10**15)
    return Calls(allowance=CapsAllowance(caps, SystemClock()), emit=_ignore, concurrency=in_flight)


def _ignore(event: Event) -> None:
    del event


async def _drive(requests: list[ModelRequest], in_flight: int, ask: Ask) -> None:
    pending = iter(requests)

    async def worker() -> None:
        for request in pending:
            await ask(request)

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())


async def _cpu(requests: list[ModelRequest], in_flight: int, ask: Ask) -> float:
    """Return CPU seconds a call, of this process."""
    started = time.process_time()
    await _drive(requests, in_flight, ask)
    return (time.process_time() - started) / len(requests)


def _asking(calls: Calls, model: Model) -> Ask:
    return lambda request: calls.ask(model, request, role="judge", node=_NODE)


# ---------------------------------------------------------------- in this process


async def _overhead(in_flight: int, count: int = 4_000) -> Row:
    model = ScriptedModel(lambda _: _REPLY)
    floors: list[float] = []
    ours: list[float] = []
    for n in range(_ROUNDS):
        requests = _requests(count, 600, f"round {n}")
        floors.append(await _cpu(requests, in_flight, model.generate))
        ours.append(await _cpu(requests, in_flight, _asking(_calls(in_flight), model)))
    floor = min(floors) * 1e6
    return Row(
        name=f"overhead a call, zero latency, {in_flight} in flight, no journal",
        ours=min(ours) * 1e6 - floor,
        unit="us",
        bar=40,
        note=f"gate and events on; the bare scripted call takes {floor:.1f} us",
    )


# ---------------------------------------------------------------- on the wire


@contextmanager
def _server(after: float) -> Generator[str]:
    """A fake server in a process of its own, so that its CPU is not ours."""
    command = [sys.executable, "-m", "executors.models.fakes.server", "--after", str(after)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["base_url"]
        process.communicate()  # closes its input, which ends it


async def _bare(base_url: str, in_flight: int, count: int) -> float:
    """The same number of bodies by an aiohttp session alone."""
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 3_000}]}).encode()
    url = f"{base_url}/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def ask(request: ModelRequest) -> None:
            del request
            async with session.post(url, data=body) as response:
                json.loads(await response.read())

        requests = _requests(count, 0, "bare")
        await _drive(requests[:in_flight], in_flight, ask)
        return min([await _cpu(requests, in_flight, ask) for _ in range(_ROUNDS)])


async def _through(
    base_url: str, in_flight: int, count: int, transport: httpx.AsyncBaseTransport | None = None
) -> float:
    """The whole adapter and pipeline, connections warm."""
    model = OpenAIModel("bench", base_url=base_url, transport=transport)
    ask = _asking(_calls(in_flight), model)
    await _drive(_requests(in_flight, 10, "warm"), in_flight, ask)
    rounds = [_requests(count, 3_000, f"round {n}") for n in range(_ROUNDS)]
    used = min([await _cpu(requests, in_flight, ask) for requests in rounds])
    await model.aclose()
    return used


async def _stock(base_url: str, in_flight: int) -> float:
    """The same through httpx's own pool: what the choice of transport was made by."""
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    transport = httpx.AsyncHTTPTransport(limits=limits)
    return await _through(base_url, in_flight, in_flight + 64, transport)


async def _wire(base_url: str, in_flight: int, count: int = 500) -> Row:
    floor = await _bare(base_url, in_flight, count)
    ours = await _through(base_url, in_flight, count)
    stock = await _stock(base_url, in_flight)
    return Row(
        name=f"client CPU a call over HTTP, 50 ms, {in_flight} in flight",
        ours=ours * 1e3,
        unit="ms",
        bar=0.5,
        floor=floor * 1e3,
        note=f"gate and events on; floor: aiohttp alone; through httpx's own pool {stock * 1e3:.2f} ms",
    )


async def _raw(base_url: str, in_flight: int, count: int) -> None:
    """The same number of requests in bare asyncio: bytes out, bytes in, one socket a worker."""
    parts = urlsplit(base_url)
    request = b"POST /v1 HTTP/1.1\r\ncontent-length: 600\r\n\r\n" + b" " * 600
    pending = iter(range(count))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for _ in pending:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.rpartition(b": ")[2]))
        writer.close()
        await writer.wait_closed()

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())


async def _ours(base_url: str, in_flight: int, count: int) -> None:
    model = OpenAIModel("bench", base_url=base_url)
    requests = _requests(count, 600, "thousand")
    await _drive(requests, in_flight, _asking(_calls(in_flight), model))
    await model.aclose()


async def _seconds(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def _thousand(base_url: str) -> Row:
    """1,000 calls of 200 ms, 256 in flight, from cold."""
    in_flight, count = 256, 1_000
    return Row(
        name="1,000 calls at 200 ms, 256 in flight, over HTTP",
        floor=min([await _seconds(_raw(base_url, in_flight, count)) for _ in range(3)]),
        ours=min([await _seconds(_ours(base_url, in_flight, count)) for _ in range(3)]),
        unit="s",
        bar=1.3,
        relative=True,
        note="connections opened in the measured time; floor: bare asyncio on the same server",
    )


def rows() -> list[Row]:
    """Measure calls."""
    found = [asyncio.run(_overhead(in_flight)) for in_flight in (1, 16, 64, 256)]
    with _server(0.05) as base_url:
        found += [asyncio.run(_wire(base_url, in_flight)) for in_flight in (16, 64, 256)]
    with _server(0.2) as base_url:
        found.append(asyncio.run(_thousand(base_url)))
    return found
