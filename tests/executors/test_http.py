"""The wire on loopback: every bound fires by itself, and nothing is left behind."""

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import (
    ConfigError,
    ConnectFault,
    ConnectTimeout,
    DeadlineExceeded,
    HeadersTimeout,
    IdleTimeout,
    MalformedReply,
    ModelError,
    RequestRejected,
    TransportFault,
    ValidationError,
)
from executors.messages import ModelReply
from executors.models.exchange import Bounds
from executors.models.fake_acts import (
    Close,
    Completion,
    Hold,
    Reply,
    Reset,
    Steps,
    comments_for_ever,
    cut_short,
    drip,
    headers_only,
    held_after_done,
    silent,
    sse,
)
from executors.models.fake_server import FakeServer
from executors.models.http import Wire
from executors.models.openai import OpenAIModel
from executors.models.origins import is_loopback, origin_of, proxy_of
from executors.models.sse import EventSplitter, ServerEvent
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


# ---------------------------------------------------------------- bounds


@pytest.mark.case("K1-1")
async def test_comments_do_not_keep_a_stream_alive() -> None:
    async with FakeServer(comments_for_ever(0.05)) as server:
        error = await fails_with(IdleTimeout, server)
    assert error.what == "no event for 0.2 s (idle)"
    assert error.retryable
    assert error.maybe_paid


@pytest.mark.case("K1-1")
async def test_the_total_bound_fires_while_events_flow_and_is_terminal() -> None:
    endless = Steps((_HEAD, sse(delta("x")), 0.02), again=1)
    async with FakeServer(endless) as server:
        error = await fails_with(DeadlineExceeded, server)
    assert error.what == "not done within 1 s (total)"
    assert not error.retryable


@pytest.mark.case("K1-2")
async def test_the_end_marker_ends_the_read_and_the_socket_is_closed() -> None:
    async with FakeServer(held_after_done(delta("answer", "stop"))) as server:
        model = model_at(server)
        reply = await model.generate(ask(stream=True))
        assert (reply.text, reply.stop) == ("answer", "end")
        await until(lambda: server.sockets == 0)
        assert (server.requests, server.accepted) == (1, 1)
        await model.aclose()


@pytest.mark.case("K1-4", "K1-5")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_server_that_never_answers_is_left_at_the_headers_bound(stream: bool) -> None:
    async with FakeServer(silent()) as server:
        error = await fails_with(HeadersTimeout, server, stream=stream)
        await until(lambda: server.sockets == 0)
    assert error.what == "no answer within 0.3 s (headers)"
    assert error.maybe_paid


async def test_a_transport_without_bounds_of_its_own_is_bounded_too() -> None:
    class Deaf(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await anyio.sleep_forever()
            raise AssertionError

    bounds = Bounds(connect=0.05, headers=0.05, idle=1.0, total=5.0)
    model = OpenAIModel("x", base_url="http://127.0.0.1:9/v1", transport=Deaf(), bounds=bounds)
    with pytest.raises(HeadersTimeout):
        await model.generate(ask())


@pytest.mark.case("K1-8")
async def test_a_silent_stream_ends_at_the_idle_bound_and_a_slow_one_goes_on() -> None:
    bounds = Bounds(idle=0.5, total=60.0)
    async with FakeServer(headers_only()) as server:
        await fails_with(IdleTimeout, server, bounds=bounds)
    events = [part for n in range(6) for part in (sse(delta(f"{n}")), 0.15)]
    slow = Steps((_HEAD, *events, sse(delta("", "stop")) + b"data: [DONE]\n\n", Close()))
    async with FakeServer(slow) as server:
        model = model_at(server, bounds=bounds)
        assert (await model.generate(ask(stream=True))).text == "012345"
        await model.aclose()


async def test_a_body_that_drips_is_bounded_by_its_idle_and_its_total_time() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"
    async with FakeServer(Steps((head + b'{"a', Hold()))) as server:
        await fails_with(IdleTimeout, server, stream=False)
    async with FakeServer(Steps((head, b"x", 0.05), again=1)) as server:
        await fails_with(DeadlineExceeded, server, stream=False)


@pytest.mark.case("K1-7")
async def test_a_stalled_call_delays_nobody() -> None:
    def script(received: object) -> Steps | Completion:
        return silent() if server.requests == 1 else Completion()

    async with FakeServer(script) as server:
        model = model_at(server)
        async with anyio.create_task_group() as group:
            group.start_soon(model.generate, ask())
            await until(lambda: server.requests == 1)
            for _ in range(5):
                assert (await model.generate(ask())).text == "ok"
            assert server.in_progress == 1
            group.cancel_scope.cancel()
        await model.aclose()


async def test_nobody_there_is_a_connect_fault_that_cost_nothing() -> None:
    async with FakeServer() as server:
        pass
    error = await fails_with(ConnectFault, server)
    assert error.retryable
    assert not error.maybe_paid
    assert "127.0.0.1" in error.what


async def test_a_connection_that_does_not_come_about_ends_at_the_connect_bound() -> None:
    """The handshake of TLS belongs to connecting; this server never takes part in one."""
    async with FakeServer() as server:
        url = server.base_url.replace("http://", "https://")
        model = OpenAIModel("x", base_url=url, bounds=Bounds(connect=0.2))
        with pytest.raises(
            ConnectTimeout, match=r"no connection within 0.2 s \(connect\)"
        ) as caught:
            await model.generate(ask())
        await model.aclose()
    assert not caught.value.maybe_paid


@pytest.mark.parametrize("name", ["connect", "headers", "idle", "total", "body"])
@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan"), "10", None, True])
def test_a_bound_that_bounds_nothing_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=f"{name}="):
        Bounds(**{name: value})  # type: ignore[arg-type]


def test_every_bound_has_a_finite_default_and_connect_is_far_below_the_others() -> None:
    bounds = Bounds()
    assert (bounds.connect, bounds.headers, bounds.idle, bounds.total) == (10, 120, 60, 600)


# ---------------------------------------------------------------- broken connections


@pytest.mark.parametrize("ending", [Close(), Reset()])
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", _HEAD + b"data: {"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_connection_that_breaks_may_have_been_paid(
    ending: Close | Reset, sent: bytes, stream: bool
) -> None:
    async with FakeServer(Steps((sent, 0.05, ending))) as server:
        model = model_at(server)
        with pytest.raises((TransportFault, MalformedReply)) as caught:
            await model.generate(ask(stream=stream))
        await model.aclose()
    assert caught.value.maybe_paid
    assert caught.value.retryable


@pytest.mark.case("K8-8")
async def test_a_body_cut_short_is_a_transport_fault() -> None:
    async with FakeServer(cut_short(b'{"choices": [', promised=500)) as server:
        error = await fails_with(TransportFault, server, stream=False)
    assert error.maybe_paid


@pytest.mark.case("K8-8", "K3-13")
async def test_a_stream_that_ends_before_its_answer_is_no_answer() -> None:
    async with FakeServer(Steps((_HEAD + sse(delta("half an ans")), Close()))) as server:
        error = await fails_with(TransportFault, server)
    assert error.what == "the stream ended before its answer did"


async def test_a_stream_that_ends_without_its_marker_but_after_its_finish_is_whole() -> None:
    async with FakeServer(Steps((_HEAD + sse(delta("yes", "stop")), Close()))) as server:
        model = model_at(server)
        assert (await model.generate(ask(stream=True))).text == "yes"
        await model.aclose()


async def test_bytes_that_are_no_http_are_a_transport_fault() -> None:
    async with FakeServer(Steps((b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Close()))) as server:
        await fails_with(TransportFault, server, stream=False)


@pytest.mark.case("K15-13")
@pytest.mark.parametrize("stream", [True, False])
async def test_an_endless_body_is_cut_off(stream: bool) -> None:
    if stream:
        endless = Steps((_HEAD, b"data: " + b"x" * 4_000 + b"\n", 0.0), again=1)
    else:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n"
        endless = Steps((head, b"x" * 4_000, 0.0), again=1)
    async with FakeServer(endless) as server:
        error = await fails_with(MalformedReply, server, stream=stream, bounds=Bounds(body=100_000))
        await until(lambda: server.sockets == 0)
    assert "longer than 100,000 bytes" in error.what


# ---------------------------------------------------------------- events


@pytest.mark.case("K7-8")
async def test_a_line_ends_at_lf_alone() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be"
    body = sse(delta(text, "stop")) + b"data: [DONE]\n\n"
    async with FakeServer(drip(body, 0.0, size=7)) as server:
        model = model_at(server)
        assert (await model.generate(ask(stream=True))).text == text
        await model.aclose()


@given(st.lists(st.text(max_size=12), max_size=6), st.integers(1, 9), st.booleans())
def test_events_are_the_same_however_the_bytes_are_cut(
    texts: list[str], size: int, crlf: bool
) -> None:
    wanted = [ServerEvent(name="e", data=one.encode()) for one in map(_one_line, texts) if one]
    raw = b"".join(b"event: e\ndata: " + event.data + b"\n\n: comment\n" for event in wanted)
    raw = raw.replace(b"\n", b"\r\n") if crlf else raw
    splitter = EventSplitter()
    got = [event for at in range(0, len(raw), size) for event in splitter.feed(raw[at : at + size])]
    assert got == wanted
    assert list(splitter.close()) == []


def test_data_lines_are_joined_and_events_without_data_are_none() -> None:
    splitter = EventSplitter()
    raw = b"data: 1\ndata:2\n\nevent: ping\n\ndata:\n\nid: 7\nretry: 5\ndata: last"
    assert list(splitter.feed(raw)) == [ServerEvent(name="", data=b"1\n2")]
    assert list(splitter.close()) == [ServerEvent(name="", data=b"last")]


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
        model = model_at(server)
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


def _one_line(text: str) -> str:
    return text.replace("\n", "").replace("\r", "").lstrip(" ")
