"""Where a run stands: what it used, and of what. People are told so, and the outcome of a halt says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

__all__ = ["Pace", "Standing"]

_LATELY: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was used until now, over the whole family of the run. A cap of None bounds nothing."""

    usd: Decimal = Decimal(0)
    max_usd: Decimal | None = None
    tokens: int = 0
    max_tokens: int | None = None
    turns: int = 0
    max_turns: int | None = None
    seconds: float = 0.0
    """Since the gate was made."""
    usd_each: Decimal | None = None
    """Mean cost of what was recorded here; None before the first."""
    usd_lately: Decimal | None = None
    """The same of the last five."""

    def __str__(self) -> str:
        """Show it in one line."""
        parts = [
            f"{self.usd:f}{_of(self.max_usd)} USD",
            f"{self.tokens:,}{_of(self.max_tokens)} tokens",
            f"{self.turns:,}{_of(self.max_turns)} turns",
            f"{self.seconds:.0f} s",
        ]
        if self.usd_lately is not None:
            parts.append(f"lately {self.usd_lately:.6f} USD a step")
        return ", ".join(parts)


@dataclass(slots=True, kw_only=True)
class Pace:
    """What each step costs, in steps of one process."""

    steps: int = 0
    usd: Decimal = Decimal(0)
    _last: list[Decimal] = field(default_factory=list[Decimal])

    def add(self, usd: Decimal) -> None:
        """One more step was recorded."""
        self.steps += 1
        self.usd += usd
        self._last = [*self._last, usd][-_LATELY:]

    @property
    def each(self) -> Decimal | None:
        """Return the mean of all; None before the first."""
        return self.usd / self.steps if self.steps else None

    @property
    def lately(self) -> Decimal | None:
        """Return the mean of the last five."""
        return sum(self._last, Decimal(0)) / len(self._last) if self._last else None


def _of(cap: Decimal | int | None) -> str:
    if cap is None:
        return ""
    return f" of {cap:,}" if isinstance(cap, int) else f" of {cap:f}"
