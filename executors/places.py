"""The place of a worker among its crew, and how it leaves it early.

A bound on work in flight is there for those who serve it: a model that answers so many at once. Who
has its answer and only waits until that is durable loads nobody, and would leave the place empty for
as long as the disk takes. So it steps aside, and another works there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

__all__ = ["place", "step_aside"]

_leave: ContextVar[Callable[[], None]] = ContextVar("place")


def place(leave: Callable[[], None]) -> None:
    """Have `leave` called when what runs in this task steps aside."""
    _leave.set(leave)


def step_aside() -> None:
    """Say that what runs in this task only waits for the disk, and asks nobody for anything."""
    leave = _leave.get(None)
    if leave is not None:
        leave()
