"""Plans against bare asyncio: many steps at zero latency, and a graph whose ways differ in length."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from statistics import median

from planner.plan import Plan, Step
from planner.running import run_plan
from tests.bench.row import Row

__all__ = ["rows"]

_STEPS = 50_000
_AT_ONCE = 64
_RUNS = 3
_LATENCY = 0.005


def _independent(count: int) -> Plan:
    return Plan(steps=tuple(Step(id=f"s{n}", action="x") for n in range(count)))


def _layered(count: int, width: int) -> Plan:
    """Return steps of which each waits for two of the layer before."""
    return Plan(
        steps=tuple(
            Step(
                id=f"s{n}",
                action="x",
                depends_on=(f"s{n - width}", f"s{n - width + 1}") if n >= width else (),
            )
            for n in range(count)
        )
    )


def _chain(count: int) -> Plan:
    waits = [(f"s{n - 1}",) if n else () for n in range(count)]
    return Plan(
        steps=tuple(Step(id=f"s{n}", action="x", depends_on=w) for n, w in enumerate(waits))
    )


def _skewed() -> Plan:
    """Return chains of very different lengths that one last step waits for: waves would idle."""
    steps: list[Step] = []
    ends: list[str] = []
    for chain in range(40):
        before: tuple[str, ...] = ()
        for link in range(1 + chain * 2 % 27):
            steps.append(Step(id=f"c{chain}.{link}", action="x", depends_on=before))
            before = (steps[-1].id,)
        ends += before
    steps.append(Step(id="end", action="x", depends_on=tuple(ends)))
    return Plan(steps=tuple(steps))


async def _nothing(step: Step) -> str:
    return step.id


async def _bare(steps: Sequence[Step], work: Callable[[Step], Awaitable[str]], cap: int) -> int:
    """Do the same with queue, counts and workers of bare asyncio: keeps every place busy."""
    missing = {step.id: len(step.depends_on) for step in steps}
    after: dict[str, list[Step]] = {}
    for step in steps:
        for needed in step.depends_on:
            after.setdefault(needed, []).append(step)
    free = deque(step for step in steps if not step.depends_on)
    results: dict[str, str] = {}
    changed = asyncio.Condition()

    async def worker() -> None:
        while True:
            if not free:
                async with changed:
                    await changed.wait_for(lambda: free or len(results) == len(steps))
                if not free:
                    return
            step = free.popleft()
            results[step.id] = await work(step)
            for waiting in after.get(step.id, ()):
                missing[waiting.id] -= 1
                if not missing[waiting.id]:
                    free.append(waiting)
            if free or len(results) == len(steps):
                async with changed:
                    changed.notify_all()

    async with asyncio.TaskGroup() as group:
        for _ in range(cap):
            group.create_task(worker())
    return len(results)


def _seconds(run: Callable[[], object]) -> float:
    spent: list[float] = []
    for _ in range(_RUNS):
        gc.collect()
        started = time.perf_counter()
        run()
        spent.append(time.perf_counter() - started)
    return median(spent)


def _many(name: str, make: Callable[[], Plan]) -> Row:
    plan = make()

    def ours() -> None:
        results = asyncio.run(run_plan(make(), _nothing, concurrency=_AT_ONCE))
        assert len(results) == _STEPS

    return Row(
        name=f"{_STEPS:,} steps, {name}, no latency, plan made and checked",
        ours=_seconds(ours),
        floor=_seconds(lambda: asyncio.run(_bare(plan.steps, _nothing, _AT_ONCE))),
        unit="s",
        bar=2.0,
        note=f"{_AT_ONCE} at once; floor: bare asyncio workers",
    )


def _linear() -> Row:
    small = _layered(_STEPS // 10, 100)
    large = _layered(_STEPS, 100)

    def run(plan: Plan) -> float:
        return _seconds(lambda: asyncio.run(run_plan(plan, _nothing, concurrency=_AT_ONCE)))

    return Row(
        name="ten times the steps: time for each step",
        ours=run(large) / 10,
        floor=run(small),
        unit="s",
        bar=1.6,
        relative=True,
        note="1.0 is linear",
    )


def _uneven() -> Row:
    plan = _skewed()

    async def work(step: Step) -> str:
        await asyncio.sleep(_LATENCY * (1 + len(step.id) % 3))
        return step.id

    return Row(
        name=f"{len(plan)} steps in chains of 1 to 27, 5 to 15 ms each, 8 at once",
        ours=_seconds(lambda: asyncio.run(run_plan(plan, work, concurrency=8))),
        floor=_seconds(lambda: asyncio.run(_bare(plan.steps, work, 8))),
        unit="s",
        bar=1.1,
        relative=True,
        note="floor: a work-conserving pool",
    )


def rows() -> list[Row]:
    """Measure plans."""
    return [
        _many("independent", lambda: _independent(_STEPS)),
        _many("in layers of 100", lambda: _layered(_STEPS, 100)),
        _many("one chain", lambda: _chain(_STEPS)),
        _linear(),
        _uneven(),
    ]
