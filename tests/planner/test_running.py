"""Carrying out a plan: values for failures, hooks, retries, and what a halt leaves behind."""

import threading
import time
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from executors.clock import VirtualClock
from executors.errors import Halted, ServerFault, ValidationError
from planner.plan import Plan, PlanError, Step
from planner.results import (
    StepDone,
    StepFailed,
    StepResult,
    StepRetry,
    StepSkipped,
    is_passing,
)
from planner.running import run_plan

pytestmark = pytest.mark.anyio

HALT = Halted(bound="calls", scope="run", limit="1")


def steps(**waits: str) -> list[Step]:
    """Return steps by id with what each waits for, as words."""
    return [
        Step(id=id_, action=f"do {id_}", depends_on=tuple(on.split())) for id_, on in waits.items()
    ]


DIAMOND = steps(s1="", s2="s1", s3="s1", s4="s2 s3")


@dataclass
class Work:
    """Does steps, and fails as it is told to: an error for each try, None for one that holds."""

    errors: dict[str, list[Exception | None]] = field(
        default_factory=dict[str, list[Exception | None]]
    )
    begun: list[str] = field(default_factory=list[str])

    async def __call__(self, step: Step) -> str:
        self.begun.append(step.id)
        await anyio.lowlevel.checkpoint()
        left = self.errors.get(step.id, [])
        error = left.pop(0) if left else None
        if error is not None:
            raise error
        return step.action.upper()


@pytest.mark.case("R-150")
async def test_independent_steps_all_run_and_come_back_in_the_order_of_the_plan() -> None:
    clock = VirtualClock()

    async def do(step: Step) -> str:
        await clock.sleep({"a": 3.0, "b": 2.0, "c": 1.0}[step.id])
        return step.id

    given = steps(a="", b="", c="")
    results = await run_plan(given, do)
    assert results == [StepDone(step=step, value=step.id) for step in given]
    assert clock.monotonic() == 3.0


@pytest.mark.case("R-151", "R-152")
async def test_a_failed_step_is_a_value_and_what_waits_for_it_is_skipped() -> None:
    no = OSError("no")
    work = Work({"s2": [no]})
    given = [*DIAMOND, *steps(s5="s4")]
    results = await run_plan(given, work)
    assert results == [
        StepDone(step=given[0], value="DO S1"),
        StepFailed(step=given[1], error=no),
        StepDone(step=given[2], value="DO S3"),
        StepSkipped(step=given[3], dependency="s2", cause="s2"),
        StepSkipped(step=given[4], dependency="s4", cause="s2"),
    ]
    assert isinstance(skipped := results[3], StepSkipped)
    assert skipped.reason == "dependency 's2' failed"
    assert work.begun == ["s1", "s2", "s3"]


@pytest.mark.case("R-154")
async def test_waves_are_numbered_from_one_and_hold_their_steps() -> None:
    waves: list[tuple[int, list[str]]] = []
    await run_plan(
        DIAMOND, Work(), on_wave_start=lambda n, wave: waves.append((n, [s.id for s in wave]))
    )
    assert waves == [(1, ["s1"]), (2, ["s2", "s3"]), (3, ["s4"])]


@pytest.mark.case("R-155")
async def test_each_hook_is_called_once_a_step_and_states_are_mirrored() -> None:
    told: list[object] = []
    error = OSError("no")

    async def start(step: Step) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(("start", step.id))

    given = steps(a="", b="a", c="b")
    before = deepcopy(given)
    await run_plan(
        given,
        Work({"b": [error]}),
        concurrency=1,
        on_step_start=start,
        on_step_done=lambda step, value: told.append(("done", step.id, value)),
        on_step_fail=lambda step, failed: told.append(("fail", step.id, failed)),
        on_state=lambda step, state: told.append((step.id, state)),
    )
    assert told == [
        ("a", "running"), ("start", "a"), ("done", "a", "DO A"), ("a", "done"),
        ("b", "running"), ("start", "b"), ("fail", "b", error), ("b", "failed"), ("c", "skipped"),
    ]  # fmt: skip
    assert given == before


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        ("on_step_start", [(StepFailed, "a")]),
        ("on_step_done", [(StepDone, "a"), (StepDone, "b")]),
        ("on_step_fail", [(StepFailed, "a"), (StepDone, "b")]),
    ],
)
async def test_what_a_hook_raises_ends_the_plan_after_what_runs_and_loses_nothing(
    hook: str, told: list[tuple[type, str]]
) -> None:
    """A hook after the fact makes no failure of a step that was done, and paid for."""
    clock = VirtualClock()
    kept: list[StepResult[str]] = []
    fault = LookupError("no such hook")

    async def do(step: Step) -> str:
        await clock.sleep({"a": 1.0, "b": 5.0, "c": 0.0}[step.id])
        if step.id == "a" and hook == "on_step_fail":
            raise OSError
        return step.id

    def raises(step: Step, *_: object) -> None:
        if step.id == "a":
            raise fault

    options: dict[str, Any] = {hook: raises}
    with pytest.raises(LookupError) as caught:
        await run_plan(steps(a="", b="", c="b"), do, settle=kept.append, **options)
    assert caught.value is fault
    assert [(type(r), r.step.id) for r in kept] == told


@pytest.mark.case("R-149")
@pytest.mark.parametrize(
    ("given", "options", "error", "says"),
    [
        ("s1", {}, ValidationError, "steps='s1' is no list"),
        (None, {}, ValidationError, "steps=None"),
        ([{"id": "a"}], {}, ValidationError, "is no Step"),
        ([], {}, PlanError, "no steps"),
        ([*steps(a=""), *steps(a="")], {}, PlanError, "'a'"),
        (steps(a="z"), {}, PlanError, "'z'"),
        (DIAMOND, {"execute": None}, ValidationError, "execute=None"),
        (DIAMOND, {"concurrency": 0}, ValidationError, "concurrency=0"),
        (DIAMOND, {"concurrency": True}, ValidationError, "concurrency=True"),
        (DIAMOND, {"retry": 3}, ValidationError, "retry=3"),
        (DIAMOND, {"on_step_done": "x"}, ValidationError, "on_step_done='x' cannot be called"),
        (DIAMOND, {"on_wave_start": 3}, ValidationError, "on_wave_start=3 cannot be called"),
        (DIAMOND, {"on_state": anyio.sleep}, ValidationError, "on_state is asynchronous"),
        (DIAMOND, {"settle": anyio.sleep}, ValidationError, "settle is asynchronous"),
    ],
)
async def test_what_cannot_be_carried_out_is_refused_before_any_step(
    given: list[Step], options: dict[str, Any], error: type[Exception], says: str
) -> None:
    work = Work()
    with pytest.raises(error, match=says):
        await run_plan(given, options.pop("execute", work), **options)
    assert work.begun == []


@pytest.mark.case("R-070")
async def test_a_circle_is_refused_by_name() -> None:
    with pytest.raises(PlanError, match="a -> b -> a"):
        await run_plan(steps(a="b", b="a"), Work())


@pytest.mark.case("R-060")
async def test_a_halt_is_raised_and_what_was_done_has_been_told() -> None:
    """D9: what runs ends, nothing more starts, and no result is lost."""
    kept: list[StepResult[str]] = []
    work = Work({"b": [HALT]})
    given = steps(a="", b="a", c="a", d="c", e="b")
    with pytest.raises(Halted, match="the calls bound"):
        await run_plan(given, work, settle=kept.append, retry=StepRetry(when=lambda _: True))
    assert [(type(r), r.step.id) for r in kept] == [
        (StepDone, "a"), (StepFailed, "b"), (StepDone, "c"),
    ]  # fmt: skip
    assert work.begun == ["a", "b", "c"]


async def test_a_passing_fault_is_tried_again_after_a_wait_that_doubles() -> None:
    clock = VirtualClock()
    work = Work({"a": [TimeoutError(), ServerFault("busy"), None], "b": [OSError("no"), None]})
    done, failed = await run_plan(
        steps(a="", b=""), work, retry=StepRetry(attempts=3, wait=1.0), clock=clock
    )
    assert isinstance(done, StepDone)
    assert isinstance(failed, StepFailed)
    assert (work.begun.count("a"), work.begun.count("b"), clock.slept) == (3, 1, [1.0, 2.0])


async def test_tries_end_and_the_last_error_stands() -> None:
    work = Work({"a": [TimeoutError("1"), TimeoutError("2"), TimeoutError("3")]})
    failures: list[str] = []
    (failed,) = await run_plan(
        steps(a=""),
        work,
        retry=StepRetry(),
        on_step_fail=lambda _, error: failures.append(str(error)),
    )
    assert isinstance(failed, StepFailed)
    assert (str(failed.error), failures) == ("2", ["2"])


@pytest.mark.parametrize(
    ("error", "passes"),
    [(TimeoutError(), True), (ConnectionResetError(), True), (OSError(), False), (HALT, False)],
)
async def test_which_errors_pass(error: Exception, passes: bool) -> None:
    assert is_passing(error) is passes


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"attempts": 1.5},
        {"wait": -1.0},
        {"wait": float("nan")},
        {"wait": "2"},
        {"wait": True},
        {"when": 3},
    ],
)
async def test_a_retry_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StepRetry(**options)


@pytest.mark.case("R-151", "K9-4")
async def test_a_step_whose_own_wait_was_cancelled_has_failed_and_the_others_go_on() -> None:
    """Nobody cancelled the plan; a task or future that one step waited for was cancelled."""

    async def do(step: Step) -> str:
        if step.id == "a":
            raise anyio.get_cancelled_exc_class()
        return step.id

    for cap in (1, None):
        failed, skipped, done = await run_plan(steps(a="", b="a", c=""), do, concurrency=cap)
        assert isinstance(failed, StepFailed)
        assert "was cancelled" in str(failed.error)
        assert isinstance(skipped, StepSkipped)
        assert isinstance(done, StepDone)


async def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    threads: list[int] = []

    def do(step: Step) -> str:
        threads.append(threading.get_ident())
        return step.id

    (done,) = await run_plan(steps(a=""), do)
    assert done == StepDone(step=steps(a="")[0], value="a")
    assert threads != [threading.get_ident()]


async def test_a_plain_function_may_hand_out_what_is_to_be_awaited() -> None:
    work = Work()
    wrapped: Callable[[Step], Awaitable[str]] = lambda step: work(step)  # noqa: E731, PLW0108
    (done,) = await run_plan(steps(a=""), wrapped)
    assert done == StepDone(step=steps(a="")[0], value="DO A")


@pytest.mark.case("K9-2")
async def test_at_most_so_many_steps_run_at_once_over_all_waves() -> None:
    now = peak = 0

    async def do(step: Step) -> None:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await anyio.lowlevel.checkpoint()
        now -= 1

    many = [Step(id=f"r{n}", action="x") for n in range(50)]
    many += [Step(id=f"s{n}", action="x", depends_on=(f"r{n}",)) for n in range(50)]
    await run_plan(many, do, concurrency=4)
    assert peak == 4


async def test_fifty_thousand_steps_take_linear_time() -> None:
    async def do(step: Step) -> str:
        return step.id

    spent: list[float] = []
    for count in (5_000, 50_000):
        plan = Plan(
            steps=tuple(
                Step(id=f"s{n}", action="x", depends_on=(f"s{n - 100}",) if n >= 100 else ())
                for n in range(count)
            )
        )
        started = time.process_time()
        assert len(await run_plan(plan, do, concurrency=64)) == count
        spent.append(time.process_time() - started)
    assert spent[1] < 25 * spent[0]
