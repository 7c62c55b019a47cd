"""Planning without a model: by the size of a corpus, or by how a task is written. Pure.

The same input gives the same plan everywhere, for nothing. What rules cannot do is understand: a
task in one sentence has no parts for them, and they say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from executors.errors import ValidationError
from planner.families import chunks
from planner.marks import LIST_ITEM
from planner.plan import Plan, PlanError, Step

__all__ = ["Slice", "plan_slices", "plan_task", "slices", "text_parts"]

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])\s+(?=\S)|(?<=[\u3002\uff01\uff1f\u061f\u0964])\s*(?=\S)|\n\s*\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Neighbours of a corpus: the records `start` to `stop`, the last one left out."""

    index: int
    of: int
    start: int
    stop: int
    tokens: int | None
    """None where nobody counted them."""

    @property
    def label(self) -> str:
        """What people read."""
        return f"part {self.index + 1} of {self.of} (records {self.start + 1} to {self.stop})"


def slices(
    size: int,
    *,
    width: int | None = None,
    items: int | None = None,
    tokens: int | None = None,
    weights: Sequence[int] | None = None,
) -> tuple[Slice, ...]:
    """Cut a corpus into contiguous slices, near-equal in records, or in tokens where these count.

    Args:
        size: records.
        width: slices, at least; as many as there are records at the most.
        items: records in a slice, at most.
        tokens: tokens in a slice, at most; a record that has more gets a slice of its own.
        weights: tokens of each record; needed for `tokens`, and then slices are near-equal in them.

    Raises:
        ValidationError: bounds below 1, weights of other records, or `tokens` without weights.
    """
    if weights is not None and len(weights) != size:
        raise ValidationError(f"{len(weights)} weight(s) for {size} record(s)")
    if tokens is not None and weights is None:
        raise ValidationError(f"tokens={tokens!r} without weights", hint="give the records' tokens")
    for name, bound in (("width", width), ("items", items), ("tokens", tokens)):
        if bound is not None and bound < 1:
            raise ValidationError(f"{name}={bound!r}", hint="give a whole number from 1 on")
    if size == 0:
        return ()
    wanted = max(width or 1, -(-size // items) if items else 1)
    if weights is None:
        parts = chunks(size, min(size, wanted))
    else:
        parts = _weighed(weights, min(size, wanted), items or size, tokens)
    return tuple(_slice(n, len(parts), part, weights) for n, part in enumerate(parts))


def _slice(index: int, of: int, part: range, weights: Sequence[int] | None) -> Slice:
    tokens = None if weights is None else sum(weights[part.start : part.stop])
    return Slice(index=index, of=of, start=part.start, stop=part.stop, tokens=tokens)


def _weighed(
    weights: Sequence[int], wanted: int, items: int, tokens: int | None
) -> tuple[range, ...]:
    """Return parts of about the same weight: each ends where its share of the whole is reached."""
    sums = [0, *accumulate(weights)]
    if tokens is not None:
        wanted = min(len(weights), max(wanted, -(-sums[-1] // tokens)))
    parts: list[range] = []
    start = 0
    while start < len(weights):
        left = max(1, wanted - len(parts))
        share = sums[start] + (sums[-1] - sums[start]) / left
        latest = min(len(weights) - (left - 1), start + items)
        stop = start + 1
        while stop < latest and _fits(sums, start, stop, share, tokens):
            stop += 1
        parts.append(range(start, stop))
        start = stop
    return tuple(parts)


def _fits(sums: Sequence[int], start: int, stop: int, share: float, tokens: int | None) -> bool:
    """Whether the record at `stop` is nearer to this share than the end before it."""
    if tokens is not None and sums[stop + 1] - sums[start] > tokens:
        return False
    return sums[stop + 1] - share <= share - sums[stop]


def plan_slices(task: str, parts: Sequence[Slice]) -> Plan:
    """Return the plan that does one task on each slice.

    Raises:
        PlanError: there are no slices.
    """
    return Plan(steps=tuple(Step(id=f"s{part.index + 1}", action=task) for part in parts))


def plan_task(task: str, *, count: int | None = None) -> Plan:
    """Take a task apart as it is written: by its list items, else by its sentences.

    Args:
        count: steps wanted; neighbours are put together where there are more parts.

    Raises:
        PlanError: "wrong-count" where the task has fewer parts than that.
    """
    preamble, parts = text_parts(task)
    if count is not None and len(parts) < count:
        raise PlanError(
            f"the task is written in {len(parts)} part(s), and {count} were asked for",
            kind="wrong-count",
            steps=[Step(id=f"s{n}", action=part) for n, part in enumerate(parts, 1)],
            hint="write it as a list, give a corpus to slice, or name a model that plans",
        )
    groups = chunks(len(parts), len(parts) if count is None else count)
    actions = ["\n".join([*preamble, *parts[group.start : group.stop]]) for group in groups]
    return Plan(steps=tuple(Step(id=f"s{n}", action=text) for n, text in enumerate(actions, 1)))


def text_parts(task: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what all parts of a task share, and its parts: list items, else sentences."""
    items = list(LIST_ITEM.finditer(task))
    if len(items) > 1:
        ends = [*(item.start() for item in items[1:]), len(task)]
        found = (task[item.end() : end].strip() for item, end in zip(items, ends, strict=True))
        return tuple(_said(task[: items[0].start()])), tuple(part for part in found if part)
    sentences = tuple(_sentences(task))
    return (), sentences or (task,)


def _said(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip()


def _sentences(task: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(task):
        yield from _said(part)
