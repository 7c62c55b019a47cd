"""How a connection comes about: a socket, a proxy's tunnel, TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from executors.models.wire.routes import Proxy, Route, authority
from executors.models.wire.sockets import Sockets

__all__ = ["Dialler"]

_LONGEST_HEAD: Final = 16 * 1024


class Dialler:
    """Opens connections on one route, in one event loop."""

    def __init__(self, route: Route) -> None:
        self._route = route
        first = route.proxy or route
        self._sockets = Sockets(first.host, first.port)
        self._first = first
        self._trust = _trust() if route.secure or first.secure else None

    async def dial(self, make: Callable[[], asyncio.Protocol]) -> None:
        """Open a connection for the protocol that is made; who calls bounds it.

        Raises:
            OSError: no connection, a certificate that is not trusted included.
        """
        proxy = self._route.proxy
        if proxy is not None and self._route.secure:
            await self._through(proxy, make)
        else:
            await self._connect(make)

    async def _connect(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Open a connection to the first host on the way."""
        trust, name = (self._trust, self._first.host) if self._first.secure else (None, None)
        sock = await self._sockets.open()
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(
                make, sock=sock, ssl=trust, server_hostname=name
            )
        except BaseException:
            sock.close()
            raise
        return transport

    async def _through(self, proxy: Proxy, make: Callable[[], asyncio.Protocol]) -> None:
        """Ask the proxy for a tunnel and speak TLS with the server inside it."""
        assert self._trust is not None
        loop, host = asyncio.get_running_loop(), self._route.host
        tunnel = _Tunnel(loop)
        outer = await self._connect(lambda: tunnel)
        try:
            there = authority(host, self._route.port).encode("ascii")
            outer.write(
                b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (there, there, proxy.authorization)
            )
            await tunnel.opened
            protocol = make()
            inner = await loop.start_tls(outer, protocol, self._trust, server_hostname=host)
        except BaseException:
            outer.abort()
            raise
        if inner is None:
            raise ConnectionAbortedError("the tunnel closed during the handshake")
        protocol.connection_made(inner)


class _Tunnel(asyncio.Protocol):
    """Waits for a proxy's answer to CONNECT."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.opened: asyncio.Future[None] = loop.create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        if self.opened.done():
            return
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        status = head.split(b" ", 2)[1:2]
        if not end:
            if len(head) > _LONGEST_HEAD:
                self._fail("its answer to CONNECT does not end")
        elif not head.startswith(b"HTTP/1.") or not status:
            self._fail("its answer to CONNECT is no HTTP")
        elif not status[0].startswith(b"2"):
            self._fail(f"it answered {status[0][:3].decode('latin-1')!r} to CONNECT")
        elif rest:
            self._fail("it spoke before the tunnel was used")
        else:
            self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self._fail("it closed the connection")

    def _fail(self, what: str) -> None:
        self.opened.set_exception(ConnectionRefusedError(f"the proxy opens no tunnel: {what}"))


def _trust() -> ssl.SSLContext:
    """Return whom we trust: certifi's list, or what SSL_CERT_FILE or SSL_CERT_DIR names."""
    import httpx  # slow to import, and only TLS needs it

    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
