"""Connections to the very address that was checked: the name is looked up once, by us.

Who checks a name and lets something else look it up again is answered twice, and the second answer may
be another one. Here every address that a name has must pass the table, and a socket is opened to one of
these addresses, with nothing in between: no proxy is ever used, since it would look the name up anew.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, cast

import anyio
import httpcore

from executors.models.wire.addresses import Address, WhyNot, address_of, why_not_public

__all__ = ["PinnedBackend", "Refused", "Resolve", "looked_up"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks a name up: (host, port) -> its addresses, as text."""
_MOST_TRIED: Final = 8
_Options = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


class Refused(Exception):
    """A name has an address that is not everybody's; nothing was connected to."""


async def looked_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as the system knows them."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [address[0] for _, _, _, _, address in found]


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Opens the sockets of an httpcore pool.

    Args:
        why_not: the table.
        resolve: how names are looked up.
    """

    def __init__(self, *, why_not: WhyNot = why_not_public, resolve: Resolve = looked_up) -> None:
        self._why_not = why_not
        self._resolve = resolve
        self._inner = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _Options | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the addresses of a host, once all of them have passed.

        Raises:
            Refused: one of them has not.
            httpcore.ConnectError, httpcore.ConnectTimeout: none answers, or the name has none.
        """
        error: Exception = httpcore.ConnectError(f"{host!r} has no address")
        for address in (await self._checked(host, port, timeout))[:_MOST_TRIED]:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                error = failed
        raise error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: _Options | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Raise: a socket of this machine is nothing that a URL names."""
        raise Refused(f"{path!r} is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def _checked(self, host: str, port: int, timeout: float | None) -> list[Address]:
        literal = address_of(host)
        if literal is not None:
            found = [literal]
        else:
            found = await self._found(host, port, timeout)
        for address in found:
            if (why := self._why_not(address)) is not None:
                shown = "" if literal is not None else f" has the address {address}, which"
                raise Refused(f"{host!r}{shown} is not public ({why})")
        return list(dict.fromkeys(found))

    async def _found(self, host: str, port: int, timeout: float | None) -> list[Address]:
        try:
            with anyio.fail_after(timeout):
                texts = await self._resolve(host, port)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"{host!r} was not looked up in time") from None
        except OSError as error:
            raise httpcore.ConnectError(f"{host!r} has no address: {error}") from None
        found = [address_of(text) for text in texts]
        if None in found:
            raise Refused(f"{host!r} has an address that is none")
        return [address for address in found if address is not None]
