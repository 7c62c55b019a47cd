"""A scripted OpenAI-compatible server on loopback: for tests, demos and benchmarks.

It speaks raw bytes, so that a script can also send headers only, drip, cut a body or hold a socket.
One request at a time a connection; no TLS. The script is called on the server's loop and must not
block.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import TracebackType
from typing import Self, cast

from executors.models.fakes.acts import (
    Act,
    Close,
    Completion,
    Hold,
    Received,
    Reply,
    Reset,
    Step,
    Steps,
    steps_of,
)

__all__ = ["FakeServer", "Script"]

Script = Callable[[Received], Act] | Iterable[Act] | Act
"""A function of the request, acts in order, or one act for every request."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_OK = Completion()
# Requests that are kept to look at; counts go on.
_KEPT = 1_000


class FakeServer:
    """Serves a script; counts requests, open sockets and requests in progress.

    Use it as `async with` in the running loop, or as `with` in a thread of its own. A sequence
    that is used up answers 500 and makes the context's exit fail.
    """

    def __init__(self, script: Script = _OK, *, port: int = 0) -> None:
        self._answer = _as_function(script)
        self._port = port
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._empty = asyncio.Event()
        self._thread: _Thread | None = None
        self.received: deque[Received] = deque(maxlen=_KEPT)
        """The last requests."""
        self.requests = 0
        """Requests that arrived whole."""
        self.sockets = 0
        """Sockets open now."""
        self.accepted = 0
        """Sockets ever accepted."""
        self.in_progress = 0
        """Requests not yet answered."""
        self.peak = 0
        """The most requests that were in progress together."""
        self.exhausted = 0
        """Requests that came after a scripted sequence had ended."""

    @property
    def base_url(self) -> str:
        """What a client is given, without a slash at its end."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self._port, backlog=1024
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._empty.clear()
        for connection in tuple(self._connections):
            connection.drop()
        await self._server.wait_closed()
        if self._connections:  # each is told of its end on a later turn of the loop
            await self._empty.wait()
        self._complain(error)

    def __enter__(self) -> Self:
        self._thread = _Thread(self)
        self._thread.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._thread.end()
        self._complain(error)

    def _complain(self, error: BaseException | None) -> None:
        if self.exhausted and error is None:
            raise AssertionError(f"the script ended {self.exhausted} request(s) too early")

    def opened(self, connection: _Connection) -> None:
        """Count a new socket."""
        self._connections.add(connection)
        self.sockets += 1
        self.accepted += 1

    def closed(self, connection: _Connection) -> None:
        """Count a socket's end."""
        self._connections.discard(connection)
        self.sockets -= 1
        if not self._connections:
            self._empty.set()

    def answer(self, head: bytes, body: bytes) -> Steps:
        """Count a request and return what to do with it."""
        method, path, _ = head.split(b" ", 2)
        received = Received(
            index=self.requests,
            method=method.decode("latin-1"),
            path=path.decode("latin-1"),
            head=head,
            body=body,
        )
        self.requests += 1
        self.received.append(received)
        self.in_progress += 1
        self.peak = max(self.peak, self.in_progress)
        try:
            act = self._answer(received)
        except StopIteration:
            self.exhausted += 1
            act = Reply(status=500, body=b'{"error":{"message":"the script has ended"}}')
        return steps_of(act, received)


class _Connection(asyncio.Protocol):
    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._steps: Iterator[Step] | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports are of classes of their own.
        self._transport = cast("asyncio.Transport", transport)
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._finish()
        self._server.closed(self)

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._steps is None:
            self._serve()

    def _serve(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self._buffer, 0, end)
        whole = end + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) < whole:
            return
        head, body = self._buffer[:end], self._buffer[end + 4 : whole]
        self._buffer = self._buffer[whole:]
        self._steps = _endless(self._server.answer(head, body))
        self._go_on()

    def _go_on(self) -> None:
        """Take steps until one of them waits."""
        if self._transport is None or self._steps is None:
            return
        for step in self._steps:
            match step:
                case bytes():
                    self._transport.write(step)
                case Hold():
                    return
                case Close():
                    self._transport.close()
                    return
                case Reset():
                    _reset(self._transport)
                    return
                case _:
                    self._loop.call_later(step, self._go_on)
                    return
        self._finish()
        if self._buffer:
            self._serve()

    def _finish(self) -> None:
        if self._steps is not None:
            self._steps = None
            self._server.in_progress -= 1


def _endless(steps: Steps) -> Iterator[Step]:
    yield from steps.steps
    while steps.again is not None:
        yield from steps.steps[steps.again :]


def _reset(transport: asyncio.Transport) -> None:
    sock = transport.get_extra_info("socket")
    # Lingering for zero seconds turns the close into a RST.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _as_function(script: Script) -> Callable[[Received], Act]:
    if isinstance(script, Completion | Reply | Steps):
        return lambda _: script
    if callable(script):
        return script
    acts = iter(script)
    return lambda _: next(acts)


class _Thread(threading.Thread):
    """A server's own loop, for clients that block."""

    def __init__(self, server: FakeServer) -> None:
        super().__init__(name="fake-server", daemon=True)
        self._server = server
        self._ready = threading.Event()
        self._done = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._error: OSError | None = None

    def begin(self) -> None:
        self.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self.join()

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            async with self._server:
                self._ready.set()
                await self._done.wait()
        except OSError as error:  # the port is taken
            self._error = error
            self._ready.set()


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m executors.models.fakes.server")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--text", default="ok", help="what every completion says")
    parser.add_argument("--after", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--script", help="package.module:name of a script, instead of --text")
    options = parser.parse_args(arguments)
    script: Script = Completion(text=options.text, after=options.after)
    if options.script is not None:
        module, _, name = options.script.partition(":")
        script = getattr(import_module(module), name)
    asyncio.run(_serve_until_eof(FakeServer(script, port=options.port)))


async def _serve_until_eof(server: FakeServer) -> None:
    """Say the base URL, serve until standard input ends, say what was counted."""
    async with server:
        _say({"base_url": server.base_url})
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    _say({"requests": server.requests, "accepted": server.accepted, "peak": server.peak})


def _say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main(sys.argv[1:])
