"""The events of earlier sessions, read back from their file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, cast

from pydantic import TypeAdapter

import corpus.events
import executors.events
import rlm.events
from executors.events import Event
from executors.ids import NodeId
from executors.journal.json_lines import decode

__all__ = ["Unknown", "cut_torn_tail", "read_event", "read_events"]

_TAIL: Final = 64 * 1024
_is_node: Final = re.compile(r"root(\.[0-9]{1,9})*", re.ASCII).fullmatch
_MODULES: Final = (executors.events, corpus.events, rlm.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """An event of a kind that this version does not know, or a line that is none."""

    kind: ClassVar[str] = "unknown"

    name: str
    raw: bytes


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a file in their order; an unfinished last line is left out."""
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield read_event(line)


def cut_torn_tail(path: Path) -> int:
    """Shorten a file of lines to its last whole one; return how many bytes went."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - _TAIL)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)
        return size - end


def read_event(line: bytes) -> Event:
    """Return the event of a line, its end left off or not."""
    try:
        fields = _fields(line)
        adapter = _adapters()[str(fields.pop("kind"))]
        event = adapter.validate_python(fields)
    except (KeyError, ValueError):
        return _unknown(line)
    return event if _is_node(event.node) else _unknown(line)


def _fields(line: bytes) -> dict[str, object]:
    """Return the fields of a line; ValueError where it is no JSON object."""
    document = decode(line)
    if (
        b"\\ud" in line or b"\\uD" in line
    ):  # half a character has no place in a receipt, which is UTF-8
        text = json.dumps(document, ensure_ascii=False)
        document = decode(text.encode("utf-8", "replace"))
    if not isinstance(document, dict):
        raise ValueError("no object")  # noqa: TRY004 - as for any line that is none
    return cast("dict[str, object]", document)


def _unknown(line: bytes) -> Unknown:
    try:
        fields = _fields(line)
    except ValueError:
        fields = {}
    name, node, at = (str(fields.get(key, "")) for key in ("kind", "node", "at"))
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        when = datetime.fromtimestamp(0, UTC)
    where = NodeId(node) if _is_node(node) else NodeId("root")
    return Unknown(node=where, at=when, name=name, raw=line)


@cache
def _adapters() -> dict[str, TypeAdapter[Event]]:
    """One adapter a kind, built when the first file is read."""
    found: dict[str, TypeAdapter[Event]] = {}
    for module in _MODULES:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Event) and value is not Event:
                found[value.kind] = TypeAdapter(value)
    return found
