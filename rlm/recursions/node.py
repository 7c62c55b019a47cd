"""One node: which way it goes, who checks what came out, and what of it goes up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from executors.loop.worked import Finished
from executors.tools.base import Tool
from planner.complexity import Complexity, assess
from planner.families import FanOut, ModelDriven, Partition, family_of
from planner.routes import Route
from rlm.recursions.bounded import bounded, tell_assessed
from rlm.recursions.fanout import fan_out
from rlm.recursions.forest import Forest
from rlm.recursions.joining import join, partial_of, turned_down
from rlm.recursions.leaves import UNSENSED, run_leaf
from rlm.recursions.looking import Looking, choose_route, route_of_parts
from rlm.recursions.offering import offered
from rlm.recursions.partition import partition
from rlm.recursions.results import (
    Answered,
    Blocked,
    NodeResult,
    Short,
    blocker_of,
    first_blocked,
)
from rlm.recursions.spawning import Brood
from rlm.recursions.spec import Spec
from rlm.recursions.verifying import verified
from rlm.recursions.worker import blocked_of, run_worker

__all__ = ["run_node"]


async def run_node(forest: Forest, spec: Spec) -> NodeResult:
    """Do the task of a node, by itself or through children; never raises for what went wrong."""

    async def work() -> NodeResult:
        if forest.halted is not None:
            raise forest.halted
        complexity = assess(spec.task)
        route = choose_route(forest, spec)
        family = family_of(complexity, mode=spec.options.mode, count=spec.options.count)
        if forest.spool is not None and spec.depth == 0 and not isinstance(family, ModelDriven):
            route = route_of_parts(family, spec.options)
        tell_assessed(forest, spec, complexity, type(family).__name__, route)
        match family:
            case Partition():
                result = await partition(forest, spec)
            case FanOut(count=count):
                result = await fan_out(forest, spec, count=count, run=run_node)
            case ModelDriven():
                result = await _driven(forest, spec, complexity, route)
        return await verified(forest, spec, result, critical=complexity.level == "critical")

    return await bounded(forest, spec, work)


# ---------------------------------------------------------------- the model decides


async def _driven(forest: Forest, spec: Spec, complexity: Complexity, route: Route) -> NodeResult:
    looking = Looking(forest, spec, route)
    if (found := await looking.alone()) is not None:
        return found
    tools, records = looking.with_tools(spec.options.tools), await looking.shown()
    spawns = complexity.needs_planning and spec.depth < spec.options.max_depth and forest.can_plan
    if not spawns:
        async with forest.slot():
            return looking.held_against(await run_leaf(forest, spec, tools=tools, shown=records))
    return looking.held_against(await _spawning(forest, spec, tools, records))


async def _spawning(
    forest: Forest,
    spec: Spec,
    tools: Sequence[Tool] | Callable[[], Sequence[Tool]],
    records: str | None,
) -> NodeResult:
    async with forest.slot() as slot:
        brood = Brood(forest, spec, slot, run_node)
        mine = offered(tools, (brood.tool,), partial(forest.log.warn, spec.node))
        worked = await run_worker(forest, spec, tools=mine, spawns=True, shown=records)
    children = brood.in_order
    if not children and spec.options.refine_leaf is not None:
        forest.note(UNSENSED)
    short = [result for _, result in children if isinstance(result, Short)]
    if not isinstance(worked, Finished):
        blocked = brood.refused if worked.reason == "rounds" else None
        best = worked.text or partial_of(children)
        missing = (spec.title, *(child.title for child, r in children if isinstance(r, Short)))
        return Short(
            best=best, blocked=blocked or blocked_of(forest, spec, worked), missing=missing
        )
    value: object | Blocked = worked.text
    if children and spec.options.synthesize is not None:
        value = await join(forest, spec, children, how=spec.options.synthesize, text=worked.text)
    if isinstance(value, Blocked):
        return Short(best=worked.text, blocked=value, missing=(spec.title,))
    lacking = tuple(child.title for child, result in children if isinstance(result, Short))
    if forest.halted is not None and not short:
        return _short_by_halt(forest, spec, value)
    if short:
        return Short(best=value, blocked=first_blocked(short), missing=lacking)
    if brood.refused is not None:
        return Short(best=value, blocked=brood.refused, missing=(brood.refused.task,))
    return Answered(value=value, verdict=turned_down(children))


def _short_by_halt(forest: Forest, spec: Spec, value: object) -> Short:
    assert forest.halted is not None
    blocked = Blocked(
        blocker=blocker_of(forest.halted),
        detail=forest.halted.what,
        node=spec.node,
        task=spec.task,
    )
    return Short(best=value, blocked=blocked, missing=(spec.title,))
