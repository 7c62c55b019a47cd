"""A tool that fetches a URL, and reaches nothing but public hosts.

Nothing of ours goes with a request: no key, no cookie, no proxy of the environment. A text that holds one
of our secrets is not sent at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

import anyio

from executors.errors import ValidationError
from executors.models.wire.addresses import opened
from executors.models.wire.destinations import Destination, NoDestination, destination_of
from executors.secrets import mask, scrub, scrub_url
from executors.tools.base import Arguments, Tool, ToolContext
from executors.tools.pages import Page, Unreadable, as_result, read_page

if TYPE_CHECKING:
    import ssl

    import httpcore

    from executors.models.wire.pinned import Resolve

__all__ = ["Fetch", "FetchBounds", "NotFetched", "fetch_tool"]

Method = Literal["GET", "HEAD", "POST"]
Check = Callable[[str], str | None]
"""Why a URL may not be asked; None where it may. Called with each hop of a redirect."""
_DESCRIPTION: Final = (
    "Fetch a public web page or file over http or https. Redirects are followed. Gives the status, "
    "the final URL, the content type and the text."
)


class NotFetched(Exception):
    """A URL was not fetched; the text says why and holds no secret of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBounds:
    """How long and how large one fetch may be, redirects and all."""

    total: float = 30.0
    """Seconds."""
    connect: float = 10.0
    """Seconds for each connection, the look-up of its name included."""
    body: int = 2 * 1024 * 1024
    """Bytes of a body, decompressed; what is longer is cut there, and the result says so."""
    redirects: int = 5

    def __post_init__(self) -> None:
        for name in ("total", "connect", "body", "redirects"):
            value: object = getattr(self, name)
            if not _bounds(value, 0 if name == "redirects" else 1e-3):
                raise ValidationError(
                    f"{name}={value!r} is not a bound of a fetch",
                    hint="give a finite number: seconds, bytes, or how many redirects",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Fetches URLs for a tool."""

    bounds: FetchBounds = field(default_factory=FetchBounds)
    methods: tuple[Method, ...] = ("GET", "HEAD")
    check: Check | None = None
    private: tuple[str, ...] = ()
    resolve: Resolve | None = None

    def checked(self, check: Check) -> Fetch:
        """Return one whose every hop has to pass another check too."""
        before = self.check

        def both(url: str) -> str | None:
            return (None if before is None else before(url)) or check(url)

        return replace(self, check=both)

    async def __call__(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Fetch what a model asks for.

        Raises:
            NotFetched: it is not allowed, cannot be reached, or takes too long.
        """
        del context
        url, method, body = (
            arguments.get("url"),
            arguments.get("method", "GET"),
            arguments.get("body"),
        )
        if method not in self.methods:
            raise NotFetched(f"the method {method!r} is none of {', '.join(self.methods)}")
        if body is not None and (method != "POST" or not isinstance(body, str)):
            raise NotFetched("a body is a text, and goes with POST alone")
        try:
            with anyio.fail_after(self.bounds.total):
                return await self._fetch(url, _Sent(method=str(method), body=body))
        except TimeoutError:
            raise NotFetched(f"not done within {self.bounds.total:g} s: {_shown(url)}") from None

    async def _fetch(self, url: object, sent: _Sent) -> dict[str, object]:
        # Brings an HTTP stack, which only a fetch needs.
        from executors.models.wire.pinned import PinnedBackend, looked_up

        there = self._allowed(url, None)
        _refuse_secrets(there.url, sent.body)
        backend = PinnedBackend(why_not=opened(self.private), resolve=self.resolve or looked_up)
        for hop in range(self.bounds.redirects + 1):
            reply = await self._ask(backend, there, sent)
            if reply.location is None:
                return as_result(reply, there.url, hop)
            following = self._allowed(reply.location, there.url)
            sent = sent.after(reply.status, same=_origin(there) == _origin(following))
            there = following
        raise NotFetched(f"more than {self.bounds.redirects} redirects: {_shown(url)}")

    def _allowed(self, url: object, base: str | None) -> Destination:
        """Return where a URL goes, once it may go there."""
        hop = "" if base is None else "it redirects to what is refused: "
        try:
            there = destination_of(url, base=base)
        except NoDestination as why:
            raise NotFetched(f"{hop}{why}") from None
        if there.credentials:
            raise NotFetched(f"{hop}the URL holds a user name or a password")
        if there.otherwise is not None:
            raise NotFetched(
                f"{hop}some read the host {there.host!r} in it, others {there.otherwise!r}"
            )
        if self.check is not None and (why_not := self.check(there.url)) is not None:
            raise NotFetched(f"{hop}{why_not}")
        return there

    async def _ask(
        self, backend: httpcore.AsyncNetworkBackend, there: Destination, sent: _Sent
    ) -> Page:
        import httpcore

        from executors.models.wire.pinned import Refused

        asked = httpcore.URL(
            scheme=there.scheme, host=there.host, port=there.port, target=there.target
        )
        seconds = self.bounds.connect
        pool = httpcore.AsyncConnectionPool(
            ssl_context=_trust(there.scheme), network_backend=backend, max_connections=1
        )
        try:
            async with (
                pool,
                pool.stream(
                    sent.method,
                    asked,
                    headers=sent.headers(),
                    content=None if sent.body is None else sent.body.encode("utf-8", "replace"),
                    extensions={"timeout": {"connect": seconds}},
                ) as response,
            ):
                return await read_page(response, self.bounds.body, sent.method)
        except (Refused, Unreadable) as refused:
            raise NotFetched(f"{_shown(there.url)}: {refused}") from None
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            OSError,
        ) as error:
            why = scrub(str(error)) or type(error).__name__
            raise NotFetched(f"{_shown(there.url)} cannot be reached: {why[:300]}") from None


def fetch_tool(
    *,
    name: str = "fetch",
    post: bool = False,
    check: Check | None = None,
    private: Collection[str] = (),
    bounds: FetchBounds | None = None,
    resolve: Resolve | None = None,
) -> Tool:
    """Make a tool that fetches URLs of public hosts.

    Each name is looked up once, each of its addresses is held against a table of what is not public, and
    the connection goes to one of these very addresses; so on each hop of a redirect. A proxy would look
    the name up again, so that none is used, whatever the environment says: where the only way out is a
    proxy, this tool reaches nothing.

    Args:
        post: POST is allowed too; such calls are not repeated after a crash.
        check: hears each URL, also that of a redirect, and returns why it may not be asked, or None.
        private: networks that may be reached although they are not public, such as "10.1.0.0/16".
        resolve: looks names up in place of the system: (host, port) -> addresses.

    Raises:
        ValidationError: a network that is none, or a bound that bounds nothing.
    """
    opened(private)
    methods: tuple[Method, ...] = ("GET", "HEAD", "POST") if post else ("GET", "HEAD")
    return Tool(
        name=name,
        description=_DESCRIPTION,
        parameters=_parameters(methods),
        execute=Fetch(
            bounds=bounds or FetchBounds(),
            methods=methods,
            check=check,
            private=tuple(private),
            resolve=resolve,
        ),
        parallel=True,
        idempotent=not post,
        kind="fetch",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """What is asked of each host on the way."""

    method: str
    body: str | None

    def after(self, status: int, *, same: bool) -> _Sent:
        """Return what the next host is asked, as browsers do it; a body stays with its origin."""
        if self.method != "POST":
            return self
        if status in (301, 302, 303):
            return _Sent(method="GET", body=None)
        if not same:
            raise NotFetched("it redirects a POST to another host, and the body is not sent there")
        return self

    def headers(self) -> list[tuple[str, str]]:
        found = [("accept", "*/*"), ("accept-encoding", "identity"), ("user-agent", "rlm-recurse")]
        if self.body is not None:
            found.append(("content-type", _kind(self.body)))
        return found


def _parameters(methods: Collection[str]) -> dict[str, object]:
    properties: dict[str, object] = {
        "url": {"type": "string", "description": "http(s)://…"},
        "method": {"enum": list(methods), "default": "GET"},
    }
    if "POST" in methods:
        properties["body"] = {"type": "string", "description": "Of a POST: JSON or text."}
    return {
        "type": "object",
        "properties": properties,
        "required": ["url"],
        "additionalProperties": False,
    }


def _refuse_secrets(*texts: str | None) -> None:
    if any(text is not None and mask(text) != text for text in texts):
        raise NotFetched("it holds a key of this run, which goes nowhere else")


def _bounds(value: object, least: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= least


def _kind(body: str) -> str:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"


def _origin(there: Destination) -> tuple[str, str, int]:
    return there.scheme, there.host, there.port


def _trust(scheme: str) -> ssl.SSLContext | None:
    if scheme != "https":
        return None
    import httpx  # slow to import, and only TLS needs its list of whom to trust

    return httpx.create_ssl_context()


def _shown(url: object) -> str:
    """Return a URL for a message: what may hold a key is left out."""
    try:
        return scrub_url(url)[:200] if isinstance(url, str) else f"{type(url).__name__}"
    except ValueError:
        return "the URL"
