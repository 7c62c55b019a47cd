"""What a node hands up to the one above: an answer, or what there is and why it is not whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from corpus.results import Tally
from executors.boundary import Returned, attempt_now
from executors.errors import (
    DiskFault,
    Halted,
    Interrupted,
    ModelUnusable,
    OutOfQuota,
)
from executors.ids import NodeId
from rlm.checks.verdict import Verdict
from rlm.outcome import Blocker

__all__ = ["Answered", "Blocked", "NodeResult", "Short", "blocker_of", "first_blocked", "shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """What broke, and where."""

    blocker: Blocker
    detail: str
    node: NodeId
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A node came to its end."""

    value: object
    verdict: Verdict | None = None
    checked: bool = False
    """A deterministic check has looked at it already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A node did not: its best, what is missing, and what broke."""

    best: object | None
    blocked: Blocked
    missing: tuple[str, ...] = field(default=())


NodeResult: TypeAlias = Answered | Short


def first_blocked(short: list[Short]) -> Blocked:
    """Return what a parent names of its children's faults: broken arbiters first, then in order."""
    arbiters = ("broken-sensor", "broken-verifier")
    broken = [one.blocked for one in short if one.blocked.blocker in arbiters]
    return broken[0] if broken else short[0].blocked


def blocker_of(halted: Halted) -> Blocker:
    """Return the name of what stopped a run."""
    match halted:
        case ModelUnusable():
            return "model-unusable"
        case OutOfQuota():
            return "out-of-quota"
        case Interrupted():
            return "interrupted"
        case DiskFault():
            return "disk"
        case _:
            return "halted"


def shown(value: object) -> str:
    """Return a value as the text that a model or a person reads; a count by its numbers alone."""
    if isinstance(value, str):
        return value
    if isinstance(value, Tally):
        return f"{value.count:,} of {value.records:,} records"
    import json  # values that are no text are rare

    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=_worded)
    except (TypeError, ValueError, RecursionError):
        return _worded(value)


def _worded(value: object) -> str:
    """Return what a value says of itself; its type, where it cannot even do that."""
    got = attempt_now(str, value)
    return str(got.value) if isinstance(got, Returned) else f"<{type(value).__name__}>"
