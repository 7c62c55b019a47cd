"""Leaves: nodes that hand nothing on. With a sensor they try again until it is satisfied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from executors.errors import Halted
from executors.loop.worked import Finished
from executors.tools.base import Tool
from rlm.checks.arbiters import Broken
from rlm.checks.prompts import critique_note, rejected_note
from rlm.checks.refinement import Attempt, LeafRefinement, Refined, RefineLeaf, refine_leaf
from rlm.checks.sensors.base import SensorContext
from rlm.events import LeafTried
from rlm.recursions.forest import Forest
from rlm.recursions.remembering import SensorMemory
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of
from rlm.recursions.spec import Spec
from rlm.recursions.worker import blocked_of, run_worker

__all__ = ["UNSENSED", "run_leaf"]

UNSENSED: Final = (
    "no sensor looks at a worker that may hand parts on, also where it hands on none; "
    "max_depth=0 (--max-depth 0) makes a leaf of it"
)
"""Said where a sensor was given, and a worker might have been taken for a leaf."""

Tools = Sequence[Tool] | Callable[[], Sequence[Tool]]


async def run_leaf(
    forest: Forest, spec: Spec, *, tools: Tools, shown: str | None = None
) -> NodeResult:
    """Let a worker do a leaf, once, or as often as its sensor lets it try.

    Args:
        shown: records for it to read, fenced.
    """
    if spec.options.refine_leaf is not None:
        return await _refined(forest, spec, spec.options.refine_leaf, tools=tools, shown=shown)
    worked = await run_worker(forest, spec, tools=tools, spawns=False, shown=shown)
    if isinstance(worked, Finished):
        return Answered(value=worked.text)
    blocked = blocked_of(forest, spec, worked)
    return Short(best=worked.text or None, blocked=blocked, missing=(spec.title,))


async def _refined(
    forest: Forest, spec: Spec, how: RefineLeaf, *, tools: Tools, shown: str | None
) -> NodeResult:
    async def attempt(
        index: int,
        temperature: float,
        critique: str | None,
        earlier: Sequence[tuple[str, str]],
        /,
    ) -> Attempt[Blocked]:
        worked = await run_worker(
            forest,
            spec,
            tools=tools,
            spawns=False,
            shown=shown,
            more=_again(critique, earlier),
            attempt=index,
            temperature=temperature,
        )
        return Attempt(
            text=worked.text,
            fault=None if isinstance(worked, Finished) else blocked_of(forest, spec, worked),
            temperature=worked.log.temperature,
            temperature_dropped=worked.log.temperature_dropped,
            usage=worked.log.usage,
        )

    context = SensorContext(
        task=spec.task,
        context=spec.options.context,
        contract=spec.options.contract,
        node=spec.node,
    )
    memory = SensorMemory(forest, spec)
    found = await refine_leaf(how, attempt, context, memory=memory)
    _told(forest, spec, found.receipt)
    if isinstance(found, Refined):
        return Answered(value=found.text, verdict=found.verdict, checked=True)
    blocked = _cause(forest, spec, found.cause)
    return Short(best=found.best, blocked=blocked, missing=(spec.title,))


def _cause(forest: Forest, spec: Spec, cause: Blocked | Broken | Halted) -> Blocked:
    match cause:
        case Blocked():
            return cause
        case Halted():
            forest.halt(cause)
            return Blocked(
                blocker=blocker_of(cause), detail=cause.what, node=spec.node, task=spec.task
            )
        case Broken(kind=kind, detail=detail):
            return Blocked(blocker=kind, detail=detail, node=spec.node, task=spec.task)


def _told(forest: Forest, spec: Spec, receipt: LeafRefinement) -> None:
    forest.log.emit(
        LeafTried(
            node=spec.node,
            at=forest.wiring.clock.now(),
            attempts=receipt.iterations,
            passed=receipt.passed,
            temperatures=receipt.temperatures,
            rejected_buffer=receipt.rejected_buffer,
        )
    )


def _again(critique: str | None, earlier: Sequence[tuple[str, str]]) -> str:
    """Return what an attempt is told of those before it: what was amiss, or what was turned down."""
    if earlier:
        return f"\n\n{rejected_note(earlier)}"
    return "" if critique is None else f"\n\n{critique_note(critique)}"
