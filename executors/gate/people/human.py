"""What a person is asked, and what they can say: yes, no, a higher cap, or an end to it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from executors.gate.actions import Action
from executors.gate.decisions import Severity
from executors.gate.people.annotations import Annotation
from executors.gate.people.standing import Standing
from executors.secrets import scrub

__all__ = ["Approve", "Human", "HumanEvent", "Refuse", "Reply", "Terminate", "TopUp", "plain_reply"]

_WORDS: Final = 500
"""Characters of a person's own words that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanEvent:
    """A question to a person."""

    kind: Literal["ask", "halt"]
    """Whether a rule wants their word about this action, or a bound of the run is reached."""
    action: Action = field(repr=False)
    """The one that was checked, secrets and all; `shown` is for eyes."""
    shown: str
    """The action as JSON on one line: bounded, secrets masked, and nothing in it moves a cursor."""
    severity: Severity
    rule: str
    reason: str
    standing: Standing
    """What was spent, and of what."""
    aid: str
    tier: int | None = None
    """How destructive a command is; None where that is not why."""
    classification: str | None = None
    annotations: tuple[Annotation, ...] = ()
    """What others noted that a person should see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """Let this one action happen. Where a bound is reached the next one is asked about again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """It does not happen."""

    reason: str = "a person did not allow it"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUp:
    """Raise the cap that is reached, and go on. An answer to a rule's question, it approves."""

    cap: object
    """The new cap, in the unit of the bound. What is no finite number >= 0 refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """End the run for good."""

    reason: str = "a person ended the run"


Reply = Approve | Refuse | TopUp | Terminate

Human = Callable[[HumanEvent], object]
"""Answers a question, at once or as a coroutine; a plain function runs in a thread of its own.

It returns a `Reply`, one of "allow", "deny", "terminate", or a mapping with one of them or "topup"
under `decision`, and `new_cap` or `reason` beside it. Anything else refuses.
"""


def plain_reply(said: object) -> Reply:
    """Return what a person's answer means; what is not clearly anything else refuses.

    Raises:
        Exception: what a mapping of a strange class raised.
    """
    match said:
        case Approve() | TopUp():
            return said
        case Refuse(reason=reason) | Terminate(reason=reason):
            return replace(said, reason=scrub(reason))
        case str():
            return _named(said, {})
        case Mapping():
            report = dict(cast("Mapping[object, object]", said))
            return _named(report.get("decision"), report)
        case _:
            return Refuse(reason=f"{type(said).__name__} is no answer that the gate knows")


def _named(decision: object, report: Mapping[object, object]) -> Reply:
    reason = report.get("reason")
    told: dict[str, str] = (
        {"reason": scrub(reason)[:_WORDS]} if type(reason) is str and reason else {}
    )
    match decision:
        case "allow":
            return Approve()
        case "deny":
            return Refuse(**told)
        case "terminate":
            return Terminate(**told)
        case "topup":
            named = [report[key] for key in ("new_cap", "newCap", "cap") if key in report]
            return TopUp(cap=named[0] if named else None)
        case _:
            return Refuse(reason=f"{_quoted(decision)} is no answer that the gate knows")


def _quoted(said: object) -> str:
    return repr(said[:40]) if type(said) is str else type(said).__name__
