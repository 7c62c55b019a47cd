"""What a sensor is: code that looks at a result and says whether it stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from executors.ids import NodeId

__all__ = ["Sensor", "SensorContext"]

_ROOT: Final = NodeId("root")


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorContext:
    """What a sensor may know besides the result."""

    task: str
    context: str | None = None
    """Facts of the caller's."""
    contract: str | None = None
    """The definition of done; a child has none."""
    node: NodeId = _ROOT
    attempt: int = 0
    """Of the leaf, from 0."""


Sensor = Callable[[str, SensorContext], object | Awaitable[object]]
"""Says of a result whether it stands: with a verdict of ours, a mapping, or an object with fields.

A plain function runs in a worker thread. It has to judge the text that it is given, never a file
that the worker could have written: whatever is read is what the worker learns to please.
"""
