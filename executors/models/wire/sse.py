"""Server-sent events from bytes. Lines end at LF alone: U+2028 and its kin stand inside JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["END", "EventSplitter", "ServerEvent"]

END: Final = b"[DONE]"
"""The data that ends a stream of completions; no JSON begins like it."""
_BOM: Final = b"\xef\xbb\xbf"
_END_LINES: Final = (b"data: " + END, b"data:" + END)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One event: its name ("" when it has none) and its data lines joined by LF."""

    name: str
    data: bytes


class EventSplitter:
    """Turns chunks of bytes, cut anywhere, into events. Comment lines yield nothing.

    The end marker is an event as soon as its own bytes are there: some servers hold the socket
    open after it and never write the blank line, or not even the end of its line.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """Pieces of a line that has not ended; joined once, so that a long line costs its length."""
        self._held = 0
        """Bytes in them."""
        self._fresh = True
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that the chunk completes."""
        end = chunk.rfind(b"\n")
        if end < 0:
            self._rest.append(chunk)
            self._held += len(chunk)
        else:
            lines = b"".join((*self._rest, chunk[:end])).split(b"\n")
            self._rest = [chunk[end + 1 :]]
            self._held = len(self._rest[0])
            yield from self._events(lines)
        if self._is_end():
            self._rest, self._held = [], 0
            yield from self._dispatch()
            yield ServerEvent(name="", data=END)

    def close(self) -> Iterator[ServerEvent]:
        """Yield what a stream that ended without a last blank line still holds."""
        yield from self.feed(b"\n\n")

    def _events(self, lines: list[bytes]) -> Iterator[ServerEvent]:
        if self._fresh:
            lines[0] = lines[0].removeprefix(_BOM)
            self._fresh = False
        for line in lines:
            text = line.removesuffix(b"\r")
            if not text or text in _END_LINES:
                yield from self._dispatch()
            if text:
                self._take(text)
            if text in _END_LINES:
                yield from self._dispatch()

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self) -> Iterator[ServerEvent]:
        name, data = self._name, b"\n".join(self._data)
        self._name, self._data = "", []
        if data:
            yield ServerEvent(name=name, data=data)

    def _is_end(self) -> bool:
        """Whether what stands after the last line is the marker, whole."""
        if not len(END) <= self._held <= len(_BOM) + len(_END_LINES[0]):
            return False
        tail = b"".join(self._rest)
        return (tail.removeprefix(_BOM) if self._fresh else tail) in _END_LINES
