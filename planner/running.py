"""Carrying out a plan: each step as soon as what it waits for is done, failures as values."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final, Generic, TypeVar, assert_never, cast, overload

from executors.clock import Clock, SystemClock
from executors.coroutines import is_async
from executors.engine.dag import DagResult, Skipped, run_dag
from executors.engine.local import Done, Failed
from executors.engine.stop import Stop
from executors.errors import Halted, InternalError, ValidationError
from executors.threads import to_its_end
from planner.plan import Plan, Step
from planner.results import (
    StepDone,
    StepFailed,
    StepResult,
    StepRetry,
    StepSkipped,
    StepState,
    is_count,
)

__all__ = ["run_plan"]

R = TypeVar("R")

Execute = Callable[[Step], Awaitable[R] | R]
OnWaveStart = Callable[[int, tuple[Step, ...]], Awaitable[None] | None]
OnStepStart = Callable[[Step], Awaitable[None] | None]
OnStepDone = Callable[[Step, R], Awaitable[None] | None]
OnStepFail = Callable[[Step, Exception], Awaitable[None] | None]
OnState = Callable[[Step, StepState], None]
_AT_ONCE: Final = ("on_state", "settle")
"""Hooks that are called and never waited for."""


@overload
async def run_plan(
    steps: Plan | Sequence[Step],
    execute: Callable[[Step], Awaitable[R]],
    *,
    concurrency: int | None = None,
    on_wave_start: OnWaveStart | None = None,
    on_step_start: OnStepStart | None = None,
    on_step_done: OnStepDone[R] | None = None,
    on_step_fail: OnStepFail | None = None,
    on_state: OnState | None = None,
    settle: Callable[[StepResult[R]], None] | None = None,
    retry: StepRetry | None = None,
    stop: Stop | None = None,
    clock: Clock | None = None,
) -> list[StepResult[R]]: ...
@overload
async def run_plan(
    steps: Plan | Sequence[Step],
    execute: Callable[[Step], R],
    *,
    concurrency: int | None = None,
    on_wave_start: OnWaveStart | None = None,
    on_step_start: OnStepStart | None = None,
    on_step_done: OnStepDone[R] | None = None,
    on_step_fail: OnStepFail | None = None,
    on_state: OnState | None = None,
    settle: Callable[[StepResult[R]], None] | None = None,
    retry: StepRetry | None = None,
    stop: Stop | None = None,
    clock: Clock | None = None,
) -> list[StepResult[R]]: ...
async def run_plan(
    steps: Plan | Sequence[Step],
    execute: Execute[R],
    *,
    concurrency: int | None = None,
    on_wave_start: OnWaveStart | None = None,
    on_step_start: OnStepStart | None = None,
    on_step_done: OnStepDone[R] | None = None,
    on_step_fail: OnStepFail | None = None,
    on_state: OnState | None = None,
    settle: Callable[[StepResult[R]], None] | None = None,
    retry: StepRetry | None = None,
    stop: Stop | None = None,
    clock: Clock | None = None,
) -> list[StepResult[R]]:
    """Do the steps of a plan and return what came of each, in the order of the plan.

    A step starts as soon as all it waits for is done and a place is free. A wave, the steps with
    equally long ways from the start, is something to look at and no barrier.

    Hooks run on the loop's thread and must not block it; async ones are waited for. What a hook of
    a step raises ends the plan: nothing more starts, what runs ends, then it is raised. What was
    done stays done. What `on_wave_start` raises ends it at once.

    Args:
        steps: a plan, or steps that make one.
        execute: does one step; a plain function runs in a worker thread.
        concurrency: steps at once; None is a thousand.
        on_wave_start: called with the number of a wave, from 1, and its steps, before any starts.
        on_step_start: called before each step that is begun.
        on_step_done: called with a step and its value.
        on_step_fail: called with a step and its error, after its last try; not for skipped steps.
        on_state: called with each state that a step comes into.
        settle: called with each result as soon as it is there: what a halt leaves behind.
        retry: for steps as a whole; None tries each once.
        stop: heeded while this runs.
        clock: where waits between tries are slept.

    Raises:
        PlanError: the steps make no plan.
        ValidationError: these are no steps, `execute` or a hook cannot be called, `on_state` or
            `settle` is asynchronous, or `concurrency` lets nothing through.
        Halted: a bound said stop; what was begun has ended, and `settle` was told of it.

    Example:
        >>> import anyio
        >>> steps = [Step(id="a", action="cut"), Step(id="b", action="glue", depends_on=("a",))]
        >>> async def do(step: Step) -> str:
        ...     return step.action.upper()
        >>> [result.value for result in anyio.run(run_plan, steps, do)]
        ['CUT', 'GLUE']
    """
    plan = steps if isinstance(steps, Plan) else Plan(steps=cast("tuple[Step, ...]", steps))
    told = {
        "on_wave_start": on_wave_start,
        "on_step_start": on_step_start,
        "on_step_done": on_step_done,
        "on_step_fail": on_step_fail,
        "on_state": on_state,
        "settle": settle,
    }
    _check(execute, concurrency, retry, told)
    named = {step.id: step for step in plan.steps}
    hooks = _Hooks(
        start=on_step_start,
        done=on_step_done,
        fail=on_step_fail,
        state=on_state,
        settle=settle,
    )
    runner = _Runner(named, execute, hooks, retry or StepRetry(attempts=1), clock or SystemClock())
    try:
        await run_dag(
            named,
            {},
            runner.work,
            cap=concurrency,
            settle=runner.settle,
            on_wave=None if on_wave_start is None else partial(_wave, named, on_wave_start),
            stop=stop,
            order=plan.order,
        )
    except Halted:
        if runner.raised is not None:
            raise runner.raised from None
        raise
    return [runner.results[id_] for id_ in named]


def _check(
    execute: object, concurrency: object, retry: object, hooks: Mapping[str, object]
) -> None:
    if not callable(execute):
        raise ValidationError(
            f"execute={execute!r} cannot be called"[:200],
            where="rlm.run_plan",
            hint="give a function of a step",
        )
    if concurrency is not None and not is_count(concurrency):
        raise ValidationError(
            f"concurrency={concurrency!r}", where="rlm.run_plan", hint="give 1 or more, or None"
        )
    if not isinstance(retry, StepRetry | None):
        raise ValidationError(
            f"retry={retry!r}"[:200],
            where="rlm.run_plan",
            hint="give StepRetry(attempts=…), or None",
        )
    for name, hook in hooks.items():
        if hook is None:
            continue
        if not callable(hook):
            raise ValidationError(
                f"{name}={hook!r} cannot be called"[:200],
                where="rlm.run_plan",
                hint="give a function",
            )
        if name in _AT_ONCE and is_async(hook):
            raise ValidationError(
                f"{name} is asynchronous, and nobody waits for it",
                where="rlm.run_plan",
                hint="give a plain function",
            )


async def _wave(
    named: dict[str, Step], tell: OnWaveStart, number: int, ids: tuple[str, ...]
) -> None:
    await _awaited(tell(number, tuple(named[id_] for id_ in ids)))


async def _awaited(told: Awaitable[None] | None) -> None:
    if told is not None:
        await told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hooks(Generic[R]):
    """What the caller wants to be told."""

    start: OnStepStart | None
    done: OnStepDone[R] | None
    fail: OnStepFail | None
    state: OnState | None
    settle: Callable[[StepResult[R]], None] | None


class _Runner(Generic[R]):
    """What happens to each step, and what came of it."""

    def __init__(
        self,
        named: dict[str, Step],
        execute: Execute[R],
        hooks: _Hooks[R],
        retry: StepRetry,
        clock: Clock,
    ) -> None:
        self._named = named
        self._execute = execute if is_async(execute) else partial(_in_thread, execute)
        self._hooks = hooks
        self._retry = retry
        self._clock = clock
        self._done: dict[str, R] = {}
        self.results: dict[str, StepResult[R]] = {}
        self.raised: Exception | None = None
        """What a hook raised first."""

    async def work(self, id_: str) -> R:
        """Do one step."""
        step, hooks = self._named[id_], self._hooks
        if hooks.state is not None:
            hooks.state(step, "running")
        if hooks.start is not None:
            await self._tell(partial(hooks.start, step))
        try:
            value = await self._tries(step)
        except Halted:
            raise
        except Exception as error:
            if hooks.fail is not None:
                await self._tell(partial(hooks.fail, step, error))
            raise
        if hooks.done is not None:
            self._done[id_] = value
            await self._tell(partial(hooks.done, step, value))
        return value

    async def _tell(self, hook: Callable[[], Awaitable[None] | None]) -> None:
        try:
            await _awaited(hook())
        except Halted:
            raise
        except Exception as error:
            self.raised = self.raised or error
            raise

    async def _tries(self, step: Step) -> R:
        retry, wait = self._retry, self._retry.wait
        for attempt in count(1):
            try:
                return await cast("Awaitable[R]", self._execute(step))
            except Halted:
                raise
            except Exception as error:
                if attempt < retry.attempts and retry.when(error):
                    await self._clock.sleep(wait)
                    wait *= 2
                    continue
                raise
        raise InternalError("counting has ended")

    def settle(self, result: DagResult[R]) -> None:
        """Keep a result, and tell of it.

        Raises:
            Halted: a hook has raised.
        """
        kept, state = self._kept(result)
        self.results[kept.step.id] = kept
        if self._hooks.state is not None:
            self._hooks.state(kept.step, state)
        if self._hooks.settle is not None:
            self._hooks.settle(kept)
        if self.raised is not None:
            raise Halted(bound="hooks", scope="plan", limit=type(self.raised).__name__)

    def _kept(self, result: DagResult[R]) -> tuple[StepResult[R], StepState]:
        match result:
            case Done(item=id_, value=value):
                return StepDone(step=self._named[id_], value=value), "done"
            case Failed(item=id_) if id_ in self._done:  # it was, and then its hook raised
                return StepDone(step=self._named[id_], value=self._done[id_]), "done"
            case Failed(item=id_, error=error):
                return StepFailed(step=self._named[id_], error=error), "failed"
            case Skipped(item=id_, dependency=dependency, cause=cause):
                step = self._named[id_]
                return StepSkipped(step=step, dependency=dependency, cause=cause), "skipped"
            case _:
                assert_never(result)


async def _in_thread(execute: Execute[R], step: Step) -> R:
    made = await to_its_end(partial(execute, step))
    if inspect.isawaitable(made):  # a plain function that hands out what is to be awaited
        return await cast("Awaitable[R]", made)
    return made
