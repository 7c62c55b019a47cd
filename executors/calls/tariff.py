"""What a call may cost and did cost, where more than one model may answer it."""

from __future__ import annotations

from decimal import Decimal

from executors.gate.allowance import Estimate
from executors.makers import maker
from executors.messages import ModelReply
from executors.models.base import ModelInfo
from executors.models.prices import Price, PriceList, cost_of, worst_cost

__all__ = ["Tariff"]

_estimate = maker(Estimate)


class Tariff:
    """The prices of a model, and of those that may answer in its place."""

    __slots__ = ("_asked", "_others")

    def __init__(self, prices: PriceList, info: ModelInfo) -> None:
        self._asked = prices.price(info)
        self._others = {one.title: prices.price(one) for one in info.others} if info.others else {}

    def worst(self, prompt: int, output: int) -> Estimate:
        """Return the worst case of a call: each of the models is paid, and fails, but the last."""
        asked = _worst(prompt, output, self._asked)
        for price in self._others.values():
            asked = _added(asked, _worst(prompt, output, price))
        return asked

    def cost(self, reply: ModelReply) -> Decimal | None:
        """Return what an answer cost; None when unknown.

        What its server says that it took comes before any price, and that is the price of whoever gave it.
        """
        if reply.cost is not None:
            return reply.cost
        by = reply.answered_by
        price = self._asked if by is None else self._others.get(by)
        return cost_of(reply.usage, price)

    def unsettled(self, reply: ModelReply, prompt: int, output: int) -> Estimate | None:
        """Return the worst case of the tries before an answer that may have been billed.

        Which ones they were is not told: the dearest stand for them.
        """
        if not reply.unsettled:
            return None
        prices = [price for title, price in self._others.items() if title != reply.answered_by]
        worst = [_worst(prompt, output, price) for price in (self._asked, *prices)]
        worst.sort(key=lambda one: one.usd or Decimal(0), reverse=True)
        total = worst[0]
        for one in worst[1 : reply.unsettled]:
            total = _added(total, one)
        return total


def _worst(prompt: int, output: int, price: Price | None) -> Estimate:
    usd = None if price is None else worst_cost(prompt, output, price)
    return _estimate(tokens=prompt + output, usd=usd)


def _added(one: Estimate, other: Estimate) -> Estimate:
    """Return both together; the known part of the price where one is unknown."""
    known = [usd for usd in (one.usd, other.usd) if usd is not None]
    usd = sum(known, Decimal(0)) if known else None
    return _estimate(tokens=one.tokens + other.tokens, usd=usd)
