"""Where the requests for one URL go: straight to its server, or by the environment's proxy."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from executors.models.wire.origins import host_and_port, proxy_of

__all__ = ["Proxy", "Route", "authority", "route_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An HTTP proxy."""

    secure: bool
    host: str
    port: int
    authorization: bytes = field(repr=False)
    """A line of a head, or nothing; never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way to a URL."""

    url: str
    secure: bool
    host: str
    port: int
    proxy: Proxy | None

    @property
    def shown(self) -> str:
        """Whom we connect to, for messages."""
        if self.proxy is None:
            return authority(self.host, self.port)
        return f"the proxy {authority(self.proxy.host, self.proxy.port)}"

    def head(self, headers: Mapping[str, str]) -> bytes:
        """Return the head of a POST, up to the length of its body."""
        parts = urlsplit(self.url)
        target = parts._replace(scheme="", netloc="").geturl() or "/"
        extra = b""
        if self.proxy is not None and not self.secure:  # TLS goes through a tunnel instead
            target, extra = self.url, self.proxy.authorization
        lines = [f"POST {target} HTTP/1.1", f"host: {parts.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "".join(f"{line}\r\n" for line in lines)
        return head.encode("ascii") + extra + b"content-length: "


def route_of(url: str) -> Route:
    """Return the way to a URL, as the environment has it now.

    Raises:
        ConfigError: the environment's proxy cannot be used.
    """
    parts = urlsplit(url)
    host, port = host_and_port(parts)
    proxy = proxy_of(url)
    return Route(
        url=url,
        secure=parts.scheme == "https",
        host=host,
        port=port,
        proxy=None if proxy is None else _proxy(urlsplit(proxy)),
    )


def authority(host: str, port: int) -> str:
    """Return host:port, as it is written in a request."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _proxy(parts: SplitResult) -> Proxy:
    host, port = host_and_port(parts)
    line = b""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        line = b"proxy-authorization: Basic %b\r\n" % b64encode(pair.encode())
    return Proxy(secure=parts.scheme == "https", host=host, port=port, authorization=line)
