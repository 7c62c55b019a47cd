"""Numbers that somebody reported, told apart from what only looks like one."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

__all__ = ["BEYOND", "finite"]

BEYOND: Final = 10**15
"""No amount above this is believed, of USD or of anything that is counted."""


def finite(given: object) -> Decimal | None:
    """Return a finite number, or None for whatever is none.

    It is read by the methods of its base: those of a subclass may say anything.
    """
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        if int.bit_length(given) > 64:  # nobody's amount, and slow to make a Decimal of
            return Decimal(-1) if int.__lt__(given, 0) else Decimal(2 * BEYOND)
        return Decimal(int.__int__(given))
    if isinstance(given, float):
        exact = Decimal(float.__repr__(given))
    elif isinstance(given, Decimal):
        exact = Decimal(given)
    else:
        return None
    return exact if exact.is_finite() else None
