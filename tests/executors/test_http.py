"""The wire on loopback: every bound fires by itself, and each break is a typed error."""

from collections.abc import Callable

import anyio
import httpx
import pytest

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
from executors.models.fakes.acts import (
    Close,
    Completion,
    Hold,
    Reset,
    Steps,
    comments_for_ever,
    cut_short,
    headers_only,
    held_after_done,
    silent,
    sse,
)
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from executors.models.wire.bounds import Bounds
from tests.executors.asks import QUICK, ask, model_at

pytestmark = pytest.mark.anyio

# Room for a busy machine between two events, and still less than the whole.
FLOWING = Bounds(idle=0.6, total=1.2)
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
    endless = Steps((_HEAD, sse(delta("x")), 0.003), again=1)
    async with FakeServer(endless) as server:
        error = await fails_with(DeadlineExceeded, server, bounds=FLOWING)
    assert error.what == "not done within 1.2 s (total)"
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


@pytest.mark.parametrize("stream", [True, False])
async def test_the_headers_bound_ends_with_the_headers(stream: bool) -> None:
    """A model may think for longer between two events than a server may take to accept."""
    bounds = Bounds(headers=0.3, idle=10.0)
    rest = b'{"choices": [{"message": {"content": "late"}}]}'
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(rest)
    if stream:
        whole, rest = _HEAD, sse(delta("late", "stop")) + b"data: [DONE]\n\n"
    async with FakeServer(Steps((whole, 0.7, rest))) as server:
        model = model_at(server, bounds=bounds)
        assert (await model.generate(ask(stream=stream))).text == "late"
        await model.aclose()


async def test_a_body_that_drips_is_bounded_by_its_idle_and_its_total_time() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"
    async with FakeServer(Steps((head + b'{"a', Hold()))) as server:
        await fails_with(IdleTimeout, server, stream=False)
    async with FakeServer(Steps((head, b"x", 0.05), again=1)) as server:
        await fails_with(DeadlineExceeded, server, stream=False, bounds=FLOWING)


@pytest.mark.case("K1-7")
async def test_a_call_that_stalls_while_connecting_delays_nobody() -> None:
    """The one speaks TLS to a server that does not."""
    async with FakeServer(Completion()) as server:
        deaf = OpenAIModel("x", base_url=server.base_url.replace("http://", "https://"))
        model = model_at(server)
        async with anyio.create_task_group() as group:
            group.start_soon(deaf.generate, ask())
            await until(lambda: server.accepted == 1)
            for _ in range(5):
                assert (await model.generate(ask())).text == "ok"
            group.cancel_scope.cancel()
        await deaf.aclose()
        await model.aclose()


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


@pytest.mark.case("K1-5", "K1-7", "K1-8")
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


@pytest.mark.case("K1-2")
@pytest.mark.parametrize("then", [Hold(), Reset()])
async def test_a_finished_answer_whose_stream_has_no_end_is_not_paid_for_twice(
    then: Hold | Reset,
) -> None:
    async with FakeServer(Steps((_HEAD + sse(delta("yes", "stop")), 0.05, then))) as server:
        model = model_at(server, bounds=QUICK)
        reply = await model.generate(ask(stream=True))
        assert (reply.text, reply.stop, server.requests) == ("yes", "end", 1)
        await model.aclose()


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


# ---------------------------------------------------------------- helpers
async def until(true: Callable[[], bool]) -> None:
    """Wait for what happens on the server's side of a socket."""
    with anyio.fail_after(5):
        while not true():
            await anyio.sleep(0.005)
