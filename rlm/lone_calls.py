"""A pipeline for calls that belong to no run: bounded and priced, and written down nowhere.

Within a run that a gate governs no call belongs to no run: who was given no pipeline of their own asks
through that of the run, and their tools pass its gate. It is found by the context of the task, since
judges are made by callers, before there is a run, and called by callers' functions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.gate.governor import Governor
from executors.models.prices import Price, PriceList, price_list

__all__ = ["Governed", "governed", "governed_by", "lone_calls", "run_or_lone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """What a run that is governed asks through."""

    calls: Calls
    governor: Governor


_GOVERNED: Final[ContextVar[Governed | None]] = ContextVar("governed", default=None)


def governed() -> Governed | None:
    """Return the governed run that this is a part of; None where it is of none."""
    return _GOVERNED.get()


@contextmanager
def governed_by(calls: Calls, governor: Governor | None) -> Generator[None]:
    """Make a run with a gate found by all that it calls."""
    found = None if governor is None else Governed(calls=calls, governor=governor)
    token = _GOVERNED.set(found)
    try:
        yield
    finally:
        _GOVERNED.reset(token)


def lone_calls(*, caps: Caps | None = None, prices: Price | PriceList | None = None) -> Calls:
    """Return a pipeline with bounds of its own.

    Args:
        caps: those of a run unless said otherwise.
        prices: None knows none, so that costs are unknown.
    """
    clock = SystemClock()
    allowance = CapsAllowance(caps or Caps(), clock, scope="these calls")
    return Calls(allowance=allowance, emit=_ignore, clock=clock, prices=price_list(prices))


def run_or_lone(lone: Callable[[], Calls]) -> Calls:
    """Return the pipeline of the governed run that this is a part of, or one of its own."""
    run = governed()
    return lone() if run is None else run.calls


def _ignore(event: Event) -> None:
    """Take an event of calls that keep no receipt."""
