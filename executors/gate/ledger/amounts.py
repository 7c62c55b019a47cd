"""Amounts in whole units: calls, tokens, and billionths of a USD, so that sums are exact."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from typing import Final, NamedTuple

from executors.errors import ValidationError
from executors.gate.allowance import Drawn, Estimate

__all__ = ["DIMENSIONS", "MOST", "NOTHING", "Amounts", "nano", "shown", "usd_of"]

DIMENSIONS: Final = ("calls", "tokens", "usd")
MOST: Final = 2**53
"""No amount is larger: a thousand of them still fit the file's integers. Of USD, nine million."""
_NANO: Final = Decimal(10**9)
_FREE: Final = Decimal(0)
# Whatever the caller's context rounds to.
_EXACT: Final = Context(prec=64, rounding=ROUND_CEILING)


class Amounts(NamedTuple):
    """One amount in each dimension."""

    calls: int = 0
    tokens: int = 0
    usd: int = 0
    """Billionths."""

    def plus(self, other: Amounts) -> Amounts:
        """Return both together."""
        return Amounts(self[0] + other[0], self[1] + other[1], self[2] + other[2])

    def less(self, other: Amounts) -> Amounts:
        """Return what is left, below zero where there was less."""
        return Amounts(self[0] - other[0], self[1] - other[1], self[2] - other[2])

    def over(self, other: Amounts) -> Amounts:
        """Return by how much this is more, zero where it is not."""
        return Amounts(
            max(0, self[0] - other[0]), max(0, self[1] - other[1]), max(0, self[2] - other[2])
        )

    @property
    def drawn(self) -> Drawn:
        """The same as others see it."""
        return Drawn(calls=self.calls, tokens=self.tokens, usd=usd_of(self.usd))

    @staticmethod
    def of(given: Estimate | Drawn) -> Amounts:
        """Return an estimate, whose unknown price is nothing, or what was drawn.

        Raises:
            ValidationError: an amount is negative, or not finite.
        """
        calls, tokens = given.calls, given.tokens
        if calls < 0 or tokens < 0:
            raise ValidationError(
                f"calls={calls!r}, tokens={tokens!r} are no amounts", hint="give whole numbers >= 0"
            )
        return Amounts(min(calls, MOST), min(tokens, MOST), nano(given.usd))


NOTHING: Final = Amounts()


def nano(usd: Decimal | None) -> int:
    """Return billionths of a USD, rounded up; 0 for None.

    Raises:
        ValidationError: it is negative, or not finite.
    """
    if not usd:
        return 0
    if not (usd.is_finite() and usd > 0):
        raise ValidationError(
            f"usd={usd!r} is no amount", hint="give a finite Decimal >= 0, or None when unknown"
        )
    scaled = _EXACT.multiply(usd, _NANO)
    if scaled >= MOST:
        return MOST
    whole = int(scaled)
    return whole + (scaled > whole)


def usd_of(billionths: int) -> Decimal:
    """Return them as USD, exactly and without idle zeros."""
    if not billionths:
        return _FREE
    return _EXACT.divide(Decimal(billionths), _NANO).normalize(_EXACT)


def shown(dimension: str, amount: int | None) -> str:
    """Return an amount as people read it; None is no bound."""
    if amount is None:
        return "no bound"
    return f"{usd_of(amount):f} USD" if dimension == "usd" else f"{amount:,}"
