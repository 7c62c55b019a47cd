"""Partition: the size of the corpus decides how many work side by side, each on its own part."""

from __future__ import annotations

from executors.engine.local import Failed, Result, pull
from executors.errors import Halted
from planner.complexity import assess
from planner.families import chunks, partition_widths
from planner.routes import Route
from rlm.recursions.bounded import tell_assessed, tell_ended
from rlm.recursions.fanout import run_slices
from rlm.recursions.forest import Forest
from rlm.recursions.reading import room_to_read, slices
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of
from rlm.recursions.scanning import Scanning, unresolved_in
from rlm.recursions.spec import Spec

__all__ = ["partition"]


async def partition(forest: Forest, spec: Spec) -> NodeResult:
    """Split the corpus into parts and work on all of them; code counts what they found."""
    assert forest.spool is not None
    options, size = spec.options, len(forest.spool)
    width = partition_widths(size, floor=options.count or 1, budget=options.worker_budget).width
    if options.retrieval == "read":
        tokens = room_to_read(forest.models.worker, forest.room_for_answer(options.max_tokens))
        cut = slices(forest.spool, items=max(1, -(-size // width)), tokens=tokens)
        return await run_slices(forest, spec, cut, checkpoint="recurse_partition")
    blocked = await forest.checkpoint(
        "recurse_partition",
        {"width": width, "size": size},
        node=spec.node,
        depth=spec.depth,
        task=spec.task,
    )
    if blocked is not None:
        return Short(best=None, blocked=blocked, missing=(spec.title,))
    return await _counted(forest, spec, chunks(size, width))


async def _counted(forest: Forest, spec: Spec, parts: tuple[range, ...]) -> NodeResult:
    judge = forest.models.judge
    if judge is None:
        return forest.no_judge(spec.node, spec.task)
    scanning = Scanning.by_model(forest, judge, spec.task, spec.options)
    forest.counting = scanning.tally
    at_once = min(len(parts), forest.wiring.concurrency)
    cap = -(-forest.wiring.concurrency // at_once)
    children = [
        spec.child(n, spec.task, name=f"partition {n + 1} of {len(parts)} ({len(part):,} items)")
        for n, part in enumerate(parts)
    ]
    failed: dict[int, Exception] = {}

    for child in children:
        forest.grow(child, origin="planned")

    complexity = assess(spec.task)
    route = Route(retrieval="scan", upgraded=False, reason="it judges its part of the corpus")

    async def work(child: Spec) -> None:
        with forest.log.node(child.node, child.title):
            tell_assessed(forest, child, complexity, "Slice", route)
            await scanning.run(child.node, records=parts[child.index], cap=cap)

    def settle(result: Result[Spec, None]) -> None:
        if isinstance(result, Failed):
            failed[result.item.index] = result.error

    try:
        await pull(children, work, cap=at_once, settle=settle, stop=forest.stop)
    except Halted as stopped:
        forest.halt(stopped)
    result = scanning.tally()
    lacking = [c for c in children if unresolved_in(result, parts[c.index]) or c.index in failed]
    halted = forest.halted
    for child in children:
        left = unresolved_in(result, parts[child.index])
        whole = Answered(value=None, checked=True)
        tell_ended(forest, child, _lacking(child, left, halted) if child in lacking else whole)
    if not lacking and halted is None:
        return Answered(value=result, checked=True)
    first = lacking[0] if lacking else spec
    blocked = _lacking(first, result.states["unresolved"], halted).blocked
    missing = tuple(child.title for child in lacking) or (spec.title,)
    return Short(best=result, blocked=blocked, missing=missing)


def _lacking(spec: Spec, unresolved: int, halted: Halted | None) -> Short:
    """Return what a part is of which some records were never judged."""
    blocked = Blocked(
        blocker="unresolved-records" if halted is None else blocker_of(halted),
        detail=f"{unresolved:,} record(s) were never judged" if halted is None else halted.what,
        node=spec.node,
        task=spec.task,
    )
    return Short(best=None, blocked=blocked, missing=(spec.title,))
