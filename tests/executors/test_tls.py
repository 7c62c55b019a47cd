"""TLS and proxies on loopback, under certificates of the test's own."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import uvloop

from executors.errors import ConfigError, ConnectFault, ConnectTimeout, TransportFault
from executors.models.fakes.acts import Close, Completion, Reply, Steps
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from executors.models.wire.bounds import Bounds
from executors.models.wire.origins import proxy_of
from executors.models.wire.routes import route_of
from executors.secrets import Secret
from tests.executors.asks import KEY, QUICK, ask
from tests.executors.relays import Authority, port_of, proxy, tls_front

pytestmark = pytest.mark.anyio

_FAR = "models.example"
_SECURE = f"https://{_FAR}/v1"
_PLAIN = f"http://{_FAR}/v1"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Return an authority that the client trusts."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


@asynccontextmanager
async def opened(url: str, *, bounds: Bounds = QUICK) -> AsyncGenerator[OpenAIModel]:
    model = OpenAIModel("m", base_url=url, key=Secret(KEY), bounds=bounds, warn=lambda _: None)
    try:
        yield model
    finally:
        await model.aclose()


# ---------------------------------------------------------------- TLS
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_server_that_an_authority_vouches_for_is_answered_by(
    authority: Authority, name: str
) -> None:
    async with FakeServer() as server, tls_front(server, authority.context(name)) as front:
        async with opened(f"https://{name}:{front.port}/v1") as model:
            for stream in (False, True, False):
                assert (await model.generate(ask(stream=stream))).text == "ok"
        assert server.received[0].headers["host"] == f"{name}:{front.port}"
        assert (front.accepted, front.protocols) == (1, ["http/1.1"])


async def test_large_bodies_pass_through_tls_both_ways(authority: Authority) -> None:
    async with FakeServer(Completion(text="y" * 3_000_000)) as server:
        async with (
            tls_front(server, authority.context("localhost")) as front,
            opened(f"https://localhost:{front.port}/v1", bounds=Bounds()) as model,
        ):
            reply = await model.generate(ask("x" * 3_000_000))
        assert len(reply.text) == 3_000_000
        assert len(server.received[0].body) > 3_000_000


async def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    context = Authority(tmp_path).context("localhost")
    async with FakeServer() as server, tls_front(server, context) as front:
        async with opened(f"https://localhost:{front.port}/v1") as model:
            with pytest.raises(ConnectFault, match="CERTIFICATE_VERIFY_FAILED") as caught:
                await model.generate(ask())
        assert server.requests == 0
    assert not caught.value.maybe_paid


async def test_a_certificate_for_another_name_is_refused(authority: Authority) -> None:
    async with FakeServer() as server:
        async with (
            tls_front(server, authority.context("other.example")) as front,
            opened(f"https://localhost:{front.port}/v1") as model,
        ):
            with pytest.raises(ConnectFault, match="Hostname mismatch"):
                await model.generate(ask())
        assert server.requests == 0


async def test_a_server_that_speaks_no_tls_is_a_connect_fault() -> None:
    async with (
        FakeServer(Steps((Close(),))) as server,
        opened(server.base_url.replace("http://", "https://")) as model,
    ):
        with pytest.raises((ConnectFault, ConnectTimeout)) as caught:
            await model.generate(ask())
    assert not caught.value.maybe_paid


async def test_cancelled_handshakes_and_requests_leave_nothing(authority: Authority) -> None:
    async with (
        FakeServer(Completion(after=0.02)) as server,
        tls_front(server, authority.context("localhost")) as front,
        opened(f"https://localhost:{front.port}/v1") as model,
    ):
        for n in range(12):
            with anyio.move_on_after(0.002 * n):
                async with anyio.create_task_group() as group:
                    for _ in range(4):
                        group.start_soon(model.generate, ask())
        assert (await model.generate(ask())).text == "ok"


async def test_a_connection_that_breaks_inside_tls_is_a_transport_fault(
    authority: Authority,
) -> None:
    async with (
        FakeServer(Steps((b"HTTP/1.1 200 OK\r\n", Close()))) as server,
        tls_front(server, authority.context("localhost")) as front,
        opened(f"https://localhost:{front.port}/v1") as model,
    ):
        with pytest.raises(TransportFault, match="in the middle of its response") as caught:
            await model.generate(ask())
    assert caught.value.maybe_paid


# ---------------------------------------------------------------- proxies
@pytest.mark.case("K15-14")
async def test_a_tunnel_hides_key_and_request_from_the_proxy(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        FakeServer() as server,
        tls_front(server, authority.context(_FAR)) as front,
        proxy(front.port) as relay,
    ):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{relay.port}")
        async with opened(_SECURE) as model:
            for _ in range(3):
                assert (await model.generate(ask())).text == "ok"
    assert relay.heads == [
        b"CONNECT models.example:443 HTTP/1.1\r\nhost: models.example:443\r\n"
        b"proxy-authorization: Basic " + b64encode(b"me:p@ss") + b"\r\n\r\n"
    ]
    assert server.received[0].path == "/v1/chat/completions"
    assert "proxy-authorization" not in server.received[0].headers
    assert (relay.accepted, front.accepted) == (1, 1)


async def test_a_plain_request_names_its_whole_url_to_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeServer() as server, proxy(port_of(server)) as relay:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{relay.port}")
        async with opened(_PLAIN) as model:
            for _ in range(2):
                assert (await model.generate(ask())).text == "ok"
        assert [one.path for one in server.received] == [f"{_PLAIN}/chat/completions"] * 2
        assert server.received[0].headers["host"] == _FAR
    expected = b"proxy-authorization: Basic " + b64encode(b"me:secret") + b"\r\n"
    assert expected in relay.heads[0]


@pytest.mark.parametrize("secure", [True, False])
async def test_a_proxy_may_itself_be_reached_by_tls(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    async with FakeServer() as server, tls_front(server, authority.context(_FAR)) as front:
        to = front.port if secure else port_of(server)
        async with proxy(to, authority.context("127.0.0.1")) as relay:
            monkeypatch.setenv("ALL_PROXY", f"https://127.0.0.1:{relay.port}")
            async with opened(_SECURE if secure else _PLAIN) as model:
                for _ in range(2):
                    assert (await model.generate(ask())).text == "ok"
        assert relay.accepted == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "it answered '407' to CONNECT"),
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nno!", "it answered '502'"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "its answer to CONNECT is no HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK", "it spoke before the tunnel was used"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20_000, "its answer to CONNECT does not end"),
    ],
)
async def test_a_proxy_that_opens_no_tunnel_is_a_connect_fault(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, answer: bytes, says: str
) -> None:
    async with proxy(9, answer=answer) as relay:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:canary-pass@127.0.0.1:{relay.port}")
        async with opened(_SECURE) as model:
            with pytest.raises(ConnectFault) as caught:
                await model.generate(ask())
    assert says in caught.value.what
    assert f"the proxy 127.0.0.1:{relay.port}" in caught.value.what
    assert "canary-pass" not in str(caught.value)
    assert not caught.value.maybe_paid


async def test_a_proxy_that_never_answers_ends_at_the_connect_bound(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy(9, answer=b"HTTP/1.1 ") as relay:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{relay.port}")
        async with opened(_SECURE, bounds=Bounds(connect=0.1)) as model:
            with pytest.raises(ConnectTimeout, match=r"within 0.1 s \(connect\)"):
                await model.generate(ask())
            with anyio.fail_after(5):
                while not relay.ended:
                    await anyio.sleep(0.005)


async def test_a_proxys_own_refusal_of_a_plain_request_is_the_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It cannot be told from one of the server's."""
    async with FakeServer(Reply(status=407, body=b"who are you?")) as server:
        monkeypatch.setenv("HTTP_PROXY", server.base_url.removesuffix("/v1"))
        async with opened(_PLAIN) as model:
            with pytest.raises(Exception, match="answered 407: 'who are you"):
                await model.generate(ask())


def test_no_proxy_names_hosts_their_subdomains_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example,.sub.example,far.example:8000,10.0.0.7")
    through = ["https://far.example/v1", "http://insideexample/v1", "http://10.0.0.8/v1"]
    past = ["https://inside.example/v1", "http://a.sub.example/v1", "http://far.example:8000/v1",
            "http://10.0.0.7:1/v1"]  # fmt: skip
    assert [proxy_of(url) for url in through] == ["http://proxy.example:3128"] * 3
    assert [proxy_of(url) for url in past] == [None] * 4


@pytest.mark.parametrize("url", ["http://", "http://:3128", "http://host:port", "http://[::1"])
def test_a_proxy_that_names_no_host_is_a_config_error(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", url)
    with pytest.raises(ConfigError, match="names no host") as caught:
        route_of(_SECURE)
    assert "NO_PROXY" in str(caught.value)


def test_a_proxys_credentials_are_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://me:canary-pass@proxy.example")
    route = route_of(_SECURE)
    assert b64encode(b"me:canary-pass").decode() not in repr(route)
    assert "canary-pass" not in repr(route)
    assert route.shown == "the proxy proxy.example:80"


# ---------------------------------------------------------------- another loop
def test_tls_and_tunnels_work_on_uvloop(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with FakeServer() as server, tls_front(server, authority.context(_FAR)) as front:
            for context in (None, authority.context("127.0.0.1")):
                async with proxy(front.port, context) as relay:
                    scheme = "https" if context else "http"
                    monkeypatch.setenv("HTTPS_PROXY", f"{scheme}://127.0.0.1:{relay.port}")
                    async with opened(_SECURE) as model:
                        for stream in (False, True):
                            assert (await model.generate(ask(stream=stream))).text == "ok"
                    assert relay.accepted == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
