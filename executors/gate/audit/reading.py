"""Lines back out of an audit. What is no line is told apart, and never joined to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

import orjson

from executors.errors import RunDirError
from executors.gate.audit.chain import unlinked
from executors.replies import JsonValue

__all__ = ["AuditLine", "Torn", "lines", "lines_of", "read"]

_LONGEST: Final = 65_536
"""Bytes of a line that is read; ours have 3,500 at most."""
_HEAD: Final = b'{"ts":"'
"""How each line begins; what a text says inside of one has its quotes escaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One line."""

    number: int
    """Of the line in its file, from 1 on."""
    fields: Mapping[str, JsonValue]
    raw: bytes
    """As it stands there."""

    def text(self, name: str) -> str:
        """Return a field that is a text, else ""."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    @property
    def phase(self) -> str:
        """What happened."""
        return self.text("phase")

    @property
    def writer(self) -> str:
        """Who wrote it: the run, the process, and when it began."""
        return f"{self.text('run_id')}/{self.text('writer')}"

    @property
    def seq(self) -> int | None:
        """Its number among those of its writer, from 0 on."""
        value = self.fields.get("seq")
        return value if type(value) is int and value >= 0 else None

    @property
    def action(self) -> Mapping[str, JsonValue]:
        """What was to be done; empty where the line is about something else."""
        value = self.fields.get("action")
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Half a line, or something else that is none: a writer was killed, or its disk was full."""

    number: int
    size: int
    """Bytes."""


def read(path: Path) -> Iterator[AuditLine]:
    """Go through the lines of a file, and leave out what is none.

    Raises:
        RunDirError: it cannot be read.
    """
    return (line for line in lines(path) if isinstance(line, AuditLine))


def lines(path: Path) -> Iterator[AuditLine | Torn]:
    """Go through all that stands in a file. A line is in memory at a time.

    Raises:
        RunDirError: it cannot be read.
    """
    try:
        if not path.is_file():  # a pipe would have us wait for ever
            raise ValueError("there is no such file")
        with path.open("rb") as file:
            yield from lines_of(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunDirError(
            f"the audit {str(path)!r} cannot be read: {why}",
            hint="name the file, or the directory of a run that had a gate",
        ) from error


def lines_of(file: BinaryIO) -> Iterator[AuditLine | Torn]:
    """Go through all that stands in an open file."""
    number = 0
    while raw := file.readline(_LONGEST):
        number += 1
        size = len(raw)
        while not raw.endswith(b"\n") and (rest := file.readline(_LONGEST)):
            raw, size = rest, size + len(rest)  # far longer than a line of ours
        if size > _LONGEST:
            yield Torn(number=number, size=size)
        elif raw.strip():
            yield from _parsed(number, raw)


def _parsed(number: int, raw: bytes) -> Iterator[AuditLine | Torn]:
    """Yield a line; or half a one, and the whole one that somebody wrote right behind it."""
    fields = _fields(raw)
    if fields is not None:
        yield AuditLine(number=number, fields=fields, raw=raw)
        return
    at = raw.find(_HEAD, 1)
    while at > 0:
        if (fields := _fields(raw[at:])) is not None:
            yield Torn(number=number, size=at)
            yield AuditLine(number=number, fields=fields, raw=raw[at:])
            return
        at = raw.find(_HEAD, at + 1)
    yield Torn(number=number, size=len(raw))


def _fields(raw: bytes) -> Mapping[str, JsonValue] | None:
    """Return the fields of a whole line; half a one may be an object too, but has no end."""
    if not raw.endswith(b"\n"):
        return None
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or unlinked(raw) is None:
        return None
    return cast("dict[str, JsonValue]", value)
