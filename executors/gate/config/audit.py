"""Where a gate writes down what it decided."""

from __future__ import annotations

from typing import Final

from pydantic import field_validator

from executors.gate.config.section import Section

__all__ = ["AUTO", "AuditSection"]

AUTO: Final = "auto"
"""The file of the run family: of `RLM_AUDIT`, or in the gate's own folder."""


class AuditSection(Section):
    """The audit of a run family."""

    path: str | None = AUTO
    """A file on a local disk; None keeps the lines in memory, of this object alone."""

    @field_validator("path")
    @classmethod
    def _is_path(cls, given: str | None) -> str | None:
        if given is not None and (not given.strip() or "\0" in given):
            raise ValueError(f"{given!r} is no file: name one on a local disk, or null for none")
        return given
