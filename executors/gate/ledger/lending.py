"""How much a block may grow, or why it may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from executors.gate.allowance import Estimate, Full
from executors.gate.config.budget import BudgetSection
from executors.gate.config.limits import LimitsSection
from executors.gate.ledger.amounts import DIMENSIONS, MOST, Amounts
from executors.gate.ledger.halts import Stop, no_room, stops, turns_stop, unpriced_stop
from executors.gate.ledger.state import State

__all__ = ["Caps", "Lending", "is_blind"]

Caps = Mapping[str, int | None]
"""The bounds that hold, by dimension; None is no bound."""

_CALLS: Final = 64
_SHARE: Final = 10
_AGAIN: Final = 0.05
"""Seconds after which to look whether another process has made room."""


class Lending:
    """The rules of lending, by the configuration.

    Args:
        prices_matter: a bound of USD was asked for, so that calls without a price go one at a time.
    """

    def __init__(
        self, budget: BudgetSection, limits: LimitsSection, *, prices_matter: bool
    ) -> None:
        self._budget = budget
        self._limits = limits
        self._prices_matter = prices_matter

    def is_free(self, caps: Caps) -> bool:
        """Say whether calls without a price go as they like: no bound of USD is meant for them."""
        bounded = caps["usd"] is not None
        return not (bounded and (self._prices_matter or self._budget.fail_closed_on_unpriced))

    def growth(
        self, state: State, caps: Caps, need: Estimate, free: Amounts, *, blind: bool
    ) -> Amounts | Full:
        """Return what a block grows by.

        Args:
            state: with what the block holds.
            need: the worst case of the next call.
            free: what the block holds beyond what is in flight; below zero after an overrun.
            blind: a call without a price is in flight.
        """
        unknown = is_blind(need) and not self.is_free(caps)
        for stop in stops(state, caps, self._budget, self._limits):
            # What costs nobody knows how much may draw on a bound of USD that is reached.
            if stop.for_all or (unknown and stop.dimension == "usd"):
                return Full(halted=stop.error, final=True)
        if unknown:
            if self._budget.fail_closed_on_unpriced:
                return Full(halted=unpriced_stop(state, caps).error, final=True)
            if blind or state.unpriced_elsewhere:
                again = None if blind else _AGAIN
                return Full(halted=unpriced_stop(state, caps).error, final=False, again=again)
        return self._grown(state, caps, Amounts.of(need), free)

    def _grown(self, state: State, caps: Caps, need: Amounts, free: Amounts) -> Amounts | Full:
        times = max(1, _CALLS // max(1, need.calls))
        more: list[int] = []
        for name, has, wants in zip(DIMENSIONS, free, need, strict=True):
            room = self._left(name, state, caps)
            lack = max(0, wants - has)
            if room is not None and lack > max(0, room):
                return self._full(name, state, caps, wants)
            share = MOST if room is None else room // _SHARE
            more.append(min(max(lack, min(share, wants * times) - has, 0), MOST))
        return Amounts(*more)

    def _left(self, name: str, state: State, caps: Caps) -> int | None:
        """Return what nobody used or holds."""
        held: int = getattr(state.held, name)
        cap = caps[name]
        left = None if cap is None else cap - state.used_of(name) - held
        if name != "calls" or self._limits.max_turns >= MOST:
            return left
        turns = int(self._limits.max_turns) - state.turns - held
        return turns if left is None else min(left, turns)

    def _full(self, name: str, state: State, caps: Caps, need: int) -> Full:
        cap = caps[name]
        used, held = state.used_of(name), getattr(state.held, name)
        if cap is not None and used + held + need > cap:
            stop, final = no_room(name, state, cap, need), used + need > cap
        else:
            stop = turns_stop(state, self._limits)
            final = state.turns + need > self._limits.max_turns
        return _waiting(stop, state, final=final)


def is_blind(need: Estimate) -> bool:
    """Say whether nobody knows what a call costs."""
    return need.usd is None and (need.calls > 0 or need.tokens > 0)


def _waiting(stop: Stop, state: State, *, final: bool) -> Full:
    again = _AGAIN if state.others and not final else None
    return Full(halted=stop.error, final=final, again=again)
