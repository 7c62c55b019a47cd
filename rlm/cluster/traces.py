"""What a unit did, as its lines of the journal tell: the account of one that cannot tell any more."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from executors.gate.allowance import Drawn
from executors.ids import ContentKey
from executors.journal.blobs import read_blob
from executors.journal.filed_replies import thaw_reply
from executors.journal.index import Lost
from executors.journal.lines import Answered, Intended, Unanswered, read_line
from executors.journal.reading import whole_lines
from executors.journal.records import Paid
from executors.messages import ModelReply

__all__ = ["Trace", "is_written"]


@dataclass(slots=True)
class Trace:
    """Calls of one unit.

    Attributes:
        told: keys of the calls whose end its events told.
        worst: of the dearest call that left.
    """

    told: set[ContentKey] = field(default_factory=set[ContentKey])
    worst: Drawn = field(default_factory=Drawn)
    _drawn: Drawn = field(default_factory=Drawn)
    _open: dict[bytes, Intended] = field(default_factory=dict[bytes, Intended])
    _answers: dict[ContentKey, Answered] = field(default_factory=dict[ContentKey, Answered])

    def read(self, segment: Path, begin: int) -> None:
        """Take the lines of a segment, from where the unit began."""
        if segment.exists():
            for _, raw in whole_lines(segment, begin):
                self.take(raw)

    def take(self, raw: bytes) -> None:
        """Take one line."""
        match read_line(raw):
            case Intended() as line:
                self._open[line.key] = line
                self.worst = max(self.worst, _worst(line), key=lambda one: one.tokens)
            case Answered() as line:
                self._end(line.key, line.paid)
                self._answers[ContentKey(line.key.hex())] = line
            case Unanswered() as line:
                self._end(line.key, line.paid)
            case _:
                pass

    @property
    def drawn(self) -> Drawn:
        """What the calls drew, those that are open at their worst."""
        total = self._drawn
        for line in self._open.values():
            total += _worst(line)
        return total

    @property
    def open(self) -> int:
        """How many calls left and have not ended."""
        return len(self._open)

    def untold(self, blobs: Path) -> Iterator[tuple[ContentKey, ModelReply, Paid]]:
        """Yield the answers whose end nobody told."""
        for key, line in self._answers.items():
            blob = None if line.blob is None else read_blob(blobs, line.blob)
            if key not in self.told and (line.blob is None or blob is not None):
                yield key, thaw_reply(line.fields, blob), line.paid

    @property
    def lost(self) -> list[Lost]:
        """The calls of which nothing is known."""
        found = [(ContentKey(line.key.hex()), line) for line in self._open.values()]
        return [
            Lost(key=key, tokens=line.tokens, usd=line.usd)
            for key, line in found
            if key not in self.told
        ]

    def _end(self, key: bytes, paid: Paid) -> None:
        self._open.pop(key, None)
        self._drawn += Drawn(calls=1, tokens=paid.tokens, usd=paid.usd or Decimal(0))


def _worst(line: Intended) -> Drawn:
    return Drawn(calls=1, tokens=line.tokens, usd=line.usd or Decimal(0))


def is_written(segment: Path) -> bool:
    """Say whether the writer of a segment lives: it locks it for as long as it does."""
    try:
        fd = os.open(segment, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
