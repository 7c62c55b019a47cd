"""Fetching a URL: public hosts alone, on every hop, at the very address that was checked.

What each of these would let through is seen by a test: names that are looked up twice, addresses of a name
that are not all checked, redirects that are not checked again, spellings that are not read as browsers do,
bodies without an end, small ones that stand for large ones, proxies of the environment, keys in a URL.
"""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from executors.errors import ConfigError, ValidationError
from executors.gate.config.net import NetSection
from executors.gate.rules.net import NetRule
from executors.ids import NodeId
from executors.models.wire.origins import checked_base_url
from executors.secrets import Secret
from executors.tools.base import Tool, ToolContext
from executors.tools.fetch import Fetch, FetchBounds, NotFetched, fetch_tool
from tests.executors.relays import Authority
from tests.executors.test_loop_gate import Gate
from tests.executors.workers import Shop, call, calls, then_done

pytestmark = pytest.mark.anyio

HERE = ["127.0.0.2/32"]
"""The one address of this machine that these tools may reach; 127.0.0.1 stays private."""
CONTEXT = ToolContext(node=NodeId("root"), depth=0, round=0, index=0, call_id="c")


class Site:
    """A server on an address of this machine that answers each path with fixed bytes."""

    def __init__(self, pages: dict[str, bytes], address: str = "127.0.0.2") -> None:
        self.pages = pages
        self.address = address
        self.heads: list[bytes] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
            self.heads.append(head + await reader.readexactly(length))
            path = head.split(b" ", 2)[1].decode()
            writer.write(self.pages.get(path, answer(404)))
            if path == "/silent":
                await reader.read()
            while path == "/endless" and not writer.is_closing():
                writer.write(b"x" * 65_536)
                await writer.drain()
        writer.transport.abort()


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def site(pages: dict[str, bytes], address: str = "127.0.0.2") -> AsyncGenerator[Site]:
    running = Site(pages, address)
    server = await asyncio.start_server(running.serve, address, 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)


async def fetched(tool: Tool, **arguments: str) -> dict[str, object]:
    assert isinstance(tool.execute, Fetch)
    return await tool.execute(arguments, CONTEXT)


class Names:
    """Looks names up in a table, one answer after another; counts how often."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


# ---------------------------------------------------------------- a page
async def test_a_page_is_fetched_with_nothing_of_ours_in_the_request() -> None:
    page = answer(body="grün".encode(), content_type="text/html; charset=utf-8")
    async with site({"/a?b=1": page}) as server:
        got = await fetched(fetch_tool(private=HERE), url=f"{server.url}/a?b=1#part")
    assert got == {
        "status": 200,
        "url": f"{server.url}/a?b=1",
        "type": "text/html; charset=utf-8",
        "text": "grün",
    }
    names = {line.partition(b":")[0].lower() for line in server.heads[0].split(b"\r\n")[1:] if line}
    assert names == {b"host", b"accept", b"accept-encoding", b"user-agent"}


async def test_what_is_no_text_is_told_by_its_length_and_an_odd_charset_is_none() -> None:
    pages = {
        "/png": answer(body=b"\x89PNG" * 4, content_type="image/png"),
        "/odd": answer(body=b"plain", content_type="text/plain; charset=punycode"),
        "/old": answer(body=b"caf\xe9", content_type="text/plain; charset=latin-1"),
    }
    tool = fetch_tool(private=HERE)
    async with site(pages) as server:
        got = [await fetched(tool, url=server.url + path) for path in pages]
    assert [one.get("text", one.get("bytes")) for one in got] == [16, "plain", "café"]


async def test_the_head_of_a_page_is_enough_where_that_is_asked_for() -> None:
    async with site({"/": answer(body=b"x" * 5)}) as server:
        got = await fetched(fetch_tool(private=HERE), url=server.url, method="HEAD")
    assert (got["status"], got.get("text")) == (200, "")
    assert server.heads[0].startswith(b"HEAD / ")


@pytest.mark.parametrize("method", ["POST", "DELETE", "CONNECT", ""])
async def test_a_method_that_was_not_allowed_is_never_sent(method: str) -> None:
    async with site({}) as server:
        with pytest.raises(NotFetched, match="is none of GET, HEAD"):
            await fetched(fetch_tool(private=HERE), url=server.url, method=method)
    assert not server.heads


async def test_a_post_stays_with_its_host() -> None:
    tool = fetch_tool(private=HERE, post=True)
    assert not tool.idempotent
    async with site({"/": answer(body=b"ok")}) as there, site({}) as first:
        first.pages["/303"] = answer(303, location=there.url)
        first.pages["/307"] = answer(307, location=there.url)
        got = await fetched(tool, url=f"{first.url}/303", method="POST", body='{"a":1}')
        with pytest.raises(NotFetched, match="the body is not sent there"):
            await fetched(tool, url=f"{first.url}/307", method="POST", body="a")
    assert (got["text"], got["redirects"]) == ("ok", 1)
    assert [head.split(b" ")[0] for head in there.heads] == [b"GET"]
    assert b"content-type: application/json" in first.heads[0]
    assert first.heads[0].endswith(b'{"a":1}')


# ---------------------------------------------------------------- the address that was checked
@pytest.mark.case("G-170")
@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.1"],
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:10.0.0.1"],
        ["fe80::1%lo"],
    ],
)
async def test_a_public_name_with_an_address_of_the_inside_is_not_connected_to(
    addresses: list[str],
) -> None:
    names = Names(addresses)
    rule = NetRule(NetSection(allow_domains=["inside.example"]))
    assert rule.why_not("http://inside.example/") is None
    tool = fetch_tool(check=rule.why_not, resolve=names)
    with pytest.raises(
        NotFetched, match=r"'inside\.example' has the address .*, which is not public"
    ):
        await fetched(tool, url="http://inside.example/")
    assert names.asked == ["inside.example"]


@pytest.mark.case("G-170")
async def test_one_address_of_the_inside_is_enough_to_refuse_a_name() -> None:
    async with site({"/": answer(body=b"ok")}) as server:
        tool = fetch_tool(private=HERE, resolve=Names(["127.0.0.2", "10.0.0.1"]))
        with pytest.raises(NotFetched, match=r"10\.0\.0\.1, which is not public \(private\)"):
            await fetched(tool, url=f"http://two.example:{server.port}/")
    assert not server.heads


@pytest.mark.case("G-170", "K15-11")
async def test_a_name_is_looked_up_once_and_the_connection_goes_to_that_address() -> None:
    """A name that changes between the check and the connection (DNS rebinding) gains nothing."""
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    async with site({"/": answer(body=b"the one")}) as server, site({}, "127.0.0.1") as inside:
        got = await fetched(
            fetch_tool(private=HERE, resolve=names), url=f"http://twice.example:{server.port}/"
        )
        assert not inside.heads
    assert (got["text"], names.asked) == ("the one", ["twice.example"])
    assert f"Host: twice.example:{server.port}\r\n".encode() in server.heads[0]


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async with site({"/": answer(body=b"ok")}) as server:
        names = Names(["127.0.0.3", "127.0.0.2"])
        tool = fetch_tool(private=[*HERE, "127.0.0.3/32"], resolve=names)
        assert (await fetched(tool, url=f"http://two.example:{server.port}/"))["text"] == "ok"


async def test_a_name_without_an_address_or_a_port_without_a_server_is_told() -> None:
    async with site({}) as server:
        port = server.port
    for names, said in ((Names([]), "has no address"), (Names(["127.0.0.2"]), "cannot be reached")):
        with pytest.raises(NotFetched, match=said):
            await fetched(
                fetch_tool(private=HERE, resolve=names), url=f"http://name.example:{port}/"
            )
    with pytest.raises(NotFetched, match="an address that is none"):
        await fetched(fetch_tool(resolve=Names(["8.8.8.8", "?"])), url="http://name.example/")


async def test_over_tls_the_certificate_is_that_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    running = Site({"/": answer(body=b"secret")})
    server = await asyncio.start_server(
        running.serve, "127.0.0.2", 0, ssl=authority.context("good.example")
    )
    port = server.sockets[0].getsockname()[1]
    tool = fetch_tool(private=HERE, resolve=Names(["127.0.0.2"]))
    assert (await fetched(tool, url=f"https://good.example:{port}/"))["text"] == "secret"
    with pytest.raises(NotFetched, match="cannot be reached"):
        await fetched(tool, url=f"https://bad.example:{port}/")
    server.close()
    await server.wait_closed()
    await asyncio.sleep(0.01)


# ---------------------------------------------------------------- other spellings
@pytest.mark.case("K15-13", "G-165")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "0",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127。0。0。1",
        "public.example@127.0.0.1",
        "%31%32%37.0.0.1",
    ],
)
async def test_no_spelling_of_this_machine_is_connected_to(host: str) -> None:
    names = Names(["127.0.0.2"])
    async with site({"/": answer(body=b"inside")}, "127.0.0.1") as server:
        with pytest.raises(NotFetched, match=r"is not public|user name"):
            await fetched(
                fetch_tool(private=HERE, resolve=names), url=f"http://{host}:{server.port}/"
            )
        assert not server.heads
    assert not names.asked


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:/etc/passwd", "the scheme 'file'"),
        ("gopher://8.8.8.8/", "the scheme 'gopher'"),
        ("//8.8.8.8/", "no URL"),
        ("http://a.example\\@b.example/", "some read the host"),
        ("http://user:pass@a.example/", "a user name or a password"),
    ],
)
async def test_what_is_no_plain_url_of_a_host_is_refused(url: str, said: str) -> None:
    names = Names(["8.8.8.8"])
    with pytest.raises(NotFetched, match=said):
        await fetched(fetch_tool(resolve=names), url=url)
    assert not names.asked


# ---------------------------------------------------------------- redirects
@pytest.mark.case("K15-11")
async def test_a_redirect_to_this_machine_is_blocked_on_its_hop() -> None:
    async with site({"/": answer(body=b"inside")}, "127.0.0.1") as inside, site({}) as server:
        server.pages["/"] = answer(302, location=f"{inside.url}/")
        with pytest.raises(NotFetched, match=r"'127\.0\.0\.1' is not public \(loopback\)"):
            await fetched(fetch_tool(private=HERE), url=server.url)
        assert not inside.heads


@pytest.mark.case("G-171")
@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest/meta-data/",
        "//169.254.169.254/",
        "http://[::ffff:a9fe:a9fe]/",
    ],
)
async def test_a_redirect_to_the_metadata_of_a_cloud_is_blocked_on_its_hop(to: str) -> None:
    async with site({"/": answer(301, location=to)}) as server:
        with pytest.raises(NotFetched, match="is not public"):
            await fetched(fetch_tool(private=HERE), url=server.url)
    assert len(server.heads) == 1


@pytest.mark.case("G-171", "K15-11")
async def test_each_hop_passes_the_gates_rule_again() -> None:
    rule = NetRule(NetSection(allow_domains=["127.0.0.2"], deny_private_ips=False))
    seen: list[str] = []

    def check(url: str) -> str | None:
        seen.append(url)
        return rule.why_not(url)

    async with site({}) as server:
        server.pages |= {
            "/": answer(302, location="/next"),
            "/next": answer(307, location="http://other.example/"),
        }
        names = Names(["127.0.0.2"])
        with pytest.raises(NotFetched, match=r"it redirects .* net\.allowDomains"):
            await fetched(fetch_tool(private=HERE, check=check, resolve=names), url=server.url)
        assert seen == [f"{server.url}/", f"{server.url}/next", "http://other.example/"]
    assert not names.asked


@pytest.mark.case("G-171")
async def test_a_worker_with_a_gate_has_each_hop_of_a_fetch_pass_its_rule() -> None:
    class Governing(Gate):
        def why_not(self, url: str) -> str | None:
            seen.append(url)
            return "not there" if "other.example" in url else None

    seen: list[str] = []
    names = Names(["127.0.0.2"])
    async with site({"/": answer(302, location="http://other.example/")}) as server:
        asked = then_done(calls(call("fetch", {"url": server.url})))
        shop = Shop(asked, fetch_tool(private=HERE, resolve=names), governor=Governing())
        await shop.work()
        result = shop.model.requests[1].messages[-1].content
        assert "it redirects to what is refused: not there" in result
        assert seen == [f"{server.url}/", "http://other.example/"]
    assert not names.asked


async def test_a_check_that_is_put_on_later_is_asked_beside_the_first() -> None:
    first = Fetch(check=lambda url: "first" if "a" in url.partition("//")[2] else None)
    both = first.checked(lambda url: "second" if "b" in url.partition("//")[2] else None)
    assert both.check is not None
    assert [both.check(f"http://{name}/") for name in ("a", "b", "c")] == ["first", "second", None]


@pytest.mark.parametrize(
    "to", ["file:/etc/passwd", "http://u:p@127.0.0.2/", "http://[/", "gopher:x"]
)
async def test_a_redirect_to_what_is_no_plain_url_is_refused(to: str) -> None:
    async with site({"/": answer(302, location=to)}) as server:
        with pytest.raises(NotFetched, match="it redirects to what is refused"):
            await fetched(fetch_tool(private=HERE), url=server.url)


async def test_redirects_come_to_an_end() -> None:
    async with site({"/": answer(302, location="/")}) as server:
        with pytest.raises(NotFetched, match="more than 3 redirects"):
            await fetched(fetch_tool(private=HERE, bounds=FetchBounds(redirects=3)), url=server.url)
    assert len(server.heads) == 4


# ---------------------------------------------------------------- bounds
@pytest.mark.case("K15-13")
async def test_a_body_without_an_end_is_cut_and_that_is_said() -> None:
    endless = b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\n\r\n"
    async with site({"/endless": endless}) as server:
        tool = fetch_tool(private=HERE, bounds=FetchBounds(body=100_000))
        got = await fetched(tool, url=f"{server.url}/endless")
    assert (got["text"], got["cut"]) == ("x" * 100_000, "after 100,000 bytes")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_small_body_that_stands_for_a_large_one_is_cut(encoding: str) -> None:
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    page = answer(
        body=pack(b"x" * 50_000_000), content_type="text/plain", content_encoding=encoding
    )
    async with site({"/": page}) as server:
        tool = fetch_tool(private=HERE, bounds=FetchBounds(body=1_000))
        tracemalloc.start()
        got = await fetched(tool, url=server.url)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (got["text"], got["cut"]) == ("x" * 1_000, "after 1,000 bytes")
    assert peak < 10_000_000


async def test_a_body_is_decompressed_or_refused_and_one_that_ends_early_is_said_to() -> None:
    whole = gzip.compress(b"a text that is long enough to be compressed" * 9)
    pages = {
        "/good": answer(body=whole, content_encoding="gzip"),
        "/early": answer(body=whole[:-12], content_encoding="gzip"),
        "/broken": answer(body=b"no gzip at all", content_encoding="gzip"),
        "/other": answer(body=b"?", content_encoding="br"),
    }
    tool = fetch_tool(private=HERE)
    async with site(pages) as server:
        good = await fetched(tool, url=f"{server.url}/good")
        assert str(good["text"]).startswith("a text that")
        assert "cut" not in good
        assert "cut" in await fetched(tool, url=f"{server.url}/early")
        for path, said in (("/broken", "cannot be decompressed"), ("/other", "was not asked for")):
            with pytest.raises(NotFetched, match=said):
                await fetched(tool, url=server.url + path)


async def test_a_fetch_ends_within_its_bound() -> None:
    async with site({"/silent": b""}) as server:
        tool = fetch_tool(private=HERE, bounds=FetchBounds(total=0.05))
        with pytest.raises(NotFetched, match=r"not done within 0\.05 s"):
            await fetched(tool, url=f"{server.url}/silent")


async def test_a_look_up_ends_within_its_bound() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    tool = fetch_tool(resolve=never, bounds=FetchBounds(connect=0.05))
    with pytest.raises(NotFetched, match="was not looked up in time"):
        await fetched(tool, url="http://slow.example/")


@pytest.mark.parametrize(
    "bounds", [{"total": 0.0}, {"total": float("inf")}, {"body": True}, {"redirects": -1}]
)
def test_a_bound_that_bounds_nothing_is_refused(bounds: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="is not a bound of a fetch"):
        FetchBounds(**bounds)  # type: ignore[arg-type]


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="is no network"):
        fetch_tool(private=["everything"])


# ---------------------------------------------------------------- proxies and keys
@pytest.mark.case("K15-14")
async def test_a_proxy_of_the_environment_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site({"/": answer(body=b"direct")}) as server, site({}, "127.0.0.1") as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        got = await fetched(fetch_tool(private=HERE), url=server.url)
        assert not proxy.heads
    assert got["text"] == "direct"
    assert "proxy" in (fetch_tool.__doc__ or "")


@pytest.mark.case("K15-16")
async def test_a_key_of_ours_leaves_in_no_url_and_no_body() -> None:
    secret = Secret("a-key-of-this-very-run")
    tool = fetch_tool(private=HERE, post=True)
    async with site({"/": answer()}) as server:
        url = f"{server.url}/?q={secret.reveal()}"
        for arguments in (
            {"url": url},
            {"url": server.url, "method": "POST", "body": secret.reveal()},
        ):
            with pytest.raises(NotFetched, match="holds a key of this run") as caught:
                await fetched(tool, **arguments)
            assert secret.reveal() not in str(caught.value)
    assert not server.heads


@pytest.mark.case("K15-16")
async def test_what_may_be_a_key_in_a_url_stands_in_no_error_and_a_base_url_takes_none() -> None:
    async with site({}) as server:
        port = server.port
    with pytest.raises(NotFetched) as caught:
        await fetched(fetch_tool(private=HERE), url=f"http://127.0.0.2:{port}/p?key=AIzaNobodysKey")
    assert "key" not in str(caught.value)
    with pytest.raises(ConfigError, match="a query or a fragment") as refused:
        checked_base_url("https://host/v1?key=AIzaNobodysKey")
    assert "AIza" not in str(refused.value)
