"""The blocks of a count that are to be judged, and what is known of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from corpus.agenda import Block
from executors.gate.allowance import Drawn
from executors.ids import ContentKey
from executors.journal.records import Filed
from rlm.cluster.traces import Trace
from rlm.units.filed import Known

__all__ = ["TRIES", "Out", "Work"]

TRIES: Final = 3
"""Workers that may die over a block before its records are left unresolved."""


@dataclass(slots=True, kw_only=True)
class Work:
    """One block of one pass, until all of it is judged."""

    block: Block
    index: int
    """Of the block within its pass."""
    filed: bool
    """The journal may know some of it."""
    lost: int = 0
    """Workers that died over it."""
    known: Known = field(default_factory=dict[ContentKey, Filed])
    """Answers that its next unit is given."""

    @property
    def name(self) -> str:
        """What its unit is called."""
        again = f" again {self.lost}" if self.lost else ""
        return f"pass {self.block.pass_index + 1} block {self.index + 1}{again}"


@dataclass(slots=True, kw_only=True)
class Out:
    """A unit that runs somewhere."""

    work: Work
    seat: str
    slots: int
    """Of its lease."""
    reported: Drawn = field(default_factory=Drawn)
    """What it reported on its lease."""
    trace: Trace = field(default_factory=Trace)
    segment: Path | None = None
    """The file of its worker, on a shared disk; None until it began, and where lines are sent."""
    begin: int = 0
    """Where in that file it began."""
    given_up: bool = False
    """Its worker is gone, as far as one can tell; what it still says is not heard."""
