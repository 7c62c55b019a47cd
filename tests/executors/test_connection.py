"""Connections on loopback: how replies are framed, and when a connection is used again."""

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import anyio
import pytest

from executors.errors import (
    ConnectFault,
    ConnectTimeout,
    HeadersTimeout,
    MalformedReply,
    ModelError,
    TransportFault,
)
from executors.models.fakes.acts import Act, Close, Completion, Hold, Received, Reset, Steps, sse
from executors.models.fakes.server import FakeServer
from executors.models.wire.bounds import Bounds, Faults
from executors.models.wire.http import Wire
from executors.models.wire.reading import _Undo
from executors.models.wire.sockets import _race
from tests.executors.asks import QUICK, ask, model_at

pytestmark = pytest.mark.anyio

_BODY = b'{"choices": [{"message": {"content": "ok"}}]}'
_SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(_BODY) + _BODY
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_EVENT = sse({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]})
_END = b"data: [DONE]\n\n"


async def text_of(server: FakeServer, calls: int = 1, *, stream: bool = False) -> str:
    """Return the text of the last of some calls."""
    model = model_at(server, bounds=QUICK)
    try:
        texts = [(await model.generate(ask(stream=stream))).text for _ in range(calls)]
        return texts[-1]
    finally:
        await model.aclose()


async def fault_of(act: Act, *, calls: int = 1) -> ModelError:
    async with FakeServer(act) as server:
        with pytest.raises(ModelError) as caught:
            await text_of(server, calls)
        await until(lambda: server.sockets == 0)
    return caught.value


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


# ---------------------------------------------------------------- framing
@pytest.mark.parametrize(
    ("raw", "again"),
    [
        (_SIZED, True),
        (_SIZED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1), False),
        (_SIZED.replace(b"1.1", b"1.0", 1), False),
        (_SIZED.replace(b"1.1", b"1.0", 1).replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n", 1), True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + _SIZED, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(_BODY) + b"0\r\nx-trailer: 1\r\n\r\n", True),
    ],
    ids=["sized", "close", "1.0", "1.0-kept", "interim", "chunked"],
)  # fmt: skip
@pytest.mark.parametrize("cut", [False, True])
async def test_each_framing_is_read_and_tells_whether_the_connection_lives(
    raw: bytes, again: bool, cut: bool
) -> None:
    steps = tuple(part for at in range(len(raw)) for part in (raw[at : at + 1], 0.0))
    async with FakeServer(Steps(steps if cut else (raw,))) as server:
        assert await text_of(server, calls=2) == "ok"
        assert server.accepted == (1 if again else 2)


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + _BODY
    async with FakeServer(Steps((raw[:60], 0.01, raw[60:], 0.01, Close()))) as server:
        assert await text_of(server) == "ok"


@pytest.mark.parametrize("status", [204, 304])
async def test_a_status_without_a_body_waits_for_none(status: int) -> None:
    error = await fault_of(Steps((b"HTTP/1.1 %d Nothing\r\n\r\n" % status,)))
    assert f"answered {status}" in error.what


async def test_a_stream_that_goes_on_after_its_end_marker_keeps_its_connection_when_it_ends() -> (
    None
):
    """Servers write the last chunk apart from the end marker: that is no reason to connect anew."""
    steps = Steps((_STREAM + chunk(_EVENT + _END), 0.02, b"0\r\n\r\n"))
    async with FakeServer(steps) as server:
        model = model_at(server)
        for _ in range(3):
            assert (await model.generate(ask(stream=True))).text == "ok"
            await anyio.sleep(0.05)
        assert server.accepted == 1
        await model.aclose()


@pytest.mark.case("K1-2")
async def test_a_stream_that_does_not_end_after_its_end_marker_loses_its_connection() -> None:
    async with FakeServer(Steps((_STREAM + chunk(_EVENT + _END), Hold()))) as server:
        model = model_at(server)
        for _ in range(2):
            assert (await model.generate(ask(stream=True))).text == "ok"
        await until(lambda: server.sockets == 0)
        assert server.accepted == 2
        await model.aclose()


# ---------------------------------------------------------------- what is no reply
@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", TransportFault),
        (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", TransportFault),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!", TransportFault),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nhi", MalformedReply),
    ],
)  # fmt: skip
async def test_what_breaks_the_protocol_is_a_typed_error(raw: bytes, kind: type) -> None:
    error = await fault_of(Steps((raw, Hold())))
    assert type(error) is kind


@pytest.mark.parametrize(
    "steps",
    [
        Steps((b"HTTP/1.1 200 OK\r\n", b"x-header: " + b"y" * 10_000 + b"\r\n", 0.0), again=1),
        Steps((b"HTTP/1.1 100 Continue\r\n\r\n" * 500, 0.0), again=0),
        Steps((b"HTTP/1.1 200 OK\r\nx: ", b"y" * 10_000, 0.0), again=1),
        Steps((_STREAM + b"2\r\nhi\r\n0\r\n", b"x-trailer: " + b"y" * 9_000 + b"\r\n", 0.0), again=1),
    ],
    ids=["many", "interim", "one", "trailers"],
)  # fmt: skip
async def test_headers_without_end_are_cut_off(steps: Steps) -> None:
    error = await fault_of(steps)
    assert isinstance(error, MalformedReply)
    assert "a head in the response is longer than 65,536 bytes" in error.what


async def test_headers_that_drip_end_at_the_headers_bound() -> None:
    error = await fault_of(Steps((b"HTTP/1.1 200 OK\r\nx: ", b"y", 0.02), again=1))
    assert isinstance(error, HeadersTimeout)


async def test_a_small_body_that_stands_for_a_large_one_is_cut_off() -> None:
    bomb = gzip.compress(b"x" * 10_000_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    async with FakeServer(Steps((head + bomb,))) as server:
        model = model_at(server, bounds=Bounds(body=1_000_000))
        with pytest.raises(MalformedReply, match="longer than 1,000,000 bytes"):
            await model.generate(ask())
        await model.aclose()


def test_what_a_chunk_stands_for_is_read_in_pieces() -> None:
    bomb = gzip.compress(b"x" * 10_000_000)
    pieces = list(_Undo(Faults(Bounds(), "here")).feed(bomb))
    assert sum(map(len, pieces)) == 10_000_000
    assert max(map(len, pieces)) <= 256 * 1024


async def test_an_encoding_that_nobody_asked_for_is_named() -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nhi"
    error = await fault_of(Steps((raw,)))
    assert error.what == "the body cannot be decoded: its encoding 'br' was not asked for"


async def test_a_compressed_body_that_ends_too_early_is_none() -> None:
    half = gzip.compress(_BODY)[:-9]
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(half)
    error = await fault_of(Steps((head + half,)))
    assert error.what == "the body cannot be decoded: it ends too early"


# ---------------------------------------------------------------- connections that were kept
async def test_a_connection_that_was_closed_while_it_was_idle_is_never_used() -> None:
    """Also not when the loop had no time yet to see it: the next request leaves at once."""
    async with FakeServer(Steps((_SIZED, Close()))) as server:
        model = model_at(server)
        for _ in range(50):
            assert (await model.generate(ask())).text == "ok"
        assert server.requests == 50
        await model.aclose()


@pytest.mark.parametrize("ending", [Close(), Reset()])
def test_a_goodbye_that_the_loop_has_not_read_is_seen(ending: Close | Reset) -> None:
    """The server lives in a thread and closes while the client's loop is busy."""
    with FakeServer(Steps((_SIZED, 0.02, ending))) as server:

        async def run() -> None:
            model = model_at(server)
            for _ in range(3):
                assert (await model.generate(ask())).text == "ok"
                hold_until(lambda: server.sockets == 0)
            await model.aclose()

        asyncio.run(run())
        assert server.requests == 3


async def test_a_kept_connection_that_dies_before_a_reply_is_reported_as_that() -> None:
    def script(received: Received) -> Act:
        return Completion() if received.index == 0 else Steps((Close(),))

    async with FakeServer(script) as server:
        with pytest.raises(TransportFault) as caught:
            await text_of(server, calls=2)
        assert server.requests == 2
    assert "before any byte of a response; it had been idle" in caught.value.what
    assert caught.value.maybe_paid


async def test_bytes_that_nobody_asked_for_end_a_connection() -> None:
    """A second reply to one request would be taken for the answer to the next one."""
    wrong = _SIZED.replace(b'"ok"', b'"no"')
    every = ((_SIZED + wrong,), (_SIZED, 0.01, wrong), (_SIZED, 0.01, b"\r\n"))
    for steps in every:
        async with FakeServer(Steps(steps)) as server:
            model = model_at(server)
            for _ in range(2):
                assert (await model.generate(ask())).text == "ok"
                await anyio.sleep(0.03)
            assert server.accepted == 2
            await model.aclose()


async def test_a_reply_that_comes_before_its_request_was_written_ends_the_connection() -> None:
    """The rest of the request would stand before the next one."""
    accepted = 0

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        with suppress(ConnectionError):
            await writer.drain()
            await done.wait()
        writer.transport.abort()

    done = asyncio.Event()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    wire = Wire(url, where="here", bounds=QUICK)
    for _ in range(2):
        reply = await wire.post(b"x" * 20_000_000, {})
        assert reply is not None
        assert reply.status == 413
    assert accepted == 2
    await wire.aclose()
    done.set()
    server.close()
    await server.wait_closed()
    await anyio.sleep(0.02)


async def test_a_half_read_body_closes_its_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"
    async with FakeServer(Steps((head, Hold()))) as server:
        model = model_at(server)
        with anyio.move_on_after(0.1):
            await model.generate(ask())
        await until(lambda: server.sockets == 0)
        await model.aclose()


async def test_idle_connections_are_dropped_after_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("executors.models.wire.pool._IDLE", 0.1)
    async with FakeServer(Completion(after=0.02)) as server:
        model = model_at(server)
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(model.generate, ask())
        for _ in range(20):  # one after the other needs one connection: the last used is the next
            await model.generate(ask())
        assert server.sockets == 1
        await until(lambda: server.sockets == 0)
        assert server.accepted == 5
        assert (await model.generate(ask())).text == "ok"
        await model.aclose()


async def test_closing_while_a_request_is_on_its_way_ends_it() -> None:
    async with FakeServer(Steps((Hold(),))) as server:
        model = model_at(server)
        caught: list[ModelError] = []

        async def call() -> None:
            with pytest.raises(TransportFault) as error:
                await model.generate(ask())
            caught.append(error.value)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await until(lambda: server.requests == 1)
            await model.aclose()
        assert caught[0].what == "the connection broke: this client was closed"
        assert caught[0].maybe_paid


# ---------------------------------------------------------------- addresses
async def test_a_name_with_several_addresses_takes_the_first_that_connects() -> None:
    async with FakeServer() as server:
        url = server.base_url.replace("127.0.0.1", "localhost")
        wire = Wire(f"{url}/chat/completions", where="here", bounds=QUICK)
        reply = await wire.post(b"{}", {})
        assert reply is not None
        assert reply.status == 200
        await wire.aclose()


async def test_an_address_that_is_silent_holds_up_the_next_one_for_a_moment_alone() -> None:
    async with FakeServer() as server:
        port = int(server.base_url.rpartition(":")[2].partition("/")[0])
        with full_backlog() as deaf:
            with anyio.fail_after(2):
                sock = await _race([deaf, (socket.AF_INET, ("127.0.0.1", port))])
        assert sock.getpeername()[1] == port
        sock.close()


async def test_addresses_that_all_refuse_are_an_error() -> None:
    with pytest.raises(ConnectionRefusedError):
        await _race([(socket.AF_INET, ("127.0.0.1", 9)), (socket.AF_INET, ("127.0.0.2", 9))])


async def test_a_race_that_is_cancelled_leaves_no_socket() -> None:
    with full_backlog() as deaf, anyio.move_on_after(0.05):
        await _race([deaf, deaf])


async def test_many_that_connect_at_once_look_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    real = socket.getaddrinfo

    def counted(host: str, port: int, **more: int) -> object:
        if not more.get("flags"):
            asked.append(host)
        return real(host, port, **more)

    monkeypatch.setattr(socket, "getaddrinfo", counted)
    async with FakeServer(Completion(after=0.05)) as server:
        url = server.base_url.replace("127.0.0.1", "localhost")
        wire = Wire(f"{url}/chat/completions", where="here", bounds=Bounds())
        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(wire.post, b"{}", {"accept": "application/json"})
        assert (server.accepted, asked) == (40, ["localhost"])
        await wire.aclose()


async def test_a_name_that_is_none_is_a_connect_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str, port: int, **more: int) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    wire = Wire("http://nowhere.example/v1", where="here", bounds=QUICK)
    for _ in range(2):
        with pytest.raises(ConnectFault, match=r"cannot connect: nowhere.example:80: .*not known"):
            await wire.post(b"{}", {})
    await wire.aclose()


async def test_a_look_up_that_hangs_ends_at_the_connect_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()

    def hanging(host: str, port: int, **more: int) -> object:
        if not more.get("flags"):
            go_on.wait(5)
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    wire = Wire("http://nowhere.example/v1", where="here", bounds=Bounds(connect=0.05))
    with pytest.raises(ConnectTimeout, match=r"no connection within 0.05 s \(connect\)") as caught:
        await wire.post(b"{}", {})
    go_on.set()
    assert not caught.value.maybe_paid
    await wire.aclose()


# ---------------------------------------------------------------- helpers
class full_backlog:  # noqa: N801 - used like a function
    """An address that takes no more connections, and does not say so."""

    def __enter__(self) -> tuple[int, tuple[str, int]]:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=0)
        there = self._server.getsockname()
        self._clients = [socket.socket() for _ in range(3)]
        for client in self._clients:
            client.setblocking(False)
            client.connect_ex(there)
        return socket.AF_INET, there

    def __exit__(self, *exc: object) -> None:
        for sock in (*self._clients, self._server):
            sock.close()


def hold_until(true: Callable[[], bool]) -> None:
    """Hold up the loop until something is true in another thread."""
    end = time.monotonic() + 5
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


async def until(true: Callable[[], bool]) -> None:
    """Wait for what happens on the server's side of a socket."""
    with anyio.fail_after(5):
        while not true():
            await anyio.sleep(0.005)
