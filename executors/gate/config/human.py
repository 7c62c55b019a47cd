"""How a gate asks a person, and what it tells them."""

from __future__ import annotations

from typing import Literal, cast

from pydantic import Field, field_validator

from executors.gate.config.section import Section

__all__ = ["HumanSection"]


class HumanSection(Section):
    """Waiting for a person, and what their answers may change."""

    timeout_seconds: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """Seconds that an answer may take. At their end the answer is no, never yes."""
    topups: int = Field(default=5, ge=0, le=100)
    """Caps that a person may raise within one check."""
    reversible: tuple[str, ...] = ()
    """Types of actions that can be taken back."""
    reversible_escalation: Literal["strict", "relaxed"] = "strict"
    """Whether facts that others noted ride with a question about those too, or are only logged."""

    @field_validator("reversible", mode="before")
    @classmethod
    def _listed(cls, given: object) -> object:
        # Files know lists alone.
        return tuple(cast("list[object]", given)) if isinstance(given, list) else given
