"""Prices of tokens. An unknown price is None and never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Protocol

from executors.errors import ValidationError
from executors.models.base import ModelInfo
from executors.usage import Usage

__all__ = [
    "NoPrices",
    "Price",
    "PriceList",
    "PriceTable",
    "cost_of",
    "price_list",
    "worst_cost",
]

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per million tokens, by tier; a cache tier of None costs what `input` costs."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    def __post_init__(self) -> None:
        for tier in ("input", "output", "cache_read", "cache_write"):
            value: object = getattr(self, tier)
            if value is None and tier.startswith("cache"):
                continue
            if not (isinstance(value, Decimal) and value.is_finite() and value >= 0):
                raise ValidationError(
                    f"{tier}={value!r} is no price", hint="give a finite Decimal >= 0, in USD"
                )


_NOTHING = Decimal(0)
_FREE = Price(input=_NOTHING, output=_NOTHING)


class PriceList(Protocol):
    """Where prices come from."""

    def price(self, info: ModelInfo) -> Price | None:
        """Return the price of a model, None when unknown."""
        ...


class NoPrices:
    """A list that knows no price, except that what runs in this process is free."""

    def price(self, info: ModelInfo) -> Price | None:
        if info.origin == "in-process":
            return _FREE
        return None


class PriceTable:
    """Prices by model name, as the caller gives them."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self.prices = MappingProxyType(dict(prices))

    def price(self, info: ModelInfo) -> Price | None:
        return self.prices.get(info.name) or NoPrices().price(info)


class _Same:
    """One price whatever the model: for who asks one."""

    def __init__(self, price: Price) -> None:
        self._price = price

    def price(self, info: ModelInfo) -> Price:
        return self._price


def price_list(prices: Price | PriceList | None) -> PriceList:
    """Return what was given as a list: a price is that of each model, None knows no price."""
    match prices:
        case None:
            return NoPrices()
        case Price():
            return _Same(prices)
        case _:
            return prices


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """Return the cost in USD; None when the price or a tier that matters is unknown."""
    if price is None or usage.input is None or usage.output is None:
        return None
    if price is _FREE:
        return _NOTHING
    total = usage.input * price.input + usage.output * price.output
    if usage.cache_read:
        total += usage.cache_read * (price.input if price.cache_read is None else price.cache_read)
    if usage.cache_write:
        rate = price.input if price.cache_write is None else price.cache_write
        total += usage.cache_write * rate
    return total / _MILLION


def worst_cost(prompt: int, output: int, price: Price) -> Decimal:
    """Return what a call costs at most, in USD: the whole prompt in its dearest tier."""
    if price is _FREE:
        return _NOTHING
    dearest = max(price.input, price.cache_read or price.input, price.cache_write or price.input)
    return (prompt * dearest + output * price.output) / _MILLION
