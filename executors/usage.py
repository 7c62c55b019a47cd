"""What a call used: tokens in four disjoint tiers, and money as Decimal."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

__all__ = ["Spend", "Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call in four disjoint tiers; None is unknown, zero is zero."""

    input: int | None = None
    """Tokens read at the full price: neither read from nor written to a cache."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Tokens written, reasoning included."""

    @property
    def prompt(self) -> int | None:
        """All tokens of the prompt, whatever their tier; None when the input is unknown."""
        if self.input is None:
            return None
        return self.input + (self.cache_read or 0) + (self.cache_write or 0)

    @property
    def total(self) -> int | None:
        """Prompt plus output; None when either is unknown."""
        prompt = self.prompt
        return None if prompt is None or self.output is None else prompt + self.output


@dataclass(slots=True, kw_only=True)
class Spend:
    """Running totals over calls. Unknown parts are counted as calls, never as zero tokens."""

    calls: int = 0
    attempts: int = 0
    shared: int = 0
    """Calls answered by an identical call in flight; they cost nothing."""
    replayed: int = 0
    """Calls answered from a journal; they cost nothing now."""
    failed: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)
    """USD over the priced calls."""
    unpriced: int = 0
    """Calls whose price is unknown."""
    unmetered: int = 0
    """Calls whose tokens are unknown; the budget was charged their reservation."""

    @property
    def tokens(self) -> int:
        """All known tokens."""
        return self.input + self.cache_read + self.cache_write + self.output

    def add(self, usage: Usage, cost: Decimal | None, *, attempts: int = 1) -> None:
        """Count one paid call."""
        self.calls += 1
        self.attempts += attempts
        self.input += usage.input or 0
        self.cache_read += usage.cache_read or 0
        self.cache_write += usage.cache_write or 0
        self.output += usage.output or 0
        if usage.total is None:
            self.unmetered += 1
        if cost is None:
            self.unpriced += 1
        else:
            self.cost += cost
