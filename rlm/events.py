"""Events of a run as a whole, and the log that all events are written to."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self

import orjson

from corpus.reasons import first_words
from executors.errors import DiskFault
from executors.events import Event, Warned
from executors.makers import mapper
from executors.private import open_private

__all__ = [
    "EventLog",
    "LeafTried",
    "NodeFinished",
    "NodeStarted",
    "RecordForgotten",
    "RunFinished",
    "RunStarted",
    "TaskAssessed",
    "TaskEnded",
    "event_line",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run begins."""

    kind: ClassVar[str] = "run_started"

    run: str
    task: str
    options: dict[str, str]
    """What was asked for, as text, for people."""
    version: str
    session: int = 1
    """Which sitting of the run this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended, in whatever way."""

    kind: ClassVar[str] = "run_finished"

    blocker: str | None
    """None when it completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordForgotten(Event):
    """The text of a record was erased on request; which one is not said here."""

    kind: ClassVar[str] = "record_forgotten"

    number: int
    """The how-many-th record of the run it is, from 1; who asks again tells the same one again."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAssessed(Event):
    """The task of a node was looked at, and it is decided which way it goes."""

    kind: ClassVar[str] = "task_assessed"

    task: str
    depth: int
    level: str
    """Of complexity: "simple", "medium", "complex" or "critical"."""
    score: int
    family: str
    """What decides about parts: "ModelDriven", "FanOut" or "Partition"."""
    retrieval: str | None = None
    upgraded: bool = False
    """A search was asked for, and every record is judged, since the question needs all of them."""
    why: str = ""
    """Of the retrieval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafTried(Event):
    """A leaf with a sensor came to its end."""

    kind: ClassVar[str] = "leaf_tried"

    attempts: int
    passed: bool
    temperatures: tuple[float | None, ...] = ()
    """The effective one of each attempt; None where the model's own held."""
    rejected_buffer: bool = False
    """Attempts were shown what was rejected before, instead of another temperature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded(Event):
    """A node has handed up what it has."""

    kind: ClassVar[str] = "task_ended"

    verdict: str | None = None
    """ "satisfied", "needs_revision" or "failed"; None where nothing had to be checked."""
    critique: str = ""
    blocker: str | None = None
    """None where its task was done."""
    detail: str = ""
    blocked_at: str | None = None
    """The node that broke: this one, or one below it."""
    shown: str = ""
    """How the answer begins."""


def event_line(event: Event) -> bytes:
    """Return an event as one line of JSON; half a character is escaped, never lost."""
    kind = type(event)
    read = _mappers.get(kind)
    if read is None:
        read = _mappers[kind] = mapper(kind, kind=event.kind)
    body = read(event)
    try:
        return orjson.dumps(body, default=_plain, option=_OPTIONS)
    except TypeError:  # orjson writes UTF-8, which has no lone surrogates
        return json.dumps(body, default=_plain, separators=(",", ":")).encode("ascii") + b"\n"


# To read a slotted dataclass by itself takes orjson most of its time.
_OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATACLASS
_mappers: dict[type[object], Callable[[Any], dict[str, object]]] = {}


def _plain(value: object) -> object:
    """Return what JSON has no form for in one that it has: values by their fields, else as text."""
    kind = type(value)
    read = _mappers.get(kind)
    if read is None:
        if not is_dataclass(kind):
            return value.isoformat() if isinstance(value, datetime) else str(value)
        read = _mappers[kind] = mapper(kind)
    return read(value)


def _deaf(event: Event, error: Exception) -> Warned:
    words = first_words(str(error))
    message = (
        f"on_event raised {type(error).__name__}{': ' if words else ''}{words}; "
        "it heard nothing after that"
    )
    return Warned(node=event.node, at=event.at, code="on-event", message=message)


_BLOCK: Final = 64
"""Events that are held back. To write and fold some at a time takes half as long as one by one between
other work; a process that is killed takes no more than these with it."""


class EventLog:
    """Appends each event to a file as one line of JSON, and hands it on: some at a time.

    Args:
        path: the file, made when it does not exist.
        listeners: ours: called with each event after it was written, in order; at the latest when
            the log is flushed.
        guest: the caller's, called with each event at once. Where it raises it is never called again, which is told
            as a warning, and the run goes on: what was paid for is not lost to a listener.

    Attributes:
        fault: why nothing is written any more; None while all is well. Listeners go on hearing.
    """

    def __init__(
        self,
        path: Path,
        *listeners: Callable[[Event], None],
        guest: Callable[[Event], None] | None = None,
    ) -> None:
        self._file = open_private(path, "ab")
        self._path = path
        self._listeners = listeners
        self._guest = guest
        self._held: list[Event] = []
        self.fault: DiskFault | None = None

    def __call__(self, event: Event) -> None:
        self._held.append(event)
        if len(self._held) >= _BLOCK:
            self.flush()
        if self._guest is None:
            return
        try:
            self._guest(event)
        except Exception as error:  # noqa: BLE001 - the caller's code: its faults are no fault of the run
            self._guest = None
            self(_deaf(event, error))

    def flush(self) -> None:
        """Hand what is held back to the system and to the listeners."""
        held, self._held = self._held, []
        if self.fault is None:
            try:
                self._file.write(b"".join(map(event_line, held)))
                self._file.flush()
            except OSError as error:
                self._fail(error)
        for listener in self._listeners:
            for event in held:
                listener(event)

    def _fail(self, error: OSError) -> None:
        """Write nothing any more: half a line may stand at the end."""
        self.fault = DiskFault(
            f"the events of the run cannot be written: {error.strerror or error}",
            where=str(self._path),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flush()
        with suppress(OSError):  # told before; what is buffered cannot be written
            self._file.close()
