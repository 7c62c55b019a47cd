"""Who decides how a task is taken apart: its worker, a number, or the size of a corpus. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from executors.errors import ValidationError
from planner.complexity import Complexity, Level
from planner.results import is_count

__all__ = [
    "TIERS",
    "WORKER_BUDGET",
    "Family",
    "FanOut",
    "Mode",
    "ModelDriven",
    "Partition",
    "Widths",
    "chunks",
    "family_of",
    "partition_widths",
]

Mode = Literal["fanout", "partition"]

TIERS: Final[Mapping[Level, int]] = MappingProxyType(
    {"simple": 1, "medium": 2, "complex": 4, "critical": 6}
)
"""Workers of a fan-out that names no count, by what its task looks like."""
WORKER_BUDGET: Final = 100
"""Records that one worker of a partition reads, unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDriven:
    """The worker decides: it may hand out parts of its task, and need not."""

    may_spawn: bool
    """False for a task so plain that its worker is not even offered to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """Exactly so many independent workers, each with a part of the task."""

    count: int
    derived: bool
    """The count comes from the task's tier: nobody named one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The same task over contiguous parts of a corpus."""

    floor: int
    """At least so many parts, as far as there are records."""
    worker_budget: int
    """At most so many records in a part."""


Family = ModelDriven | FanOut | Partition


def family_of(
    complexity: Complexity,
    *,
    mode: str | None = None,
    count: int | None = None,
    worker_budget: int = WORKER_BUDGET,
) -> Family:
    """Choose the family of a task.

    Args:
        complexity: of the task; decides whether a worker may spawn, and a count that nobody named.
        mode: "fanout" or "partition"; None is a fan-out where a count is named.
        count: parts; the floor of a partition.
        worker_budget: records for each worker of a partition.

    Raises:
        ValidationError: a mode that does not exist, or a number that is no whole one from 1 on.
    """
    if mode is not None and mode not in get_args(Mode):
        raise ValidationError(
            f"mode={mode!r}", hint=f"choose one of {', '.join(get_args(Mode))}, or None"
        )
    if count is not None:
        _require_count("count", count)
    _require_count("worker_budget", worker_budget)
    if mode == "partition":
        return Partition(floor=count or 1, worker_budget=worker_budget)
    if count is not None:
        return FanOut(count=count, derived=False)
    if mode == "fanout":
        return FanOut(count=TIERS[complexity.level], derived=True)
    return ModelDriven(may_spawn=complexity.needs_planning)


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """How many parts a corpus is cut into, and why so many."""

    size: int
    """Records."""
    data: int
    """Parts that the budget asks for."""
    floor: int
    width: int
    """The larger of both, and never more than there are records."""


def partition_widths(size: int, *, floor: int = 1, budget: int = WORKER_BUDGET) -> Widths:
    """Return the widths of a partition.

    Raises:
        ValidationError: a number that is no whole one from 1 on; a size may be 0.
    """
    if size != 0:
        _require_count("size", size)
    _require_count("floor", floor)
    _require_count("budget", budget)
    data = -(-size // budget)
    return Widths(size=size, data=data, floor=floor, width=min(max(floor, data), size))


def chunks(size: int, width: int) -> tuple[range, ...]:
    """Cut `size` places into `width` contiguous parts; sizes differ by one at most, long ones first.

    Example:
        >>> [len(part) for part in chunks(11, 3)]
        [4, 4, 3]

    Raises:
        ValidationError: parts without a place in them.
    """
    if not 0 <= width <= size or (size and not width):
        raise ValidationError(
            f"{size} record(s) make no {width} part(s)", hint=f"give a width from 1 to {size}"
        )
    parts: list[range] = []
    start = 0
    for left in range(width, 0, -1):
        stop = start + -(-(size - start) // left)
        parts.append(range(start, stop))
        start = stop
    return tuple(parts)


def _require_count(name: str, value: object) -> None:
    if not is_count(value):
        raise ValidationError(f"{name}={value!r}", hint="give a whole number from 1 on")
