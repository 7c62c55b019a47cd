"""How a run that was halted by a bound goes on: the command that raises it, as it is typed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from executors.errors import Halted

__all__ = ["raises", "told_how"]

_NAMES: Final = {
    "budget.maxCostUsd": "usd",
    "budget.maxTokens": "tokens",
    "budget.maxCalls": "calls",
}
_TIMES: Final = 2
_OPTION: Final = "--budget"
_ANOTHER: Final = "rlm resume RUN --gate FILE"
"""How the gate itself says that another configuration is needed."""


def told_how(halted: Halted, directory: Path, *, audit: bool = False) -> Halted:
    """Return a halt whose hint is the command for this run, where a budget of a gate is why.

    The bound in it is twice the one that was reached: a person who types it may say another.

    Args:
        audit: it is one, which goes on by its own command.
    """
    name = _NAMES.get(halted.bound)
    if name is not None:
        more = f"{_OPTION} {name}={_twice(halted.limit)}"
        again = _again(directory, audit=audit)
        halted.hint = f"raise it and go on with: {again} {more}; what was answered so far is kept"
    elif halted.hint is not None and _ANOTHER in halted.hint:
        halted.hint = halted.hint.replace(_ANOTHER, f"{_again(directory, audit=audit)} --gate FILE")
    return halted


def _again(directory: Path, *, audit: bool) -> str:
    named = shlex.quote(str(directory))
    return f"rlm audit DIR TASK --run {named}" if audit else f"rlm resume {named}"


def raises(lines: Sequence[str]) -> bool:
    """Whether what is said of an outcome holds such a command."""
    return any(f" {_OPTION} " in line for line in lines)


def _twice(said: str) -> str:
    """Return twice the bound that stands in "2 USD" or "3 of 2 USD"; 1 of none, or of nothing."""
    words = said.rpartition(" of ")[2].split()
    try:
        amount = Decimal(words[0].replace(",", "")) * _TIMES
    except (InvalidOperation, IndexError):
        return "1"
    return f"{amount.normalize():f}" if amount.is_finite() and amount > 0 else "1"
