"""One response as it comes in, chunk by chunk, whoever carries the bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from executors.models.wire.bounds import Faults
from executors.models.wire.sse import EventSplitter, ServerEvent

__all__ = ["Feed", "Heard", "HttpReply", "Reading"]

_EVENTS: Final = b"text/event-stream"

Heard = Literal["end", "content", "nothing"]
"""What an event was: the end marker; something that brings the answer on; a sign of life alone."""
Feed = Callable[[ServerEvent], Heard]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """A response whose body was read to its end."""

    status: int
    raw_headers: Sequence[tuple[bytes, bytes]]
    """As they came."""
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name; what is said twice is joined by a comma."""
        found: dict[str, str] = {}
        for raw_name, raw_value in self.raw_headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found


class Reading:
    """Takes a response: an event stream goes to the feed, anything else is kept as it is."""

    __slots__ = ("_faults", "_feed", "_headers", "_parts", "_room", "_splitter", "_status", "_undo")

    def __init__(self, faults: Faults, feed: Feed | None) -> None:
        self._faults = faults
        self._feed = feed
        self._room = faults.bounds.body
        self._parts: list[bytes] = []
        self._splitter: EventSplitter | None = None
        self._undo: _Undo | None = None
        self._status = 0
        self._headers: Sequence[tuple[bytes, bytes]] = ()

    def begin(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Take the head of the response.

        Raises:
            MalformedReply: the body is in an encoding that was not asked for and is not known.
        """
        self._status, self._headers = status, headers
        streams = self._feed is not None and status == 200
        for name, value in headers:
            lowered = name.lower()
            if lowered == b"content-encoding":  # we ask for none, so this is rare
                self._undo = self._undoing(value.strip().lower())
            elif streams and lowered == b"content-type" and value.lower().startswith(_EVENTS):
                self._splitter = EventSplitter()

    def take(self, chunk: bytes) -> Heard:
        """Take a chunk of the body as it was sent.

        Raises:
            MalformedReply: the body is longer than its bound, or cannot be decompressed.
            ModelError: what the feed makes of an event.
        """
        if self._undo is None:
            return self._plain(chunk)
        heard: Heard = "nothing"
        for plain in self._undo.feed(chunk):
            heard = _more(heard, self._plain(plain))
            if heard == "end":
                break
        return heard

    def close(self) -> None:
        """Take the end of the body.

        Raises:
            MalformedReply: what was compressed has no end.
        """
        if self._undo is not None:
            self._plain(self._undo.close())
        if self._splitter is not None:
            self._listen(self._splitter.close())

    def reply(self) -> HttpReply | None:
        """Return the response; None when it was a stream."""
        if self._splitter is not None:
            return None
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return HttpReply(status=self._status, raw_headers=self._headers, body=body)

    def _plain(self, chunk: bytes) -> Heard:
        self._room -= len(chunk)
        if self._room < 0:
            raise self._faults.too_long()
        if self._splitter is not None:
            return self._listen(self._splitter.feed(chunk))
        self._parts.append(chunk)
        return "content"

    def _listen(self, events: Iterable[ServerEvent]) -> Heard:
        assert self._feed is not None
        heard: Heard = "nothing"
        for event in events:
            heard = _more(heard, self._feed(event))
            if heard == "end":
                break
        return heard

    def _undoing(self, encoding: bytes) -> _Undo | None:
        if encoding in (b"identity", b""):
            return None
        if encoding in (b"gzip", b"x-gzip", b"deflate"):
            return _Undo(self._faults)
        shown = encoding[:40].decode("latin-1")
        raise self._faults.undecodable(f"its encoding {shown!r} was not asked for")


class _Undo:
    """Decompresses in pieces, so that a small chunk which stands for gigabytes is caught early."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # gzip or zlib, by its head

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        while chunk:
            try:
                yield self._inflate.decompress(chunk, _PIECE)
            except zlib.error as error:
                raise self._faults.undecodable(str(error)) from None
            chunk = self._inflate.unconsumed_tail

    def close(self) -> bytes:
        rest = self._inflate.flush()
        if not self._inflate.eof:
            raise self._faults.undecodable("it ends too early")
        return rest


_PIECE = 256 * 1024


def _more(before: Heard, now: Heard) -> Heard:
    return before if now == "nothing" else now
