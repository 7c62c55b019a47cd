"""Leaves with a sensor of the caller's: tried again until it holds, and honest when it does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import cast as cast_as

import pytest

import rlm
from executors.messages import ModelReply, ModelRequest
from tests.rlm.trees import COMPLEX, SIMPLE, USAGE, asked, calls, cast, grade, said, task_of

pytestmark = pytest.mark.anyio

Sensor = Callable[[str, rlm.SensorContext], object]


def blocked(outcome: rlm.RecurseOutcome, blocker: str) -> rlm.Incomplete[object]:
    assert isinstance(outcome, rlm.Incomplete), outcome
    assert outcome.blocker == blocker, (outcome.blocker, outcome.missing)
    return outcome


def leaf(outcome: rlm.RecurseOutcome, node: str = "root") -> rlm.TaskReceipt:
    task = next(one.task for one in outcome.receipts.nodes if one.id == node)
    assert task is not None
    return task


def told(outcome: rlm.RecurseOutcome) -> str:
    return str(outcome.receipts.result["notes"])


def counting() -> Callable[[ModelRequest], ModelReply]:
    tries = iter(range(100))
    return lambda request: ModelReply(
        text=f"try {next(tries)}", stop="end", usage=USAGE, temperature=request.temperature
    )


def passes_at(number: int) -> Sensor:
    def sensor(text: str, context: rlm.SensorContext) -> object:
        assert context.task
        return {"pass": text == f"try {number}", "critique": f"not {text}"}

    return sensor


def refine(sensor: Sensor, **more: object) -> rlm.RefineLeaf:
    return rlm.RefineLeaf(sensor=sensor, **cast_as("dict[str, Any]", more))


@pytest.mark.case("R-106", "R-107")
async def test_a_leaf_tries_again_with_the_critique_at_rising_temperatures() -> None:
    model = cast(counting())
    outcome = await rlm.recurse(SIMPLE, model, refine_leaf=refine(passes_at(2)))
    assert isinstance(outcome, rlm.Completed)
    assert outcome.result == "try 2"
    assert isinstance(outcome.verdict, rlm.Satisfied)
    assert [request.temperature for request in model.requests] == [0.2, 0.7, 1.0]
    assert "not try 0" in task_of(model.requests[1])
    assert "try 0" not in task_of(model.requests[1]).replace("not try 0", "")
    found = leaf(outcome)
    assert (found.attempts, found.passed, found.temperatures) == (3, True, (0.2, 0.7, 1.0))


@pytest.mark.case("R-109", "R-110")
async def test_a_leaf_that_never_passes_is_an_answer_that_is_not_satisfactory() -> None:
    model = cast(counting())
    outcome = await rlm.recurse(SIMPLE, model, refine_leaf=refine(passes_at(9), max_iterations=2))
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.verdict, rlm.NeedsRevision)
    assert (leaf(outcome).attempts, leaf(outcome).passed) == (2, False)
    assert outcome.receipts.totals.input == 2 * 10


@pytest.mark.case("R-111", "R-114")
async def test_a_worker_that_may_hand_on_is_no_leaf() -> None:
    model = cast(counting())
    outcome = await rlm.recurse(COMPLEX, model, refine_leaf=refine(passes_at(9)))
    assert isinstance(outcome, rlm.Completed)
    assert model.calls == 1
    assert leaf(outcome).attempts is None
    assert "no sensor looks at a worker that may hand parts on" in told(outcome)
    plan = await rlm.plan_recursion(COMPLEX, model, refine_leaf=refine(passes_at(9)))
    assert any("no sensor looks" in note for note in plan.notes)


async def test_a_leaf_that_was_sensed_is_not_said_to_be_none() -> None:
    outcome = await rlm.recurse(SIMPLE, cast(counting()), refine_leaf=refine(passes_at(0)))
    assert "no sensor looks" not in told(outcome)


@pytest.mark.case("R-112", "R-117", "R-119")
@pytest.mark.parametrize(("buffer", "used"), [(None, True), (False, False)])
async def test_a_dropped_temperature_is_told_and_shows_what_was_rejected(
    buffer: bool | None, used: bool
) -> None:
    tries = iter(range(9))
    model = cast(lambda _: said(f"try {next(tries)}"))
    how = refine(passes_at(9), rejected_buffer=buffer)
    outcome = await rlm.recurse(SIMPLE, model, refine_leaf=how)
    found = leaf(outcome)
    assert found.temperatures == (None, None, None)
    assert found.rejected_buffer is used
    third = task_of(model.requests[2])
    assert ("try 0" in third and "try 1" in third) is used
    assert model.requests[1].temperature == (0.2 if used else 0.7)


@pytest.mark.case("R-115", "R-126")
async def test_a_halt_in_an_attempt_keeps_its_text() -> None:
    def sensor(*_: object) -> object:
        raise rlm.Halted(bound="mine", scope="test", limit="1")

    found = blocked(
        await rlm.recurse(SIMPLE, cast(counting()), refine_leaf=refine(sensor)), "halted"
    )
    assert found.best == "try 0"


@pytest.mark.case("R-116")
async def test_a_leaf_that_is_denied_is_never_judged() -> None:
    def never(*_: object) -> object:
        raise AssertionError("it was judged")

    def _look() -> str:
        """Look."""
        return "seen"

    wiring = rlm.Wiring(
        model=cast(lambda _: calls("_look", {})),
        policy=lambda _: rlm.Deny(rule="test", reason="no"),
    )
    outcome = await rlm.recurse(SIMPLE, wiring, tools=[rlm.tool(_look)], refine_leaf=refine(never))
    blocked(outcome, "governance-deny")


@pytest.mark.case("R-120", "R-121", "R-122", "K11-1")
@pytest.mark.parametrize(
    ("verdict", "attempts", "kind"),
    [
        ({"status": "failed"}, 1, rlm.Failed),
        ({"status": "satisfied"}, 1, rlm.Satisfied),
        ({"status": "needs_revision"}, 3, rlm.NeedsRevision),
        ({"pass": 1}, 1, rlm.Satisfied),
        ({"pass": "false"}, 3, rlm.NeedsRevision),
        ({"pass": "no"}, 3, rlm.NeedsRevision),
        ({"pass": 0}, 3, rlm.NeedsRevision),
    ],
)
async def test_what_a_sensor_says_is_read_by_the_table(
    verdict: dict[str, object], attempts: int, kind: type
) -> None:
    outcome = await rlm.recurse(
        SIMPLE, cast(counting()), refine_leaf=refine(lambda _text, _context: verdict)
    )
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.verdict, kind)
    assert leaf(outcome).attempts == attempts


class Thrown(Exception):
    def __init__(self) -> None:
        super().__init__({"code": "ENOENT", "path": "/x/y", "stdout": "secret output"})


def odd_key(_text: str, _context: rlm.SensorContext) -> object:
    return {"ok": True}


def odd_type(_text: str, _context: rlm.SensorContext) -> object:
    return "pass"


def raises(_text: str, _context: rlm.SensorContext) -> object:
    raise Thrown


def odd_pass(_text: str, _context: rlm.SensorContext) -> object:
    return {"pass": "false-ish"}


@pytest.mark.case("R-124", "R-125")
@pytest.mark.parametrize(
    ("sensor", "told", "untold"),
    [
        (odd_key, "ok", "True"),
        (odd_type, "str", "'pass'"),
        (raises, "code=ENOENT", "secret"),
        (odd_pass, "pass", "false-ish"),
    ],
)
async def test_a_broken_sensor_is_no_bad_model(sensor: Sensor, told: str, untold: str) -> None:
    model = cast(counting())
    found = blocked(await rlm.recurse(SIMPLE, model, refine_leaf=refine(sensor)), "broken-sensor")
    assert told in str(found.detail)
    assert untold not in str(found.detail)
    assert found.best == "try 0"
    assert model.calls == 1


async def test_a_sensor_that_hangs_is_left_behind_at_its_deadline() -> None:
    import threading

    release = threading.Event()

    def hangs(*_: object) -> object:
        release.wait(20)
        return {"pass": True}

    how = refine(hangs, deadline=0.05)
    found = blocked(await rlm.recurse(SIMPLE, cast("x"), refine_leaf=how), "broken-sensor")
    release.set()
    assert "0.05" in str(found.detail)


@pytest.mark.case("R-127")
async def test_the_graders_verdict_stands_above_the_sensors() -> None:
    model = cast(counting(), verifier=lambda _: grade("needs_revision", "not rich"))
    outcome = await rlm.recurse(
        SIMPLE, model, refine_leaf=refine(passes_at(0)), contract="it is rich"
    )
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.verdict, rlm.NeedsRevision)
    assert leaf(outcome).passed is True


@pytest.mark.case("D8")
async def test_a_deterministic_check_satisfies_what_a_critical_task_asks_for() -> None:
    model = cast(counting())
    outcome = await rlm.recurse(
        "investigate the security breach", model, max_depth=0, refine_leaf=refine(passes_at(0))
    )
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.verdict, rlm.Satisfied)
    assert not asked(model, "verifier")


@pytest.mark.case("R-129")
async def test_children_with_a_broken_sensor_are_all_missing_and_it_is_named_once() -> None:
    def breaks(*_: object) -> object:
        raise OSError(2, "no such file", "/t/run.sh")

    found = blocked(
        await rlm.recurse(COMPLEX, cast("x"), count=2, refine_leaf=refine(breaks)),
        "broken-sensor",
    )
    assert found.node == "root.0"
    assert found.missing[1:] == ("list slice 0", "list slice 1")
    assert leaf(found, "root").blocker is None
    assert leaf(found, "root").blocker_from == "broken-sensor"


@pytest.mark.case("S07")
async def test_a_run_that_was_cut_off_does_not_ask_its_sensor_again(tmp_path: Path) -> None:
    asked_of: list[str] = []

    def sensor(text: str, context: rlm.SensorContext) -> object:
        asked_of.append(text)
        return {"pass": text == "try 2", "critique": f"not {text}"}

    script = counting()
    caps = rlm.Caps(calls=2)
    wiring = rlm.Wiring(model=cast(script), caps=caps)
    run = tmp_path / "run"
    blocked(await rlm.recurse(SIMPLE, wiring, refine_leaf=refine(sensor), run=run), "halted")
    assert asked_of == ["try 0", "try 1"]
    outcome = await rlm.recurse(SIMPLE, cast(script), refine_leaf=refine(sensor), run=run)
    assert isinstance(outcome, rlm.Completed)
    assert asked_of == ["try 0", "try 1", "try 2"]
    assert leaf(outcome).attempts == 3
    again = await rlm.recurse(SIMPLE, cast(script), refine_leaf=refine(sensor), run=run)
    assert isinstance(again, rlm.Completed)
    assert len(asked_of) == 6
