"""What the tokens of a model cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from executors.errors import ValidationError
from executors.usage import Usage

__all__ = ["FREE", "Price", "cost_of", "worst_cost"]

_MILLION: Final = Decimal(1_000_000)
_NOTHING: Final = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per million tokens, by tier; a cache tier of None costs what `input` costs.

    Some models cost more where the prompt is long: with more than `long_above` tokens in it, the whole
    call costs the `long_` prices. One of None is as without it.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    long_above: int | None = None
    """Tokens of a prompt, cached ones included; None where length does not matter."""
    long_input: Decimal | None = None
    long_output: Decimal | None = None
    long_cache_read: Decimal | None = None
    long_cache_write: Decimal | None = None

    def __post_init__(self) -> None:
        for tier in _TIERS:
            value: object = getattr(self, tier)
            if value is None and tier not in ("input", "output"):
                continue
            if not (isinstance(value, Decimal) and value.is_finite() and value >= 0):
                raise ValidationError(
                    f"{tier}={value!r} is no price", hint="give a finite Decimal >= 0, in USD"
                )

    def at(self, prompt: int) -> Price:
        """Return what a call with a prompt of so many tokens costs, whatever its length."""
        if self.long_above is None or prompt <= self.long_above:
            return self
        return Price(
            input=self.input if self.long_input is None else self.long_input,
            output=self.output if self.long_output is None else self.long_output,
            cache_read=_first(self.long_cache_read, self.cache_read),
            cache_write=_first(self.long_cache_write, self.cache_write),
        )


_TIERS: Final = tuple(name for name in Price.__dataclass_fields__ if name != "long_above")
FREE: Final = Price(input=_NOTHING, output=_NOTHING)
"""Of what runs in this process."""


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """Return the cost in USD; None when the price or a tier that matters is unknown."""
    if price is None or usage.input is None or usage.output is None:
        return None
    if price is FREE:
        return _NOTHING
    if price.long_above is not None:
        price = price.at(usage.input + (usage.cache_read or 0) + (usage.cache_write or 0))
    total = usage.input * price.input + usage.output * price.output
    if usage.cache_read:
        total += usage.cache_read * (price.input if price.cache_read is None else price.cache_read)
    if usage.cache_write:
        rate = price.input if price.cache_write is None else price.cache_write
        total += usage.cache_write * rate
    return total / _MILLION


def worst_cost(prompt: int, output: int, price: Price) -> Decimal:
    """Return what a call costs at most, in USD: the whole prompt in its dearest tier."""
    if price is FREE:
        return _NOTHING
    if price.long_above is not None:
        price = price.at(prompt)
    dearest = max(price.input, price.cache_read or price.input, price.cache_write or price.input)
    return (prompt * dearest + output * price.output) / _MILLION


def _first(usd: Decimal | None, otherwise: Decimal | None) -> Decimal | None:
    return otherwise if usd is None else usd
