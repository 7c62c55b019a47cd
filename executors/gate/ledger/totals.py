"""What a run family used: live from the ledger, or added up from its audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from executors.gate.ledger.amounts import nano, usd_of

__all__ = ["Totals", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over a run family. They add, in the order in which things happened.

    The sum over the lines of an audit is what the ledger says, for equal lines.
    """

    calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)
    """In steps of 1e-9."""
    unpriced: bool | None = None
    """Whether the price of the last round was unknown; None before there was one."""
    priced: int = 0
    """Rounds that cost something, and how much is known."""
    turns: int = 0
    """Calls of models and of tools."""
    tool_rounds: int = 0
    children: int = 0
    resources: Mapping[str, int] = field(default_factory=dict[str, int])
    caps: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """Those that a person set: "usd", "tokens", "calls", "resource.<name>". Not the configured ones."""
    terminated: str | None = None
    """Why somebody ended the run for good; None while nobody did."""

    def __add__(self, other: Totals) -> Totals:
        """Return these and what came after them."""
        names = self.resources.keys() | other.resources.keys()
        return Totals(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            usd=usd_of(nano(self.usd) + nano(other.usd)),
            unpriced=self.unpriced if other.unpriced is None else other.unpriced,
            priced=self.priced + other.priced,
            turns=self.turns + other.turns,
            tool_rounds=self.tool_rounds + other.tool_rounds,
            children=self.children + other.children,
            resources={
                name: self.resources.get(name, 0) + other.resources.get(name, 0) for name in names
            },
            caps={**self.caps, **other.caps},
            terminated=self.terminated or other.terminated,
        )


def recorded(
    *,
    call: bool,
    usd: Decimal,
    unpriced: bool = False,
    tokens: int = 0,
    counts: Mapping[str, int] | None = None,
) -> Totals:
    """Return what one record adds, live as well as when it is read back.

    Args:
        call: it was a call of a model, and no call of a tool.
        usd: what is known of its cost; nothing where it is unpriced.
    """
    paid = Decimal(0) if unpriced else usd
    return Totals(
        calls=int(call),
        tokens=tokens,
        usd=usd_of(nano(paid)),
        unpriced=unpriced if unpriced or paid or call else None,
        priced=int(paid > 0),
        turns=1,
        tool_rounds=int(not call),
        resources=dict(counts or {}),
    )
