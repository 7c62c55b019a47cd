"""How a run ends: exactly one Completed or Incomplete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from rlm.checks.verdict import Verdict
from rlm.receipts.receipts import Receipts

__all__ = ["Blocker", "Completed", "Incomplete", "Outcome"]

R = TypeVar("R")
B = TypeVar("B")

Blocker = Literal[
    "broken-sensor",
    "broken-synthesis",
    "broken-tool",
    "broken-verifier",
    "cancelled",
    "context-exceeded",
    "disk",
    "empty-answer",
    "empty-corpus",
    "failed",
    "governance-deny",
    "halted",
    "interrupted",
    "malformed-calls",
    "model-failed",
    "model-unusable",
    "node-cap",
    "out-of-quota",
    "plan-cycle",
    "plan-duplicate-ids",
    "plan-empty",
    "plan-unknown-dependency",
    "plan-unparsable",
    "plan-wrong-count",
    "refused",
    "round-limit",
    "search-failed",
    "stuck-tool",
    "truncated",
    "uncalibrated-judge",
    "unresolved-records",
    "verifier-unavailable",
]
"""Why a run could not complete.

broken-sensor       the sensor raised, hung or said nothing usable: mend it, not the model
broken-synthesis    the function that puts parts together raised
broken-tool         a tool said that no call of it can succeed any more
broken-verifier     the caller's `evaluate` raised, hung or said nothing usable
cancelled           somebody stopped it
context-exceeded    what a worker was to read is longer than its model's window
disk                the run directory cannot be written
empty-answer        a worker ended without a word
empty-corpus        there was nothing to judge
failed              our own fault or that of a callback; only receipts say so, the error is raised
governance-deny     the policy denied what had to happen: widen it, or ask for something else
halted              a bound of the run was reached; `missing` names it
interrupted         somebody asked it to stop, and what was in flight could end
malformed-calls     a model's tool calls could not be read, several times in a row
model-failed        a call failed for good
model-unusable      the model refused the key, or failed too often in a row
node-cap            a model asked for more nodes than the tree may have
out-of-quota        the server takes no calls for longer than a call may wait
plan-…              a planner's steps are no plan: they form a cycle, repeat an id, wait for a step
                    that is not there, are no steps at all, none, or not as many as were asked for
refused             the model declined
round-limit         a worker did not come to an end within its rounds
search-failed       a corpus could not be searched
stuck-tool          a worker repeated a call that cannot succeed
truncated           an answer was cut at its bound of tokens
uncalibrated-judge  scores without labels order records and state no number
unresolved-records  some records were never judged; the result carries their reasons
verifier-unavailable  the grader could not be asked, or its verdict not be read
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(Generic[R]):
    """A result that accounts for everything it was asked about."""

    result: R
    receipts: Receipts
    verdict: Verdict | None = None
    """Of who checked the result; None where nothing had to. `Failed` is an answer, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete(Generic[B]):
    """What there is, and what is missing."""

    best: B | None
    missing: tuple[str, ...]
    """What was not done, for people; at most a few lines."""
    blocker: Blocker
    receipts: Receipts
    node: str = "root"
    """Path of the node that broke."""
    detail: str | None = None
    """What happened there, for people."""


Outcome = Completed[R] | Incomplete[B]
