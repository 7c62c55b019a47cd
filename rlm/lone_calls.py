"""A pipeline for calls that belong to no run: bounded and priced, and written down nowhere."""

from __future__ import annotations

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.models.prices import Price, PriceList, price_list

__all__ = ["lone_calls"]


def lone_calls(*, caps: Caps | None = None, prices: Price | PriceList | None = None) -> Calls:
    """Return a pipeline with bounds of its own.

    Args:
        caps: those of a run unless said otherwise.
        prices: None knows none, so that costs are unknown.
    """
    clock = SystemClock()
    allowance = CapsAllowance(caps or Caps(), clock, scope="these calls")
    return Calls(allowance=allowance, emit=_ignore, clock=clock, prices=price_list(prices))


def _ignore(event: Event) -> None:
    """Take an event of calls that keep no receipt."""
