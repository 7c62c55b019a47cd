"""Server-sent events from bytes. Lines end at LF alone: U+2028 and its kin stand inside JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["EventSplitter", "ServerEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One event: its name ("" when it has none) and its data lines joined by LF."""

    name: str
    data: bytes


class EventSplitter:
    """Turns chunks of bytes, cut anywhere, into events. Comment lines yield nothing."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []

    @property
    def pending(self) -> int:
        """Bytes held back until their event is whole."""
        return len(self._rest) + sum(map(len, self._data))

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that the chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            event = self._take(line.removesuffix(b"\r"))
            if event is not None:
                yield event

    def close(self) -> Iterator[ServerEvent]:
        """Yield what a stream that ended without a last blank line still holds."""
        yield from self.feed(b"\n\n")

    def _take(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name, b"\n".join(self._data)
        self._name, self._data = "", []
        return ServerEvent(name=name, data=data) if data else None
