"""What happens while a corpus is read and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from executors.events import Event

__all__ = ["JudgeNoted", "ScanStarted", "SourceRead", "WindowFinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead(Event):
    """Pass 0 ended: the source is in the spool."""

    kind: ClassVar[str] = "source_read"

    source: str
    records: int
    empty: int
    identical: int
    """Records that repeat the text of an earlier one."""
    said: tuple[str, ...]
    """What was detected and assumed, as sentences."""
    fingerprint: str = ""
    """Hash over all ids and texts, whatever their order: which corpus was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanStarted(Event):
    """Judging begins; what progress is measured against."""

    kind: ClassVar[str] = "scan_started"

    judge: str
    items: int
    """Distinct, non-empty records: what each pass has to judge."""
    passes: int
    window: int
    cap: int
    asks: bool = True
    """A model is asked, so that the bounds of the run bind."""
    priced: bool = True
    """The price of what it costs is known, so that the bound of USD binds too."""
    restored: int = 0
    """Verdicts of earlier sessions that hold, all passes together."""
    restored_in: tuple[int, ...] = ()
    """Of these, those of each pass."""
    server: str = ""
    """scheme://host:port of the server that is asked; "" where it is the vendor's own, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFinished(Event):
    """A window was judged, or could not be."""

    kind: ClassVar[str] = "window_finished"

    window: int
    pass_index: int
    items: int
    unresolved: int
    error: str | None = None
    """Code of the error that left the whole window unresolved."""
    first: str | None = None
    """Name of the first item, given where something was left unresolved."""
    known: int = 0
    """Items that had a verdict already: shown again with the others, and not judged anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNoted(Event):
    """Something about a judge's reply that a reader of the count may want to know."""

    kind: ClassVar[str] = "judge_noted"

    window: int
    pass_index: int
    foreign: int = 0
    """Answers for aliases that were not shown; dropped."""
    repaired: int = 0
    """Items that were asked for a second time and then answered."""
    missing: int = 0
    """Items left without an answer; unresolved."""
    items: tuple[str, ...] = ()
    """Names of the first of these, at most 20."""
    snippet: str | None = None
    """Start of a reply that could not be read, scrubbed and clipped."""
