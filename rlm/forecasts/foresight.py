"""A bound that cannot suffice, told before anything is spent: by counting windows, not by a rehearsal."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from corpus.agenda import Agenda

__all__ = ["calls_needed", "too_few_calls"]


def calls_needed(agenda: Agenda, done: NDArray[np.bool_], *, items: int) -> int:
    """Return the least calls that judge what is left, where nothing goes wrong.

    Args:
        done: what needs none any more, by pass and ordinal.
        items: records of a call at most.
    """
    rows = zip(done, agenda.passes, strict=True)
    return sum(ceil(int((~row[ordinals]).sum()) / items) for row, ordinals in rows)


def too_few_calls(needed: int, *, bound: int, spent: int, session: int) -> str | None:
    """Return what a person should know of a bound on calls that is sure to halt; else None.

    Args:
        spent: calls of earlier sessions, which the bound counts too.
    """
    if needed <= bound - spent:
        return None
    more = f"{needed:,} calls are needed" if not spent else f"{needed:,} more calls are needed"
    return (
        f"the calls bound ({bound:,}) will halt this run in session {session}: about {more}; "
        "raise it with --max-calls (caps=Caps(calls=…))"
    )
