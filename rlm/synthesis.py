"""How the answers to parts become one: a function, a plain join, or a model that merges.

Arithmetic and aggregation belong to a function: a model that adds is wrong too often to be read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from executors.ids import NodeId

__all__ = ["Strategy", "SynthesisInput", "Synthesize", "concat"]

Strategy = Literal["concat", "merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisInput:
    """What there is to put together."""

    task: str
    text: str
    """What the parent itself said last; "" where it had no turn."""
    results: Sequence[object]
    """What the parts answered, in their order; None for one that has nothing."""
    parts: Sequence[str]
    """Their tasks."""
    missing: Sequence[int]
    """Indices of those that did not come to their end; their results are the best they had."""
    node: NodeId
    data: Mapping[str, object]
    """The caller's own."""
    records: Sequence[Sequence[str]] = field(default=())
    """Ids of the records that each part was shown to read; none where it read none so."""


Synthesize = Strategy | Callable[[SynthesisInput], Awaitable[object] | object]


def concat(results: Sequence[object], shown: Callable[[object], str]) -> str:
    """Join results under their numbers, losing nothing."""
    return "\n\n".join(
        f"### Part {index + 1}\n{'' if value is None else shown(value)}"
        for index, value in enumerate(results)
    )
