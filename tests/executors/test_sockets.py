"""Sockets and loops: as many as needed, none left, none where a key must not go."""

import asyncio
import gc
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest

from executors.errors import (
    ConfigError,
    MalformedReply,
    ModelError,
    RequestRejected,
)
from executors.messages import ModelReply
from executors.models.fakes.acts import (
    Completion,
    Reply,
)
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from executors.models.wire.bounds import Bounds
from executors.models.wire.dialling import Dialler
from executors.models.wire.http import Wire
from executors.models.wire.origins import is_loopback, origin_of, proxy_of
from executors.models.wire.routes import route_of
from tests.executors.asks import QUICK, ask, model_at

pytestmark = pytest.mark.anyio

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def delta(text: str, finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


async def fails_with(
    error: type[ModelError], server: FakeServer, *, stream: bool = True, bounds: Bounds = QUICK
) -> ModelError:
    model = model_at(server, bounds=bounds)
    with pytest.raises(error) as caught:
        await model.generate(ask(stream=stream))
    await model.aclose()
    assert type(caught.value) is error
    return caught.value


# ---------------------------------------------------------------- sockets and loops
@pytest.mark.case("K9-16")
async def test_every_call_under_the_cap_has_a_connection_at_once() -> None:
    async with FakeServer(Completion(after=0.3)) as server:
        model = model_at(server, bounds=Bounds(connect=1.0, headers=5.0))
        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(model.generate, ask())
        assert (server.requests, server.peak) == (64, 64)
        await model.aclose()


@pytest.mark.case("K9-17")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_thousand_calls_use_one_connection(stream: bool) -> None:
    async with FakeServer() as server:
        model = model_at(server)
        await model.generate(ask(stream=stream))
        before = _descriptors()
        for _ in range(1_000):
            await model.generate(ask(stream=stream))
        assert _descriptors() == before
        assert server.accepted == 1
        await model.aclose()


async def test_cancelling_under_contention_leaves_the_client_whole() -> None:
    async with FakeServer(Completion(after=0.02)) as server:
        model = model_at(server)
        for n in range(20):
            async with anyio.create_task_group() as group:
                for _ in range(16):
                    group.start_soon(model.generate, ask())
                await anyio.sleep(0.001 * n)
                group.cancel_scope.cancel()
        assert (await model.generate(ask())).text == "ok"
        await model.aclose()
        await until(lambda: server.sockets == 0)


async def test_a_client_that_was_closed_opens_again() -> None:
    async with FakeServer() as server:
        model = model_at(server)
        for _ in range(2):
            assert (await model.generate(ask())).text == "ok"
            await model.aclose()
            await until(lambda: server.sockets == 0)
        await model.aclose()


def test_one_model_serves_several_runs_and_each_loop_closes_what_it_opened() -> None:
    with FakeServer() as server:
        model = model_at(server)
        for _ in range(3):
            assert asyncio.run(model.generate(ask())).text == "ok"
        assert server.requests == 3
        _settle(lambda: server.sockets == 0)
        gc.collect()


def test_one_model_serves_several_threads_at_once() -> None:
    with FakeServer(Completion(after=0.05)) as server:
        model = model_at(server)
        replies: list[ModelReply] = []

        def run() -> None:
            replies.append(asyncio.run(model.generate(ask())))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [reply.text for reply in replies] == ["ok"] * 4


@pytest.mark.case("K1-5")
async def test_sockets_are_probed_while_they_are_silent() -> None:
    async with FakeServer() as server:
        made: list[asyncio.BaseTransport] = []

        class Seen(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.append(transport)

        await Dialler(route_of(server.base_url)).dial(Seen)
        sock = made[0].get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        made[0].close()


async def test_closing_twice_at_once_closes_once() -> None:
    async with FakeServer() as server:
        model = model_at(server)
        await model.generate(ask())
        async with anyio.create_task_group() as group:
            group.start_soon(model.aclose)
            group.start_soon(model.aclose)
        await until(lambda: server.sockets == 0)


async def test_an_injected_transport_is_used_and_closed_with_the_model() -> None:
    class Canned(httpx.AsyncBaseTransport):
        closed = False

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, json={"choices": [{"message": {"content": "canned"}}]})

        async def aclose(self) -> None:
            self.closed = True

    transport = Canned()
    model = OpenAIModel("x", base_url="http://127.0.0.1:9/v1", transport=transport)
    assert (await model.generate(ask())).text == "canned"
    await model.aclose()
    assert transport.closed


async def test_httpxs_own_transport_works_under_the_seam_too() -> None:
    async with FakeServer([Completion(), Completion()]) as server:
        model = OpenAIModel(
            "x", base_url=server.base_url, transport=httpx.AsyncHTTPTransport(retries=0)
        )
        for stream in (True, False):
            assert (await model.generate(ask(stream=stream))).text == "ok"
        await model.aclose()


async def test_a_compressed_reply_is_read_though_none_was_asked_for() -> None:
    import gzip

    body = gzip.compress(b'{"choices": [{"message": {"content": "small"}}]}')
    reply = Reply(body=body, headers=(("content-encoding", "gzip"),))
    broken = Reply(body=b"no gzip", headers=(("content-encoding", "gzip"),))
    async with FakeServer([reply, broken]) as server:
        model = model_at(server)
        assert (await model.generate(ask())).text == "small"
        with pytest.raises(MalformedReply, match="cannot be decoded"):
            await model.generate(ask())
        await model.aclose()


# ---------------------------------------------------------------- where a request may go
@pytest.mark.case("K15-11")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_refused_and_nothing_goes_to_its_target(status: int) -> None:
    async with FakeServer() as other:
        to = (("location", f"{other.base_url}/chat/completions"),)
        async with FakeServer(Reply(status=status, headers=to)) as server:
            error = await fails_with(RequestRejected, server, stream=False)
        assert other.accepted == 0
        target = other.base_url.removesuffix("/v1")
    assert f"answered {status}, a redirect to {target}, which is refused" in error.what
    assert "redirects are not followed" in str(error)


async def test_nothing_is_sent_that_the_caller_did_not_give() -> None:
    async with FakeServer() as server:
        model = model_at(server)
        for _ in range(2):
            await model.generate(ask())
        await model.aclose()
        assert set(server.received[1].headers) == {
            "host",
            "content-type",
            "accept",
            "accept-encoding",
            "user-agent",
            "authorization",
            "content-length",
        }


async def test_a_cookie_is_not_sent_back() -> None:
    async with FakeServer(Completion(headers=(("set-cookie", "a=b"),))) as server:
        # By name: jars leave addresses out, and a test by address would show nothing.
        url = server.base_url.replace("127.0.0.1", "localhost")
        model = OpenAIModel("m", base_url=url)
        for _ in range(2):
            await model.generate(ask())
        await model.aclose()
        assert "cookie" not in server.received[1].headers


@pytest.mark.case("K15-14")
def test_loopback_never_has_a_proxy_and_others_have_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert proxy_of("https://api.example/v1") == "http://proxy.example:3128"
    assert proxy_of("https://inside.example/v1") is None
    for url in ("http://localhost:1/v1", "http://127.0.0.2/v1", "http://[::1]:8/v1"):
        assert proxy_of(url) is None


def test_a_proxy_of_another_kind_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example:1080")
    with pytest.raises(ConfigError, match="kind 'socks5'"):
        Wire("https://api.example/v1", where="here", bounds=Bounds())


@pytest.mark.case("K15-14")
async def test_a_request_to_another_host_goes_to_its_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        model = OpenAIModel("x", base_url="http://models.example/v1")
        assert (await model.generate(ask())).text == "ok"
        assert proxy.received[0].path == "http://models.example/v1/chat/completions"
        await model.aclose()


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("localhost", True),
        ("a.localhost", True),
        ("LOCALHOST.", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("0.0.0.0", False),
        (None, False),
    ],
)
def test_what_counts_as_loopback(host: str | None, is_it: bool) -> None:
    assert is_loopback(host) is is_it


@pytest.mark.parametrize(
    "host",
    ["a" * 64, "a." * 127 + "example", "bücher.example", "-a.example", "a..example", "[::g]"],
)
def test_a_host_that_no_look_up_can_take_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        OpenAIModel("m", base_url=f"http://{host}/v1")


def test_an_origin_always_names_its_port() -> None:
    assert origin_of("https://api.example/v1") == "https://api.example:443"
    assert origin_of("http://[::1]/v1") == "http://[::1]:80"


# ---------------------------------------------------------------- helpers
async def until(true: Callable[[], bool]) -> None:
    """Wait for what happens on the server's side of a socket."""
    with anyio.fail_after(5):
        while not true():
            await anyio.sleep(0.005)


def _settle(true: Callable[[], bool]) -> None:
    anyio.run(until, true)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
