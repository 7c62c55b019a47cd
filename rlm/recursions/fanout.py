"""Forced fan-out: so many independent children, planned before any of them runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from executors.characters import sound
from executors.engine.local import Done, Failed, Result, pull
from executors.errors import Halted, ModelError
from planner.complexity import assess
from planner.plan import Plan, PlanError, PlanFault
from planner.routes import Route
from planner.rules import plan_task
from planner.steps import MOST_STEPS, ModelPlanner
from rlm.outcome import Blocker
from rlm.recursions.bounded import bounded, tell_assessed
from rlm.recursions.forest import Forest
from rlm.recursions.joining import join, partial_of, turned_down
from rlm.recursions.leaves import run_leaf
from rlm.recursions.reading import Slice, equal_slices, named, room_to_read
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of, first_blocked
from rlm.recursions.spec import Spec

__all__ = ["fan_out", "run_children", "run_slices"]

_PLAN_TOKENS: Final = 4_096
_STEP_TOKENS: Final = 64
Run = Callable[[Forest, Spec], Awaitable[NodeResult]]

_BLOCKERS: Final[dict[PlanFault, Blocker]] = {
    "unparsable": "plan-unparsable",
    "empty": "plan-empty",
    "duplicate-ids": "plan-duplicate-ids",
    "unknown-dependency": "plan-unknown-dependency",
    "cycle": "plan-cycle",
    "too-many": "plan-wrong-count",
    "wrong-count": "plan-wrong-count",
    "truncated": "truncated",
    "refused": "refused",
}


async def fan_out(forest: Forest, spec: Spec, *, count: int, run: Run) -> NodeResult:
    """Let `count` children work side by side, and put together what they answer."""
    if forest.spool is not None and spec.depth == 0:
        return await _over_corpus(forest, spec, count=count)
    blocked = await forest.checkpoint(  # before the planner is asked, which gives as many
        "recurse_fanout", {"count": count}, node=spec.node, depth=spec.depth, task=spec.task
    )
    if blocked is not None:
        return Short(best=None, blocked=blocked, missing=(spec.title,))
    children = await _planned(forest, spec, count=count)
    if isinstance(children, Short):
        return children
    return await _joined(forest, spec, await run_children(forest, children, run))


async def _planned(forest: Forest, spec: Spec, *, count: int) -> list[Spec] | Short:
    try:
        plan = await _plan(forest, spec, count)
    except PlanError as fault:
        blocked = Blocked(
            blocker=_BLOCKERS[fault.kind], detail=_said(fault), node=spec.node, task=spec.task
        )
        steps = "\n".join(f"- {step.action}" for step in fault.steps)
        return Short(best=steps or None, blocked=blocked, missing=(spec.title,))
    return [spec.child(index, sound(step.action)) for index, step in enumerate(plan.steps)]


def _said(fault: PlanError) -> str:
    return fault.what if fault.hint is None else f"{fault.what}: {fault.hint}"


async def _plan(forest: Forest, spec: Spec, count: int) -> Plan:
    if forest.models.planner is None or spec.options.planner_rules:
        forest.note("the task was taken apart by rules, as it is written")
        return plan_task(spec.task, count=count)
    planner = ModelPlanner(
        calls=forest.calls,
        model=forest.models.planner,
        cache=forest.wiring.plan_cache,
        most=max(MOST_STEPS, count),
        max_tokens=max(_PLAN_TOKENS, count * _STEP_TOKENS),
    )
    planned = await planner.plan(
        spec.task, node=spec.node, info=spec.options.context, count=count, ordinal=spec.index
    )
    return planned.plan


async def _over_corpus(forest: Forest, spec: Spec, *, count: int) -> NodeResult:
    """Give each child a slice of the corpus to read, cut by rules."""
    assert forest.spool is not None
    tokens = room_to_read(forest.models.worker, forest.room_for_answer(spec.options.max_tokens))
    cut = equal_slices(forest.spool, count, tokens=tokens)
    forest.note("the corpus was sliced by rules, in its order")
    return await run_slices(forest, spec, cut, checkpoint="recurse_fanout")


async def run_slices(
    forest: Forest, spec: Spec, cut: list[Slice], *, checkpoint: str
) -> NodeResult:
    """Let one leaf read each slice, and put together what they answer."""
    arguments = {"count": len(cut), "width": len(cut)}
    blocked = await forest.checkpoint(
        checkpoint, dict(arguments), node=spec.node, depth=spec.depth, task=spec.task
    )
    if blocked is not None:
        return Short(best=None, blocked=blocked, missing=(spec.title,))
    children = [
        spec.child(n, spec.task, name=f"{n + 1} of {len(cut)}: {named(one.ids)}", ids=one.ids)
        for n, one in enumerate(cut)
    ]
    complexity = assess(spec.task)
    route = Route(retrieval="read", upgraded=False, reason="it reads its slice of the corpus")
    shown = {child.node: one for child, one in zip(children, cut, strict=True)}

    async def leaf(forest: Forest, child: Spec) -> NodeResult:
        async def work() -> NodeResult:
            tell_assessed(forest, child, complexity, "Slice", route)
            async with forest.slot():
                return await run_leaf(
                    forest, child, tools=child.options.tools, shown=shown[child.node].shown
                )

        return await bounded(forest, child, work)

    return await _joined(forest, spec, await run_children(forest, children, leaf))


async def run_children(
    forest: Forest, children: list[Spec], run: Run
) -> list[tuple[Spec, NodeResult]]:
    """Run children, as many at once as the tree has places; a halt leaves the rest undone."""
    done: dict[int, NodeResult] = {}
    for child in children:
        forest.grow(child, origin="planned")

    def settle(result: Result[Spec, NodeResult]) -> None:
        match result:
            case Done(item=child, value=value):
                done[child.index] = value
            case Failed(item=child, error=error):
                done[child.index] = _fault(forest, child, error)

    async def work(child: Spec) -> NodeResult:
        return await run(forest, child)

    try:
        await pull(children, work, cap=forest.wiring.concurrency, settle=settle, stop=forest.stop)
    except Halted as halted:
        forest.halt(halted)
    return [(child, done.get(child.index) or _never_run(forest, child)) for child in children]


def _never_run(forest: Forest, child: Spec) -> Short:
    """Return what a child is that a halt came before."""
    halted = forest.halted
    blocked = Blocked(
        blocker="interrupted" if halted is None else blocker_of(halted),
        detail="it never began" if halted is None else halted.what,
        node=child.node,
        task=child.task,
    )
    return Short(best=None, blocked=blocked, missing=(child.title,))


def _fault(forest: Forest, child: Spec, error: Exception) -> Short:
    if isinstance(error, Halted):
        forest.halt(error)
        return _never_run(forest, child)
    blocker: Blocker = "model-failed" if isinstance(error, ModelError) else "failed"
    blocked = Blocked(
        blocker=blocker, detail=f"{type(error).__name__}: {error}", node=child.node, task=child.task
    )
    return Short(best=None, blocked=blocked, missing=(child.title,))


async def _joined(forest: Forest, spec: Spec, results: list[tuple[Spec, NodeResult]]) -> NodeResult:
    """Put together what children answered; what one of them lacks, the whole lacks."""
    how = spec.options.synthesize or "concat"
    value = await join(forest, spec, results, how=how)
    short = [result for _, result in results if isinstance(result, Short)]
    lacking = tuple(child.title for child, result in results if isinstance(result, Short))
    if isinstance(value, Blocked):
        own = value.blocker == "broken-synthesis" or not short
        blocked = value if own else first_blocked(short)
        return Short(best=partial_of(results), blocked=blocked, missing=(spec.title, *lacking))
    if not short:
        # What a model merged is a text of its own, which no check has looked at.
        checked = how != "merge" and all(_checked(r) for _, r in results)
        return Answered(value=value, verdict=turned_down(results), checked=checked)
    best = value if callable(how) or partial_of(results) is not None else None
    return Short(best=best, blocked=first_blocked(short), missing=lacking)


def _checked(result: NodeResult) -> bool:
    return isinstance(result, Answered) and result.checked
