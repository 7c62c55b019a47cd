"""Prices that providers publish, from the table of the package `genai-prices`.

It is read where it lies: the package can fetch newer ones, which is never asked of it. Importing it takes
a tenth of a second and loads an HTTP stack that we do not use, so that it happens where the model of a
provider in the table is met, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from executors.models.price import Price

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

__all__ = ["Source", "is_published", "prices_source", "published"]

_PACKAGE: Final = "genai-prices"
_HTTPS: Final = re.compile(r"https://([a-z0-9.-]+):443")
_TIERS: Final = ("input", "output", "cache_read", "cache_write")
# A request or a minute costs something there, so that tokens alone do not tell what a call costs.
_BY_OTHER_UNITS: Final = frozenset(
    {
        "requests_kcount",
        "input_text_messages_kcount",
        "output_citation_mtok",
        "output_reasoning_mtok",
    }
)
# There the name of a model is the customer's own choice, or a call is part of a subscription.
_NAMES_TELL_NOTHING: Final = frozenset(
    {"azure", "cloudflare", "cursor", "databricks", "github-copilot", "modal"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which table it is."""

    package: str
    version: str
    known_to: date | None
    """The newest date from which on the table knows a price; it is at least as new as that."""

    def __str__(self) -> str:
        newest = "" if self.known_to is None else f", prices known to {self.known_to:%Y-%m-%d}"
        return f"{self.package} {self.version}{newest}"


def is_published() -> bool:
    """Whether the table is installed."""
    return find_spec("genai_prices") is not None


@cache
def prices_source() -> Source | None:
    """Return which table is installed; None where none is."""
    if not is_published():
        return None
    today = datetime.now(UTC).date()
    starts = [start for start in _starts() if start <= today]
    return Source(package=_PACKAGE, version=version(_PACKAGE), known_to=max(starts, default=None))


@lru_cache(maxsize=256)
def published(origin: str, name: str) -> Price | None:
    """Return what a provider takes for the tokens of a model on its own servers.

    None for every other origin, for a name that the table does not have, and for a model whose price
    does not follow from its tokens alone.
    """
    found = _HTTPS.fullmatch(origin)
    if found is None or not is_published():
        return None
    for provider, every in _providers_at(found[1]):
        model = provider.find_model(name, all_providers=every)
        if model is not None:
            return _price(_dearest(model))
    return None


def _providers_at(host: str) -> Iterator[tuple[Provider, list[Provider]]]:
    from genai_prices.data import providers  # see above

    url = f"https://{host}/"
    for provider in providers:
        if provider.id in _NAMES_TELL_NOTHING:
            continue
        found = re.match(provider.api_pattern, url)
        # The patterns tell how a URL begins: what follows must not be more of the host.
        if found is not None and (found[0].endswith("/") or url[found.end() :] in ("", "/")):
            yield provider, providers


def _dearest(model: ModelInfo) -> ModelPrice:
    """Return today's prices; the dearest of a day where they change with the hour."""
    today = datetime.now(UTC).date()
    hours = [datetime.combine(today, time(hour, tzinfo=UTC)) for hour in range(24)]
    return max((model.get_prices(hour) for hour in hours), key=_size)


def _size(price: ModelPrice) -> Decimal:
    return sum(
        (_base(getattr(price, f"{tier}_mtok", None)) or Decimal(0) for tier in _TIERS), Decimal(0)
    )


def _price(found: ModelPrice) -> Price | None:
    given: Mapping[str, object] = vars(found)
    if any(given.get(unit) for unit in _BY_OTHER_UNITS):
        return None
    held = {tier: given.get(f"{tier}_mtok") for tier in _TIERS}
    base = {tier: _base(value) for tier, value in held.items()}
    steps = {tier: _steps(value) for tier, value in held.items()}
    edges = {edge for tier in steps.values() for edge, _ in tier}
    if base["input"] is None or base["output"] is None or len(edges) > 1:
        return None
    above = min(edges, default=None)
    longer = {f"long_{tier}": found[0][1] for tier, found in steps.items() if found}
    return Price(
        input=base["input"],
        output=base["output"],
        cache_read=base["cache_read"],
        cache_write=base["cache_write"],
        long_above=above,
        **longer,
    )


def _base(value: object) -> Decimal | None:
    found = getattr(value, "base", value)
    return found if isinstance(found, Decimal) else None


def _steps(value: object) -> list[tuple[int, Decimal]]:
    from genai_prices.types import TieredPrices  # see above

    if not isinstance(value, TieredPrices):
        return []
    return [(tier.start, tier.price) for tier in value.tiers]


def _starts() -> Iterator[date]:
    """Return the dates from which on prices hold."""
    from genai_prices.data import providers  # see above
    from genai_prices.types import StartDateConstraint

    for provider in providers:
        for model in provider.models:
            dated: list[object] = [*(model.price_variants or ())]
            if isinstance(model.prices, list):
                dated += model.prices
            for one in dated:
                constraint = getattr(one, "constraint", None)
                if isinstance(constraint, StartDateConstraint):
                    yield constraint.start_date
