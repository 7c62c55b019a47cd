"""Bounds as people write them: whole numbers, USD, and infinity where no bound is wanted.

Zero is a bound like any other. Infinity (`inf`, or the text "inf" where a format has no such
number) has to be said; whoever says nothing gets a finite default.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Annotated, Final, cast

from pydantic import PlainSerializer, PlainValidator

__all__ = ["Bound", "Usd"]

_INFINITE = frozenset({"inf", "infinity"})
_MOST: Final = 2**63
_PLAIN: Final = re.compile(r"(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")


def _bound(given: object) -> float:
    if isinstance(given, str) and given.lower() in _INFINITE:
        return math.inf
    if isinstance(given, int) and given > _MOST:
        raise ValueError("it is larger than any bound: give inf for none")
    if _is_count(given) or (isinstance(given, float) and given == math.inf):
        return cast("float", given)
    raise ValueError(f"{given!r} is no bound: give a whole number >= 0, or inf for none")


def _is_count(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _usd(given: object) -> Decimal:
    try:
        if isinstance(given, bool) or not isinstance(given, int | float | str | Decimal):
            raise InvalidOperation
        if (
            isinstance(given, str)
            and given.lower() not in _INFINITE
            and not _PLAIN.fullmatch(given)
        ):
            raise InvalidOperation
        # The shortest text of a float is what was written: 0.1 is a tenth.
        usd = Decimal(repr(given) if isinstance(given, float) else given)
    except InvalidOperation:
        usd = Decimal("NaN")
    if usd.is_nan() or usd < 0:
        raise ValueError(f"{given!r} is no bound in USD: give a number >= 0, or inf for none")
    if usd.is_finite() and usd > _MOST:
        raise ValueError("it is larger than any bound: give inf for none")
    return usd


def _shown(bound: float) -> int | str:
    return "inf" if math.isinf(bound) else int(bound)


Bound = Annotated[
    float, PlainValidator(_bound), PlainSerializer(_shown, return_type=int | str, when_used="json")
]
"""A whole number (an `int`, never rounded), or infinity."""

Usd = Annotated[
    Decimal, PlainValidator(_usd), PlainSerializer(str, return_type=str, when_used="json")
]
"""An exact amount in USD, which may be infinite."""
