"""Partition: the size of the corpus decides how many work side by side, each on its own part."""

from __future__ import annotations

from executors.engine.local import Failed, Result, pull
from executors.errors import Halted
from planner.families import chunks, partition_widths
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

    async def work(child: Spec) -> None:
        with forest.log.node(child.node, child.title):
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
    if not lacking and halted is None:
        return Answered(value=result, checked=True)
    first = lacking[0] if lacking else spec
    blocked = Blocked(
        blocker="unresolved-records" if halted is None else blocker_of(halted),
        detail=f"{result.states['unresolved']:,} record(s) were never judged"
        if halted is None
        else halted.what,
        node=first.node,
        task=first.task,
    )
    missing = tuple(child.title for child in lacking) or (spec.title,)
    return Short(best=result, blocked=blocked, missing=missing)
