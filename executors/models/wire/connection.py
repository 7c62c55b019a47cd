"""One HTTP/1.1 connection: a request goes out, a response comes in, one at a time.

httptools (llhttp, the parser of Node.js) cuts the bytes; everything else is decided here. A call
costs one future: its bounds share one timer a connection, which is moved only when a bound comes
before it, and looks again when it fires too early.
"""

from __future__ import annotations

import asyncio
import select
from typing import Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from executors.errors import MalformedReply, ModelError
from executors.models.wire.bounds import Faults, Phase
from executors.models.wire.reading import Heard, HttpReply, Reading

__all__ = ["Connection", "Owner"]

# Bytes between two pieces of a body: of a head, of interim responses, of trailers.
_LONGEST_HEAD: Final = 64 * 1024
# After the end marker of a stream: seconds and bytes within which a body may still end properly, so
# that its connection can be used again.
_LINGER_SECONDS: Final = 0.25
_LINGER_BYTES: Final = 1024
_NEVER: Final = float("inf")
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})


class Owner(Protocol):
    """Who keeps connections."""

    def opened(self, connection: Connection) -> None:
        """Its socket is there."""
        ...

    def freed(self, connection: Connection) -> None:
        """It may carry another request."""
        ...

    def lost(self, connection: Connection) -> None:
        """Its socket is gone."""
        ...


class Connection(asyncio.Protocol):
    """A socket with at most one request on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: Owner) -> None:
        self._loop = loop
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._poll = select.poll()
        self._parser = HttpResponseParser(self)
        self.idle_since = 0.0
        """When it was last given back, on the loop's clock."""
        # The request on it.
        self._waiter: asyncio.Future[None] | None = None
        self._reading: Reading | None = None
        self._faults: Faults
        self._end = _NEVER
        # Its response, as far as it came.
        self._headers: list[tuple[bytes, bytes]] = []
        self._bodies: list[bytes] = []
        self._received = False
        self._unseen = 0
        """Bytes since the last ones that belonged to a body."""
        self._status = 0
        self._begun = False
        self._complete = True
        self._reusable = True
        self._used = False
        # The next bound.
        self._phase: Phase = "headers"
        self._deadline = _NEVER
        self._timer: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        """Whether it may carry a request: open, and nothing arrived while it was idle.

        The loop may not have looked at the socket yet, so the socket itself is asked: what waits
        there is the server's goodbye, or bytes that nobody asked for.
        """
        transport = self._transport
        return transport is not None and not transport.is_closing() and not self._poll.poll(0)

    async def exchange(
        self, request: bytes, reading: Reading, faults: Faults, end: float
    ) -> HttpReply | None:
        """Send a request; return the response, or None when it was a stream that was read.

        Args:
            end: the total bound, on the loop's clock.

        Raises:
            ModelError: the bound that fired, the way in which it broke, or what the reading raised.
        """
        if self._transport is None:
            raise faults.unconnected("the server closed the connection as soon as it was open")
        self._reading, self._faults, self._end = reading, faults, end
        self._status = self._unseen = 0
        self._received = self._begun = self._complete = False
        waiter = self._waiter = self._loop.create_future()
        self._expect("headers", faults.bounds.headers)
        self._transport.write(request)
        try:
            await waiter
        except BaseException:
            # Also a cancel that comes when the response is there: nobody else has the connection.
            self.abort()
            raise
        self._waiter = None
        self._used = True
        if self._complete:
            self._give_back()
        else:
            self._end = _NEVER
            self._expect("idle", _LINGER_SECONDS)
        return reading.reply()

    def abort(self) -> None:
        """Close the socket at once; a server that is still working sees its client leave."""
        self._reading = None
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close the socket; a request on it ends as one that broke."""
        if self._reading is not None:
            self._fail(self._faults.broken("this client was closed"))
        self.abort()

    # ------------------------------------------------------------ asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports are of classes of their own.
        self._transport = cast("asyncio.Transport", transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._reading is None:
            if self._complete:  # nobody asked
                self.abort()
            else:
                self._linger(data)
            return
        if self._waiter is None or self._waiter.done():  # cancelled; it closes the socket soon
            return
        try:
            self._parse(data)
            self._read(self._reading)
        except ModelError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reading is not None:
            self._cut(self._reading, exc)
        self._owner.lost(self)

    # ------------------------------------------------------------ httptools
    def on_message_begin(self) -> None:
        if self._complete:
            raise _UnaskedError
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._bodies.append(body)

    def on_message_complete(self) -> None:
        if self._status < 200:  # an interim response; the real one follows
            self._status = 0
            return
        self._complete = True
        self._reusable = self._parser.should_keep_alive()

    # ------------------------------------------------------------ a response
    def _parse(self, data: bytes) -> None:
        self._received = True
        self._unseen += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            raise self._faults.broken("the server switched protocols unasked") from None
        except HttpParserError as error:
            self._reusable = False
            if not self._complete:
                raise self._faults.broken(f"no HTTP: {error}") from None
        if self._bodies:
            self._unseen = 0
        elif self._unseen > _LONGEST_HEAD:
            raise self._faults.make(
                MalformedReply, f"a head in the response is longer than {_LONGEST_HEAD:,} bytes"
            )

    def _read(self, reading: Reading) -> None:
        if self._status < 200:
            return
        heard: Heard = "nothing"
        if not self._begun:
            self._begun = True
            heard = "content"
            reading.begin(self._status, self._headers)
        bodies, self._bodies = self._bodies, []
        for body in bodies:
            match reading.take(body):
                case "end":
                    self._finish()
                    return
                case "content":
                    heard = "content"
                case "nothing":
                    pass
        if self._complete:
            reading.close()
            self._finish()
        elif heard == "content":
            self._expect("idle", self._faults.bounds.idle)

    def _cut(self, reading: Reading, error: Exception | None) -> None:
        """The socket closed under a response: for some bodies this is how they end."""
        framed = any(name.lower() in _FRAMING for name, _ in self._headers)
        if error is None and self._begun and not framed:
            try:
                reading.close()
            except ModelError as malformed:
                self._fail(malformed)
            else:
                self._complete, self._reusable = True, False
                self._finish()
        else:
            self._fail(self._faults.broken(self._how_it_broke(error)))

    def _how_it_broke(self, error: Exception | None) -> str:
        detail = str(error) if error else "the server closed it"
        if self._received:
            return f"{detail}, in the middle of its response"
        if self._used:
            return f"{detail}, before any byte of a response; it had been idle"
        return f"{detail}, before any byte of a response"

    def _finish(self) -> None:
        self._reading = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: ModelError) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.abort()

    # ------------------------------------------------------------ after a response
    def _linger(self, data: bytes) -> None:
        """Take the rest of a response whose end marker came before the end of its body."""
        try:
            self._parse(data)
        except ModelError:
            self.abort()
            return
        if sum(map(len, self._bodies)) > _LINGER_BYTES:
            self.abort()
        elif self._complete and self._waiter is None:
            self._give_back()

    def _give_back(self) -> None:
        self._deadline = _NEVER
        self._bodies = []
        if self._is_whole():
            self.idle_since = self._loop.time()
            self._owner.freed(self)
        else:
            self.abort()

    def _is_whole(self) -> bool:
        """Whether the next request may follow: a server may also answer before it has heard all."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        return self._reusable and not transport.get_write_buffer_size()

    # ------------------------------------------------------------ bounds
    def _expect(self, phase: Phase, seconds: float) -> None:
        """Set the bound of what comes next."""
        self._phase = phase
        self._deadline = min(self._loop.time() + seconds, self._end)
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look)
        elif self._deadline < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        """Act when the bound has passed; it may have been moved since the timer was set."""
        self._timer = None
        if self._deadline == _NEVER:
            return
        if self._loop.time() < self._deadline - _EARLY:
            self._timer = self._loop.call_at(self._deadline, self._look)
        elif self._reading is not None:
            self._fail(self._faults.late(self._phase, whole=self._deadline >= self._end))
        else:
            self.abort()


# Loops round timers, some of them to a millisecond.
_EARLY: Final = 0.001


class _UnaskedError(Exception):
    """A second response to one request."""
