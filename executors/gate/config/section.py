"""What each section of a gate's configuration is: strict, frozen, and without unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Section"]


class Section(BaseModel):
    """A part of the configuration. A key that is left out takes its default; `[]` is a value."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", arbitrary_types_allowed=False
    )
