"""The bounds that hold now: of the configuration, of the file, and what people added to them."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

from executors.gate.allowance import Caps
from executors.gate.config.budget import BudgetSection
from executors.gate.ledger.amounts import MOST

__all__ = ["RULES", "Bound", "Bounds", "dimension_of", "resource_of", "whole"]

RULES: Final = {
    "usd": "budget.maxCostUsd",
    "tokens": "budget.maxTokens",
    "calls": "budget.maxCalls",
}
_RESOURCE: Final = "resource."


class Bound(NamedTuple):
    """A bound as the file has it."""

    cap: int | None
    """In whole units; None is no bound."""
    human: bool
    """A person set it: the configuration no longer counts."""
    exempt: int
    """What people allowed beyond it, one action at a time."""
    warned: bool
    """The warning of its soft ratio has gone out."""


class Bounds:
    """What the configuration says, in whole units.

    Args:
        caps: those of the run; None where nobody gave any, and the section's hold alone. Where both
            say something, the tighter of the two.
    """

    def __init__(self, budget: BudgetSection, caps: Caps | None) -> None:
        said = {"usd": budget.max_cost_usd, "tokens": budget.max_tokens, "calls": budget.max_calls}
        self.configured: dict[str, int | None] = {}
        for name, bound in said.items():
            own = None if bound is None else whole(name, bound)
            if bound is None or caps is not None:
                run: Decimal | int = getattr(caps or Caps(), name)
                own = whole(name, run) if bound is None else _tighter(own, whole(name, run))
            self.configured[name] = own
        for name, bound in budget.resources.items():
            self.configured[_RESOURCE + name] = whole("", bound)
        self.prices_matter = budget.max_cost_usd is not None and budget.max_cost_usd.is_finite()
        """A bound of USD was asked for, so that calls without a price go one at a time."""

    def effective(self, kept: dict[str, Bound]) -> dict[str, int | None]:
        """Return what holds, the bounds of the file considered, in the order of the configuration."""
        held = {name: self._one(name, kept.get(name)) for name in self.configured}
        return held | {
            name: _lifted(bound.cap, bound.exempt)
            for name, bound in kept.items()
            if name not in held and bound.human
        }

    def _one(self, name: str, kept: Bound | None) -> int | None:
        own = self.configured[name]
        if kept is None:
            return own
        return _lifted(kept.cap if kept.human else _tighter(own, kept.cap), kept.exempt)


def whole(name: str, bound: float | Decimal) -> int | None:
    """Return a bound in whole units, rounded down; None where it is none."""
    units = bound * 10**9 if name == "usd" and isinstance(bound, Decimal) else bound
    return None if units >= MOST else int(units)


def resource_of(name: str) -> str | None:
    """Return which resource a bound is about, None for another bound."""
    return name.removeprefix(_RESOURCE) if name.startswith(_RESOURCE) else None


def dimension_of(name: str) -> str | None:
    """Return the dimension of a bound, by its own name or by that of its rule; None for no bound."""
    by_rule = {rule: dimension for dimension, rule in RULES.items()}
    plain = by_rule.get(name, name.removeprefix("budget."))
    return plain if plain in RULES or resource_of(plain) else None


def _tighter(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _lifted(cap: int | None, by: int) -> int | None:
    return None if cap is None else cap + by
