"""What came of an action, made plain: whatever was reported, what it draws is a sound amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import islice
from typing import Final, cast

from executors.boundary import Returned, attempt_now, described
from executors.errors import Halted
from executors.gate.amounts import BEYOND, finite

__all__ = ["LONGEST_RESOURCE", "Result", "plain_result"]

_NANO: Final = Decimal("1e-9")
_COSTS: Final = ("cost_usd", "costUsd", "usd", "cost")
_ABSENT: Final = object()
_RESOURCES: Final = 64
"""Kinds of resources of one result; what stands behind them is a mistake of somebody's, or an attack."""
LONGEST_RESOURCE: Final = 100
"""Characters of a resource's name: what is longer counts under its beginning."""
_WORDS: Final = 500
"""Characters of an error's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an action used, beside what it gave. All amounts are finite and at least zero."""

    usd: Decimal = Decimal(0)
    """In steps of 1e-9; a tool that says nothing of a cost has none."""
    unpriced: bool = False
    """It cost something, and nobody knows how much: it adds nothing to the USD."""
    tokens: int = 0
    """All tiers together."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Units of the resources that a budget bounds by name."""
    error: str | None = None
    """What the action raised; it costs what it cost all the same."""


def plain_result(given: object) -> Result:
    """Return what was reported as sound amounts; nothing raises.

    A cost stands under `cost_usd` (or `costUsd`, `usd`, `cost`). One that is there and is no finite
    number, None included, is unpriced, and so is `pricing="unpriced"`. What is negative is zero:
    nobody earns by working. Tokens and counts that are no numbers are zero. A report that cannot be
    read is unpriced.
    """
    if isinstance(given, Result):
        return given
    try:
        read = attempt_now(_read, given)
    except Halted:  # raised by a report: no halt of ours
        return Result(unpriced=True)
    return cast("Result", read.value) if isinstance(read, Returned) else Result(unpriced=True)


def _read(given: object) -> Result:
    """Read each value once: a report may be of a class that answers differently each time."""
    report = dict(cast("Mapping[object, object]", given)) if isinstance(given, Mapping) else {}
    cost = next((report[name] for name in _COSTS if name in report), _ABSENT)
    usd = Decimal(0) if cost is _ABSENT else _usd(cost)
    error = report.get("error")
    return Result(
        usd=usd or Decimal(0),
        unpriced=usd is None or report.get("pricing") == "unpriced",
        tokens=_count(report.get("tokens")),
        counts=_counts(report.get("counts")),
        error=None if error is None else _said(error),
    )


def _usd(cost: object) -> Decimal | None:
    exact = finite(cost)
    if exact is None or exact > BEYOND:
        return None
    return max(Decimal(0), exact).quantize(_NANO, ROUND_HALF_EVEN)


def _count(given: object) -> int:
    exact = finite(given)
    return 0 if exact is None else int(min(max(Decimal(0), exact), Decimal(BEYOND)))


def _counts(given: object) -> dict[str, int]:
    if not isinstance(given, Mapping):
        return {}
    counts = cast("Mapping[object, object]", given)
    found: dict[str, int] = {}
    for name in islice(counts, _RESOURCES):
        units = _count(counts[name])
        if type(name) is str and units:
            short = name[:LONGEST_RESOURCE]
            found[short] = found.get(short, 0) + units
    return found


def _said(error: object) -> str:
    if isinstance(error, BaseException):
        return described(error)
    return error[:_WORDS] if type(error) is str else type(error).__name__
