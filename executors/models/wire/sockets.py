"""TCP sockets to one host: name look-up, a race between addresses, keep-alive probes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Final

import anyio

__all__ = ["Address", "Sockets"]

Address = tuple[int, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
"""A family, and an address in it."""

# Seconds for which a look-up is good: connections that are opened together share one, since the
# threads which look up are few.
_GOOD_FOR: Final = 10.0
# Seconds after which the next address is tried beside the one before (RFC 8305).
_STAGGER: Final = 0.25
# A silent connection is probed after a minute, then each 15 s, and given up after four probes.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class Sockets:
    """Opens sockets to one host and port, in one event loop."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._fixed = _numeric(host, port)
        self._looking: asyncio.Future[list[Address]] | None = None
        self._good_until = 0.0

    async def open(self) -> socket.socket:
        """Return a connected socket.

        Raises:
            OSError: the host has no address, or none of them takes a connection.
        """
        addresses = await self._addresses()
        try:
            return await (_connect(addresses[0]) if len(addresses) == 1 else _race(addresses))
        except OSError:
            self._looking = None
            raise

    async def _addresses(self) -> list[Address]:
        if self._fixed is not None:
            return self._fixed
        loop = asyncio.get_running_loop()
        looking = self._looking
        if looking is None or (looking.done() and loop.time() > self._good_until):
            looking = self._looking = loop.run_in_executor(None, self._look_up)
            looking.add_done_callback(self._found)
        if not looking.done():
            await asyncio.wait([looking])  # who is cancelled takes it from nobody else
        return looking.result()

    def _found(self, looking: asyncio.Future[list[Address]]) -> None:
        self._good_until = asyncio.get_running_loop().time() + _GOOD_FOR
        if looking.cancelled() or looking.exception() is not None:
            self._looking = None

    def _look_up(self) -> list[Address]:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        every: list[Address] = [(family, address) for family, _, _, _, address in found]
        first = [one for one in every if one[0] == every[0][0]]
        other = [one for one in every if one[0] != every[0][0]]
        return [one for one in chain(*zip_longest(first, other)) if one is not None]


def _numeric(host: str, port: int) -> list[Address] | None:
    """Return what a host that is an address stands for; there is nothing to look up then."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return None
    return [(family, address) for family, _, _, _, address in found]


async def _connect(address: Address) -> socket.socket:
    family, there = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        _keep_alive(sock)
        await asyncio.get_running_loop().sock_connect(sock, there)
    except BaseException:
        sock.close()
        raise
    return sock


async def _race(addresses: Sequence[Address]) -> socket.socket:
    """Return the socket that connects first; each address is given a head start on the next."""
    won: list[socket.socket] = []
    errors: list[OSError] = []

    async def run(address: Address, failed: anyio.Event) -> None:
        try:
            won.append(await _connect(address))
            group.cancel_scope.cancel()
        except OSError as error:
            errors.append(error)
            failed.set()

    try:
        async with anyio.create_task_group() as group:
            for address in addresses:
                failed = anyio.Event()
                group.start_soon(run, address, failed)
                with anyio.move_on_after(_STAGGER):
                    await failed.wait()
    except BaseException:
        for sock in won:
            sock.close()
        raise
    for sock in won[1:]:
        sock.close()
    if not won:
        raise errors[0]
    return won[0]


def _keep_alive(sock: socket.socket) -> None:
    """Have the system probe a silent connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)  # not every system has each of them
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
