"""Whether the lines of an audit fit together: what was changed, removed, or put elsewhere.

What cannot be told: whether the last lines of a writer were cut off, and whether somebody who can
write the file has made all of it anew. A link that was published elsewhere (`Audit.head`) shows
both, for the lines up to its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from executors.gate.audit.chain import BEGIN, next_link, unlinked
from executors.gate.audit.reading import AuditLine, Torn, lines

__all__ = ["ChainFault", "Chains", "verified", "verify"]

_AHEAD: Final = 1_000
"""Lines of one writer that wait for others to stand behind them."""
_SHOWN: Final = 1_000
"""Faults that are kept; more of them say nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """Something that does not fit."""

    kind: Literal["changed", "removed", "moved", "repeated", "foreign", "unknown-head"]
    number: int
    """Of the line in the file, or of the one behind what is missing; 0 for the end."""
    writer: str
    what: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """What a check found."""

    lines: int
    faults: tuple[ChainFault, ...]
    torn: tuple[int, ...]
    """Numbers of what is no line: killed writers leave that, and it is no fault."""
    heads: dict[str, str]
    """The last link of each writer, to be published."""

    @property
    def consistent(self) -> bool:
        """All lines fit. Not that all are there: the last ones may be cut off."""
        return not self.faults


def verify(path: Path, *, heads: Collection[str] = ()) -> Chains:
    """Check the lines of a file.

    Args:
        heads: links that were published; each has to be that of a line.

    Raises:
        RunDirError: it cannot be read.
    """
    return verified(lines(path), heads=heads)


def verified(found: Iterable[AuditLine | Torn], *, heads: Collection[str] = ()) -> Chains:
    """Check lines in their order. Linear in time; some thousand lines are in memory at most."""
    writers: dict[str, _Writer] = {}
    faults: list[ChainFault] = []
    torn: list[int] = []
    missing = {head.lower() for head in heads}
    count = 0
    for line in found:
        if isinstance(line, Torn):
            torn.append(line.number)
            continue
        count += 1
        placed = _placed(line)
        if placed is None:
            faults.append(_fault("foreign", line, "it has no number among those of its writer"))
            continue
        missing.discard(placed.link.hex())
        writer = writers.setdefault(line.writer, _Writer(name=line.writer))
        faults += writer.take(placed)
        del faults[_SHOWN:]
    for writer in writers.values():
        faults += writer.end()
    faults += [_unknown(head) for head in sorted(missing)]
    faults.sort(key=lambda fault: fault.number or count + 1)
    return Chains(
        lines=count,
        faults=tuple(faults[:_SHOWN]),
        torn=tuple(torn),
        heads={writer.name: writer.link.hex() for writer in writers.values()},
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    line: AuditLine
    seq: int
    body: bytes
    link: bytes


def _placed(line: AuditLine) -> _Placed | None:
    parts, seq = unlinked(line.raw), line.seq
    return None if parts is None or seq is None else _Placed(line, seq, *parts)


@dataclass(slots=True, kw_only=True)
class _Writer:
    """The chain of one writer, as far as it was read."""

    name: str
    next: int = 0
    link: bytes = BEGIN
    gap: bool = False
    """What stood before the next line is not there: that one's link cannot be told."""
    ahead: dict[int, _Placed] = field(default_factory=dict[int, _Placed])
    """Lines that came too early."""

    def take(self, placed: _Placed) -> Iterator[ChainFault]:
        """Look at the next line of this writer."""
        if placed.seq < self.next or placed.seq in self.ahead:
            yield _fault("repeated", placed.line, f"its number {placed.seq} was there before")
            return
        if placed.seq > self.next:
            self.ahead[placed.seq] = placed
            if len(self.ahead) > _AHEAD:
                yield from self._given_up()
            return
        late = bool(self.ahead)
        yield from self._follow(placed)
        if late:
            yield _fault("moved", placed.line, "lines that came after it stand before it")
        yield from self._caught_up()

    def end(self) -> Iterator[ChainFault]:
        """No more lines come."""
        while self.ahead:
            yield from self._given_up()

    def _given_up(self) -> Iterator[ChainFault]:
        """Miss what does not come, and go on behind it."""
        first = min(self.ahead)
        count = first - self.next
        yield _fault("removed", self.ahead[first].line, f"{count:,} line(s) before it are missing")
        self.next, self.gap = first, True
        yield from self._caught_up()

    def _caught_up(self) -> Iterator[ChainFault]:
        while (placed := self.ahead.pop(self.next, None)) is not None:
            yield from self._follow(placed)

    def _follow(self, placed: _Placed) -> Iterator[ChainFault]:
        if not self.gap and next_link(self.link, placed.body) != placed.link:
            yield _fault("changed", placed.line, "it does not fit its own link")
        self.next, self.link, self.gap = placed.seq + 1, placed.link, False


def _fault(
    kind: Literal["changed", "removed", "moved", "repeated", "foreign"], line: AuditLine, what: str
) -> ChainFault:
    return ChainFault(kind=kind, number=line.number, writer=line.writer, what=what)


def _unknown(head: str) -> ChainFault:
    return ChainFault(
        kind="unknown-head",
        number=0,
        writer="",
        what=f"no line has the link {head!r} that was published: lines were cut off, or made anew",
    )
