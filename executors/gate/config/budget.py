"""What a whole run family may spend."""

from __future__ import annotations

from pydantic import Field, field_validator

from executors.gate.config.amounts import Bound, Usd
from executors.gate.config.section import Section
from executors.gate.results import LONGEST_RESOURCE

__all__ = ["BudgetSection"]


class BudgetSection(Section):
    """Bounds of spending. One that is not set is that of the run (10 USD where nobody says more)."""

    max_cost_usd: Usd | None = None
    """USD; 0 lets nothing through but calls of models that are known to be free, inf is no bound."""
    max_tokens: Bound | None = None
    """Tokens of all tiers: what was read, from a cache or not, and what was written."""
    max_calls: Bound | None = None
    """Logical calls of models, however many tries each took."""
    resources: dict[str, Bound] = Field(default_factory=dict[str, Bound])
    """Bounds of what results count by name, for instance `writes`."""
    soft_ratio: float | None = Field(default=None, gt=0, lt=1)
    """The share of a bound at which a warning goes out, once; nothing is refused for it."""
    strict: bool = False
    """Halt before the call that would pass the bound, were it to cost what they did on average."""
    fail_closed_on_unpriced: bool = False
    """Under a finite bound of USD, halt at a call whose price nobody knows. Otherwise such calls are
    made one at a time where `max_cost_usd` is set here, and marked."""
    shared_file: str | None = None
    """The ledger of a run family that others share; None is that of the run."""

    @field_validator("resources")
    @classmethod
    def _named(cls, given: dict[str, float]) -> dict[str, float]:
        if not all(given):
            raise ValueError("'' is no name of a resource: name what its results count")
        if any(len(name) > LONGEST_RESOURCE for name in given):
            raise ValueError(f"the name of a resource has {LONGEST_RESOURCE} characters at most")
        return given

    @field_validator("shared_file")
    @classmethod
    def _is_path(cls, given: str | None) -> str | None:
        if given is not None and (not given.strip() or "\0" in given):
            raise ValueError(f"{given!r} is no file: name one on a local disk")
        return given
