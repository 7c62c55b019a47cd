"""TLS in front of a fake server, and an HTTP proxy: both pass bytes on."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import trustme

from executors.models.fakes.server import FakeServer

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.file = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def context(self, name: str) -> ssl.SSLContext:
        """Return what a server under that name needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate = self._authority.issue_cert(name)
        certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context


@dataclass
class Relay:
    """A running relay."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list[bytes])
    """Requests that a proxy was sent."""
    accepted: int = 0
    ended: int = 0
    protocols: list[str | None] = field(default_factory=list[str | None])
    """What was agreed on in each TLS handshake."""


def port_of(server: FakeServer) -> int:
    return int(server.base_url.rpartition(":")[2].partition("/")[0])


@asynccontextmanager
async def serving(
    relay: Relay, serve: Callable[[Pair], Awaitable[None]], context: ssl.SSLContext | None
) -> AsyncGenerator[Relay]:
    """Serve connections until the block ends; then drop them all."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        relay.accepted += 1
        secured = writer.get_extra_info("ssl_object")
        relay.protocols.append(secured and secured.selected_alpn_protocol())
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await serve((reader, writer))
        finally:
            writer.transport.abort()
            tasks.discard(task)
            relay.ended += 1

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context, backlog=512)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        while tasks:
            await asyncio.sleep(0.001)
        await server.wait_closed()
        await asyncio.sleep(0.01)


def tls_front(server: FakeServer, context: ssl.SSLContext) -> AbstractAsyncContextManager[Relay]:
    """Speak TLS in front of a fake server."""

    async def serve(client: Pair) -> None:
        await join(client, await asyncio.open_connection("127.0.0.1", port_of(server)))

    return serving(Relay(), serve, context)


def proxy(
    to: int, context: ssl.SSLContext | None = None, answer: bytes = b""
) -> AbstractAsyncContextManager[Relay]:
    """Be an HTTP proxy behind which every host is one port of this machine.

    Args:
        answer: what CONNECT is answered with, instead of a tunnel.
    """
    relay = Relay()

    async def serve(client: Pair) -> None:
        reader, writer = client
        head = await reader.readuntil(b"\r\n\r\n")
        relay.heads.append(head)
        if answer:
            writer.write(answer)
            await reader.read()
            return
        there = await asyncio.open_connection("127.0.0.1", to)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\nvia: here\r\n\r\n")
        else:
            there[1].write(head)
        await join(client, there)

    return serving(relay, serve, context)


async def join(one: Pair, other: Pair) -> None:
    """Pass bytes both ways until either side ends."""
    try:
        async with anyio.create_task_group() as group:

            async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with suppress(OSError):
                    while data := await reader.read(65_536):
                        writer.write(data)
                        await writer.drain()
                group.cancel_scope.cancel()

            group.start_soon(run, one[0], other[1])
            group.start_soon(run, other[0], one[1])
    finally:
        other[1].transport.abort()
