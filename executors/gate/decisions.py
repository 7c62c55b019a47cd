"""What a gate can answer: a union of four frozen classes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Allow", "Ask", "Decision", "Deny", "Halt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """Go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """This action does not happen; the run goes on."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A person decides."""

    rule: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The whole run stops; what was paid for is kept."""

    rule: str
    reason: str


Decision = Allow | Deny | Ask | Halt
