"""The audit of a run family, as one process writes it.

What a gate decides is written at once, in one write(2): where that fails, nothing is allowed. Lines of
model calls are many and cheap: they wait for `flush`, which goes with each commit of the journal, or
for the next line that does not wait. All lines of a writer are in order, and bound to each other.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, cast

import orjson

from executors.clock import Clock, SystemClock
from executors.gate.audit.bounding import bounded, json_bytes, portions
from executors.gate.audit.chain import BEGIN, LINK_BYTES, linked, next_link
from executors.gate.audit.file import AuditFile
from executors.gate.audit.ids import RunIds
from executors.gate.audit.redactor import Redactor
from executors.gate.results import LONGEST_RESOURCE
from executors.replies import JsonValue

if TYPE_CHECKING:
    from decimal import Decimal

    from executors.gate.allowance import Tag

__all__ = ["Audit", "RunIds"]

LONGEST: Final = 3_500
"""Bytes of a line, its end included."""
_COUNTS: Final = 1_200
"""Bytes of what a record counts by name; more goes into lines of its own."""
_WAITING: Final = 1 << 20
"""Bytes of lines that wait at most."""
_REMEMBERED: Final = 100_000
"""Lines in memory, where there is no file."""
_NAME: Final = 300
"""Bytes of a model's or a node's name in the line of a call."""
_NAMES: Final = 1_000
_TIME: Final = orjson.OPT_UTC_Z
_starts = count(time.time_ns())


class Audit:
    """Writes lines. Safe in threads; a forked child is a writer of its own.

    Args:
        path: the file of the family; None keeps the last 100,000 lines in memory.
        run: who writes; None is what the environment says.
        redactor: makes values harmless before they are written.

    Raises:
        DiskFault: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        run: RunIds | None = None,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self.run = run or RunIds.from_environment(os.environ, now=self._clock.now())
        self._redactor = redactor or Redactor()
        self._lock = Lock()
        self._file = None if path is None else AuditFile(path)
        self._memory: deque[bytes] = deque(maxlen=_REMEMBERED)
        self._buffer: list[bytes] = []
        self._waiting = 0
        self._names: dict[str, str] = {}
        self._begin()

    @property
    def path(self) -> Path | None:
        """The file; None where it is in memory."""
        return None if self._file is None else self._file.path

    @property
    def head(self) -> str:
        """The link of the last line, as hex: published elsewhere, it vouches for all before it."""
        return self._link.hex()

    @property
    def entries(self) -> tuple[Mapping[str, JsonValue], ...]:
        """The lines in memory, in order; none where there is a file."""
        with self._owned():
            lines = (*self._memory, *(self._buffer if self._file is None else ()))
        return tuple(cast("dict[str, JsonValue]", orjson.loads(line)) for line in lines)

    def write(self, phase: str, **fields: object) -> None:
        """Write one line now, behind those that wait. What is in it is redacted, and cut to fit.

        Args:
            phase: what happened: "gate", "record", "approval", "halt", "topup", ...
            fields: of any kind; those of `bounding` are never cut away.

        Raises:
            DiskFault: it could not be written. No line is, from then on.
        """
        counts = _counts(fields) if phase == "record" else {}
        redacted = self._redacted(fields)
        parts = list(portions(self._named(counts), _COUNTS)) if counts else []
        if parts:
            cast("dict[str, object]", redacted["result"])["counts"] = parts.pop(0)
        with self._owned():
            self._put(self._line(phase, redacted))
            for part in parts:
                self._put(self._line("counts", {"aid": redacted.get("aid"), "counts": part}))
            self._flush()

    def call(
        self,
        tag: Tag | None,
        *,
        tokens: int,
        usd: Decimal,
        unpriced: bool | None,
        calls: int = 1,
        overrun: bool = False,
    ) -> None:
        """Take the line of a settled call; `flush` writes it.

        Args:
            tag: whose call it was; None for many at once.
            tokens, usd, calls: as the budget was charged.
            unpriced: whether nobody knows the price; None where the call tells nothing of that.

        Raises:
            DiskFault: lines could not be written before.
        """
        fields = {
            "role": None if tag is None else tag.role,
            "node": None if tag is None else self._name(tag.node),
            "model": None if tag is None else self._name(tag.model),
            "calls": calls,
            "tokens": tokens,
            "usd": str(usd),
            "unpriced": unpriced,
        }
        if overrun:
            fields["overrun"] = True
        body = orjson.dumps(fields)[1:-1]
        with self._owned():
            self._put(self._stamped("call", body))
            if self._waiting > _WAITING:
                self._flush()

    def flush(self) -> None:
        """Write the lines that wait, in one write(2).

        Raises:
            DiskFault: they could not be written.
        """
        with self._owned():
            self._flush()

    def close(self) -> None:
        """Write what waits, and close the file.

        Raises:
            DiskFault: it could not be written.
        """
        with self._owned():
            try:
                self._flush()
            finally:
                if self._file is not None:
                    self._file.close()

    # ---------------------------------------------------------------- lines

    def _begin(self) -> None:
        """Become a writer: the first of this process, or of a forked one."""
        self._process = os.getpid()
        self._seq = 0
        self._link = BEGIN
        self._buffer.clear()
        self._waiting = 0
        named = {
            "run_id": self.run.run,
            "parent_run_id": self.run.parent,
            "spawn_depth": self.run.depth,
            "writer": f"{self._process}-{next(_starts):x}",
        }
        self._envelope = json_bytes(named)[1:-1]

    def _owned(self) -> Lock:
        """Return the lock to hold. A forked child begins anew: what waits is its parent's to write."""
        if self._process != os.getpid():
            self._lock = Lock()  # some thread of the parent may have held it
            self._begin()
        return self._lock

    def _line(self, phase: str, fields: Mapping[str, JsonValue]) -> bytes:
        head = self._stamped(phase, b"")
        room = LONGEST - len(head) - LINK_BYTES
        body = bounded(fields, room)
        return head + body if body else head[:-1]

    def _stamped(self, phase: str, body: bytes) -> bytes:
        return b'{"ts":%b,"seq":%d,%b,"phase":"%b",%b' % (
            self._now(),
            self._seq,
            self._envelope,
            phase.encode(),
            body,
        )

    def _now(self) -> bytes:
        now = self._clock.now()
        return orjson.dumps(now if now.tzinfo is UTC else now.astimezone(UTC), option=_TIME)

    def _put(self, body: bytes) -> None:
        self._link = next_link(self._link, body)
        self._seq += 1
        line = linked(body, self._link)
        self._buffer.append(line)
        self._waiting += len(line)

    def _flush(self) -> None:
        if not self._buffer:
            return
        if self._file is None:
            self._memory.extend(self._buffer)
        else:
            self._file.append(b"".join(self._buffer))
        self._buffer.clear()
        self._waiting = 0

    # ---------------------------------------------------------------- values

    def _redacted(self, fields: Mapping[str, object]) -> dict[str, JsonValue]:
        """Redact each field: how a line calls its own fields says nothing about what is secret."""
        found: dict[str, JsonValue] = {}
        omitted: str | None = None
        not_finite = False
        for name, value in fields.items():
            redacted = self._redactor.redacted(value)
            found[name] = redacted.value
            not_finite = not_finite or redacted.not_finite
            omitted = omitted or redacted.omitted
        if not_finite:
            found["_not_finite"] = True
        if omitted is not None:
            found["_omitted"] = omitted
        return found

    def _named(self, counts: Mapping[str, int]) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, units in counts.items():
            shown = self._redactor.text(name)[:LONGEST_RESOURCE]
            found[shown] = found.get(shown, 0) + units
        return found

    def _name(self, name: str) -> str:
        """Return a name as it may stand in a line; there are few of them, many times each."""
        shown = self._names.get(name)
        if shown is None:
            if len(self._names) >= _NAMES:
                self._names.clear()
            cut = self._redactor.text(name).encode("utf-8")[:_NAME]
            shown = self._names[name] = cut.decode("utf-8", "ignore")
        return shown


def _counts(fields: Mapping[str, object]) -> dict[str, int]:
    """Return what a record counts: resources have names that say nothing about secrets."""
    result = fields.get("result")
    counts = cast("dict[str, object]", result).get("counts") if isinstance(result, dict) else None
    named = cast("dict[str, object]", counts) if isinstance(counts, dict) else {}
    if not all(type(units) is int and units.bit_length() < 64 for units in named.values()):
        return {}
    return cast("dict[str, int]", named)
