"""How a run ends: exactly one Completed or Incomplete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from rlm.receipts import Receipts

__all__ = ["Blocker", "Completed", "Incomplete", "Outcome"]

R = TypeVar("R")
B = TypeVar("B")

Blocker = Literal[
    "cancelled",
    "disk",
    "empty-corpus",
    "failed",
    "halted",
    "interrupted",
    "model-unusable",
    "out-of-quota",
    "uncalibrated-judge",
    "unresolved-records",
]
"""Why a run could not complete.

cancelled           somebody stopped it
disk                the run directory cannot be written
empty-corpus        there was nothing to judge
failed              our own fault or that of a callback; only receipts say so, the error is raised
halted              a bound of the run was reached; `missing` names it
interrupted         somebody asked it to stop, and what was in flight could end
model-unusable      the model refused the key, or failed too often in a row
out-of-quota        the server takes no calls for longer than a call may wait
uncalibrated-judge  scores without labels order records and state no number
unresolved-records  some records were never judged; the result carries their reasons
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(Generic[R]):
    """A result that accounts for everything it was asked about."""

    result: R
    receipts: Receipts


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete(Generic[B]):
    """What there is, and what is missing."""

    best: B | None
    missing: tuple[str, ...]
    """What was not done, for people; at most a few lines."""
    blocker: Blocker
    receipts: Receipts


Outcome = Completed[R] | Incomplete[B]
