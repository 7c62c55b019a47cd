"""Sockets under httpx's transport interface, by aiohttp: pool, TLS, proxies, HTTP/1.1 parsing.

Why not httpx's own pool: it looks through all its connections at each step, so that the CPU time
of a call grows with the calls in flight, and a cancel while others wait for a connection can leave
it broken. `tests/bench/calls.py` has the figures.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from functools import lru_cache

import aiohttp
import httpx
from yarl import URL

__all__ = ["SocketTransport"]

# A silent connection is probed after a minute, then each 15 s, and given up after four probes.
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
_CHUNK = 64 * 1024


class SocketTransport(httpx.AsyncBaseTransport):
    """One pool of connections without a limit of its own: the endpoint's cap is the limit.

    Belongs to the event loop that runs when it is made.

    Args:
        connect: seconds for name look-up, TCP and TLS together.
        headers: seconds from the request to the response's headers.
        proxy: URL of an HTTP proxy for all requests.
    """

    def __init__(self, *, connect: float, headers: float, secure: bool, proxy: str | None) -> None:
        self._proxy = proxy
        # Without cookies, netrc and redirects: only what the caller says goes out.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ssl=httpx.create_ssl_context() if secure else True,
                socket_factory=_kept_alive,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=connect, sock_connect=None, sock_read=headers
            ),
            auto_decompress=False,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        with _as_httpx(request):
            response = await self._session.request(
                request.method,
                _parsed(str(request.url)),
                headers=[
                    (k.decode("latin-1"), v.decode("latin-1")) for k, v in request.headers.raw
                ],
                data=request.read(),
                allow_redirects=False,
                proxy=self._proxy,
            )
        if response.connection is not None and response.connection.protocol is not None:
            # The body has bounds of its own, kept by the reader; a start without a time stops.
            response.connection.protocol.read_timeout = None
            response.connection.protocol.start_timeout()
        return httpx.Response(
            response.status,
            headers=response.raw_headers,
            stream=_Body(response, request),
            request=request,
        )

    async def aclose(self) -> None:
        await self._session.close()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse, request: httpx.Request) -> None:
        self._response = response
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = self._response.content.readany
        with _as_httpx(self._request):
            while chunk := await read():
                yield chunk

    async def aclose(self) -> None:
        # Gives a finished connection back to the pool and closes any other.
        self._response.release()


@contextmanager
def _as_httpx(request: httpx.Request) -> Generator[None]:
    """Raise what httpx would have raised; order matters, since some kinds are also others."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx.ConnectTimeout(str(error), request=request) from error
    except aiohttp.ServerTimeoutError as error:
        raise httpx.ReadTimeout(str(error), request=request) from error
    except (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError) as error:
        raise httpx.ProxyError(str(error), request=request) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx.ConnectError(str(error), request=request) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError) as error:
        raise httpx.RemoteProtocolError(str(error), request=request) from error
    except (aiohttp.ClientConnectionError, OSError) as error:
        raise httpx.ReadError(str(error), request=request) from error
    except aiohttp.ClientResponseError as error:
        raise httpx.RemoteProtocolError(error.message, request=request) from error
    except aiohttp.ClientError as error:
        raise httpx.TransportError(str(error), request=request) from error


@lru_cache(maxsize=16)
def _parsed(url: str) -> URL:
    return URL(url, encoded=True)


def _kept_alive(address: tuple[object, ...]) -> socket.socket:
    family, kind, protocol = address[:3]
    assert isinstance(family, int)
    assert isinstance(kind, int)
    assert isinstance(protocol, int)
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)  # not every system has each of them
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
