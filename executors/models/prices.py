"""Where prices of tokens come from. An unknown price is None and never zero.

The order: what a provider says that an answer cost; else the caller's own rates; else the table of an
installed package, for the provider's own servers alone; else nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from executors.errors import MissingExtra
from executors.models.base import ModelInfo
from executors.models.price import FREE, Price, cost_of, worst_cost
from executors.models.published import is_published, prices_source, published

__all__ = [
    "KnownPrices",
    "NoPrices",
    "Price",
    "PriceList",
    "PriceTable",
    "cost_of",
    "price_list",
    "worst_cost",
]


class PriceList(Protocol):
    """Where prices come from."""

    def price(self, info: ModelInfo) -> Price | None:
        """Return the price of a model, None when unknown."""
        ...


class NoPrices:
    """A list that knows no price, except that what runs in this process is free."""

    def price(self, info: ModelInfo) -> Price | None:
        if info.origin == "in-process":
            return FREE
        return None


class PriceTable:
    """Prices by model name, as the caller gives them."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self.prices = MappingProxyType(dict(prices))

    def price(self, info: ModelInfo) -> Price | None:
        return self.prices.get(info.name) or NoPrices().price(info)


class KnownPrices:
    """The prices that providers publish, as the installed package `genai-prices` holds them.

    They are those of the provider's own servers: what another server calls by the same name costs what
    that server takes, and nobody knows it. Nothing is ever downloaded; `prices_source` says how old the
    table is.

    Args:
        rates: the caller's own, by model name; they come first.

    Raises:
        MissingExtra: the extra `prices` is not installed.
    """

    def __init__(self, rates: Mapping[str, Price] | None = None) -> None:
        if not is_published():
            raise MissingExtra(extra="prices", needed_for="the table of published prices")
        self._own = PriceTable(rates or {})

    def price(self, info: ModelInfo) -> Price | None:
        return self._own.price(info) or published(info.origin, info.name)

    def source(self, info: ModelInfo) -> str:
        """Return which table the price of a model is from, and how new it is; "" for none."""
        if self._own.price(info) is not None or published(info.origin, info.name) is None:
            return ""
        return str(prices_source())


class _Same:
    """One price whatever the model: for who asks one."""

    def __init__(self, price: Price) -> None:
        self._price = price

    def price(self, info: ModelInfo) -> Price:
        return self._price


def price_list(prices: Price | PriceList | None) -> PriceList:
    """Return what was given as a list: a price is that of each model, None what is known without asking.

    That is the published prices where the extra `prices` is installed, and none where it is not.
    """
    match prices:
        case None:
            return KnownPrices() if is_published() else NoPrices()
        case Price():
            return _Same(prices)
        case _:
            return prices
