"""What a gate can answer: a union of four frozen classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = ["Allow", "Ask", "Decision", "Deny", "Halt", "Outcome", "Settled", "Severity"]

Severity = Literal["action", "halt"]
"""What a decision is about: this action, or the whole run."""
Outcome = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """Go on."""

    severity: ClassVar[Severity] = "action"
    outcome: ClassVar[Outcome] = "allow"
    rule: str = "default"
    reason: str = ""
    aid: str = ""
    """Names the check, so that what came of the action joins it in the audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """This action does not happen; the run goes on."""

    severity: ClassVar[Severity] = "action"
    outcome: ClassVar[Outcome] = "deny"
    rule: str
    reason: str
    aid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A person decides."""

    severity: ClassVar[Severity] = "action"
    outcome: ClassVar[Outcome] = "ask"
    rule: str
    question: str
    aid: str = ""
    tier: int | None = None
    """How destructive a command is, where that is why: 3 is worst."""
    classification: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The whole run stops; what was paid for is kept."""

    severity: ClassVar[Severity] = "halt"
    outcome: ClassVar[Outcome] = "deny"
    rule: str
    reason: str
    aid: str = ""
    hint: str | None = None
    """What to do about it."""


Decision = Allow | Deny | Ask | Halt
Settled = Allow | Deny | Halt
"""A decision that leaves nothing open."""
