"""Events of a run as a whole, and the log that all events are written to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from executors.events import Event

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["EventLog", "NodeFinished", "NodeStarted", "RunFinished", "RunStarted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run begins."""

    kind: ClassVar[str] = "run_started"

    run: str
    task: str
    options: dict[str, str]
    """What was asked for, as text, for people."""
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended, in whatever way."""

    kind: ClassVar[str] = "run_finished"

    blocker: str | None
    """None when it completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(Event):
    """A piece of work begins."""

    kind: ClassVar[str] = "node_started"

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished(Event):
    """A piece of work ended."""

    kind: ClassVar[str] = "node_finished"

    said: tuple[str, ...] = ()
    """What it found, as sentences."""
    error: str | None = None
    """Code of what ended it early."""


_writers: dict[type[Event], TypeAdapter[Event]] = {}


def _writer(kind: type[Event]) -> TypeAdapter[Event]:
    found = _writers.get(kind)
    if found is None:
        # pydantic is heavy and only the log needs it.
        from pydantic import TypeAdapter

        found = _writers[kind] = TypeAdapter(kind)
    return found


class EventLog:
    """Appends each event to a file as one line of JSON, and hands it on.

    Args:
        path: the file, made when it does not exist.
        listeners: called with each event after it was written, in order.
    """

    def __init__(self, path: Path, *listeners: Callable[[Event], None]) -> None:
        self._file = path.open("ab")
        self._listeners = listeners

    def __call__(self, event: Event) -> None:
        body = _writer(type(event)).dump_json(event)
        self._file.write(b'{"kind":"%b",%b\n' % (event.kind.encode(), body[1:]))
        for listener in self._listeners:
            listener(event)

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
