"""What a judge says of one part: a union of five frozen classes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Chosen", "Matched", "NotMatched", "Quote", "Unresolved", "Unsure", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words that code found in the record; offsets are characters of the record's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The answer to a YesNo is yes."""

    probability: float | None = None
    """Calibrated probability of yes; None when the judge gives none."""
    quote: Quote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMatched:
    """The answer to a YesNo is no."""

    probability: float | None = None
    """Calibrated probability of yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The label of a OneOf."""

    label: str
    probability: float | None = None
    """Calibrated probability of this label."""
    quote: Quote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """The judge looked and could not tell."""

    reason: str
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """Never judged: the judge failed, refused, was cut, or left the item out."""

    reason: str
    """A short sentence for people. Few distinct ones a run: no record's text, no ids in it."""


Verdict = Matched | NotMatched | Chosen | Unsure | Unresolved
