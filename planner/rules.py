"""Planning without a model: a task is taken apart as it is written. Pure.

The same task gives the same plan everywhere, for nothing. What rules cannot do is understand: a
task in one sentence has no parts for them, and they say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from planner.families import chunks
from planner.marks import LIST_ITEM
from planner.plan import Plan, PlanError, Step

__all__ = ["plan_task", "text_parts"]

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])\s+(?=[^\sa-z])|(?<=[\u3002\uff01\uff1f\u061f\u0964])\s*(?=\S)|\n\s*\n"
)
# What stands flush left after a blank line is about the whole list, not about its last item.
_AFTERWORD: Final = re.compile(r"\n[ \t]*\n(?=\S)")


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
        if (afterword := _AFTERWORD.search(task, items[-1].end())) is not None:
            ends[-1] = afterword.start()
        shared = (*_said(task[: items[0].start()]), *_said(task[ends[-1] :]))
        return shared, tuple(task[i.end() : e].strip() for i, e in zip(items, ends, strict=True))
    return (), tuple(_sentences(task)) or (task,)


def _said(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip()


def _sentences(task: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(task):
        yield from _said(part)
