"""Trying again: what an attempt is told, at which temperature, and when it ends."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from executors.errors import Halted, ValidationError
from executors.ids import NodeId
from executors.usage import Usage
from rlm.checks.arbiters import Broken
from rlm.checks.refinement import (
    Attempt,
    LeafRefinement,
    Refined,
    RefineLeaf,
    Unrefined,
    refine,
    refine_leaf,
)
from rlm.checks.sensors import Sensor, SensorContext
from rlm.checks.verdict import Failed, NeedsRevision, Satisfied

pytestmark = pytest.mark.anyio
HALT = Halted(bound="usd", scope="run", limit="1 USD")
CONTEXT = SensorContext(task="sort it", contract="sorted", node=NodeId("root.1"))
USED = Usage(input=100, output=10)


# ---------------------------------------------------------------- refine


def counting(passes_at: int | None) -> Callable[[str, str | None], object]:
    def sense(result: str, contract: str | None) -> object:
        done = result == f"try-{passes_at}"
        return {"pass": done, "critique": f"{result} is wrong", "contract": contract}

    return sense


def saying(value: object) -> Callable[..., object]:
    def sense(*_: object) -> object:
        return value

    return sense


class Author:
    """Makes try-1, try-2, … and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str | None, str | None]] = []

    def __call__(self, critique: str | None, contract: str | None) -> str:
        self.told.append((critique, contract))
        return f"try-{len(self.told)}"


@pytest.mark.case("R-156")
async def test_it_ends_with_the_first_result_that_passes() -> None:
    author = Author()
    found = await refine(author, counting(2), max_iterations=5, contract="done")
    assert (found.result, found.iterations, found.passed) == ("try-2", 2, True)
    assert [one.result for one in found.history] == ["try-1", "try-2"]
    assert author.told == [(None, "done"), ("try-1 is wrong", "done")]
    assert found.verdict == Satisfied(critique="try-2 is wrong", extra={"contract": "done"})


@pytest.mark.case("R-157")
async def test_it_ends_when_the_tries_are_used_up_or_the_check_gives_up() -> None:
    assert (await refine(Author(), counting(None), max_iterations=4)).iterations == 4
    gives_up = await refine(Author(), saying({"status": "failed"}))
    assert (gives_up.iterations, gives_up.verdict) == (1, Failed())
    author = Author()
    assert not (await refine(author, counting(None))).passed
    assert [contract for _, contract in author.told] == [None, None, None]


async def test_it_ends_with_a_broken_check_and_takes_asynchronous_functions() -> None:
    async def attempt(critique: str | None, contract: str | None) -> int:
        return 7

    async def sense(result: int, contract: str | None) -> object:
        raise OSError("no runner")

    found = await refine(attempt, sense)
    assert (found.result, found.iterations, found.history) == (7, 1, ())
    assert found.verdict == Broken(kind="broken-sensor", detail="OSError: no runner")


async def test_a_halt_and_what_an_attempt_raises_are_raised() -> None:
    def halts(*_: object) -> object:
        raise HALT

    def fails(*_: object) -> str:
        raise KeyError("mine")

    with pytest.raises(Halted):
        await refine(Author(), halts)
    with pytest.raises(KeyError, match="mine"):
        await refine(fails, counting(1))
    for tries in (0, -1, True, 2.5, "3"):
        with pytest.raises(ValidationError, match="max_iterations="):
            await refine(Author(), counting(1), max_iterations=tries)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"deadline": 0}, "deadline=0"),
        ({"deadline": float("nan")}, "deadline=nan"),
        ({"deadline": "2"}, "deadline='2'"),
        ({"deadline": None}, "deadline=None"),
        ({"attempt": None}, "attempt=None"),
        ({"sense": 3}, "sense=3"),
        ({"max_iterations": 2.5}, "max_iterations=2.5"),
    ],
)
async def test_what_cannot_be_tried_is_refused_at_once(options: dict[str, Any], says: str) -> None:
    def make(critique: str | None, contract: str | None) -> str:
        return "x"

    given: dict[str, Any] = {"attempt": make, "sense": make}
    with pytest.raises(ValidationError, match=says):
        await refine(**(given | options))


# ---------------------------------------------------------------- leaves


class Leaf:
    """A worker that answers `try 0`, `try 1`, … and writes down what it was asked."""

    def __init__(
        self,
        *,
        drops: bool = False,
        faults: dict[int, str] | None = None,
        halts_at: int | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.drops = drops
        self.faults = faults or {}
        self.halts_at = halts_at
        self.texts = texts
        self.asked: list[tuple[float, str | None, tuple[tuple[str, str], ...]]] = []

    async def __call__(
        self,
        index: int,
        temperature: float,
        critique: str | None,
        earlier: Sequence[tuple[str, str]],
        /,
    ) -> Attempt[str]:
        assert index == len(self.asked)
        self.asked.append((temperature, critique, tuple(earlier)))
        if index == self.halts_at:
            raise HALT
        return Attempt(
            text=self.texts[index] if self.texts else f"try {index}",
            fault=self.faults.get(index),
            temperature=None if self.drops else temperature,
            temperature_dropped=self.drops,
            usage=USED,
        )

    @property
    def temperatures(self) -> list[float]:
        return [temperature for temperature, _, _ in self.asked]


def passing(attempt: int | None) -> Sensor:
    def sense(result: str, context: SensorContext) -> object:
        return {"pass": context.attempt == attempt, "critique": f"{result}: no"}

    return sense


@pytest.mark.case("R-106")
async def test_a_leaf_recovers_by_the_critique_of_its_last_result() -> None:
    leaf = Leaf()
    found = await refine_leaf(RefineLeaf(sensor=passing(1)), leaf, CONTEXT)
    assert isinstance(found, Refined)
    assert (found.text, found.verdict) == ("try 1", Satisfied(critique="try 1: no"))
    assert leaf.asked == [(0.2, None, ()), (0.7, "try 0: no", ())]
    assert found.receipt == LeafRefinement(
        iterations=2, passed=True, temperatures=(0.2, 0.7), rejected_buffer=False
    )


@pytest.mark.case("R-107", "R-110")
async def test_a_leaf_that_never_passes_raises_its_temperature_and_adds_up_what_it_used() -> None:
    leaf = Leaf()
    found = await refine_leaf(RefineLeaf(sensor=passing(None)), leaf, CONTEXT)
    assert leaf.temperatures == [0.2, 0.7, 1.0]
    assert isinstance(found, Refined)
    assert (found.text, found.receipt.passed) == ("try 2", False)
    assert found.usage == Usage(input=300, output=30)
    longer = Leaf()
    how = RefineLeaf(sensor=passing(None), max_iterations=5, temperatures=(0.0, 0.5))
    await refine_leaf(how, longer, CONTEXT)
    assert longer.temperatures == [0.0, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.case("R-109")
async def test_a_result_that_does_not_pass_is_a_result_with_its_verdict() -> None:
    how = RefineLeaf(sensor=passing(None), max_iterations=2)
    found = await refine_leaf(how, Leaf(), CONTEXT)
    assert isinstance(found, Refined)
    assert found.verdict == NeedsRevision(critique="try 1: no")
    assert found.receipt.iterations == 2


@pytest.mark.case("R-120")
async def test_a_sensor_that_gives_up_ends_it() -> None:
    how = RefineLeaf(sensor=saying({"status": "failed"}))
    found = await refine_leaf(how, leaf := Leaf(), CONTEXT)
    assert isinstance(found, Refined)
    assert (found.verdict, len(leaf.asked)) == (Failed(), 1)


@pytest.mark.case("R-112", "R-117")
async def test_where_a_temperature_is_dropped_the_next_attempt_is_shown_what_was_turned_down() -> (
    None
):
    leaf = Leaf(drops=True)
    found = await refine_leaf(RefineLeaf(sensor=passing(None)), leaf, CONTEXT)
    first, second = ("try 0", "try 0: no"), ("try 1", "try 1: no")
    assert leaf.asked == [
        (0.2, None, ()),
        (0.2, None, (first,)),
        (0.2, None, (first, second)),
    ]
    assert found.receipt == LeafRefinement(
        iterations=3, passed=False, temperatures=(None, None, None), rejected_buffer=True
    )


@pytest.mark.case("R-119")
async def test_the_buffer_can_be_forbidden_and_demanded() -> None:
    leaf = Leaf(drops=True)
    how = RefineLeaf(sensor=passing(None), rejected_buffer=False)
    found = await refine_leaf(how, leaf, CONTEXT)
    assert leaf.asked[1:] == [(0.7, "try 0: no", ()), (1.0, "try 1: no", ())]
    assert not found.receipt.rejected_buffer
    always = Leaf()
    how = RefineLeaf(sensor=passing(None), rejected_buffer=True, max_iterations=2)
    found = await refine_leaf(how, always, CONTEXT)
    assert always.asked == [(0.2, None, ()), (0.2, None, (("try 0", "try 0: no"),))]
    assert found.receipt.rejected_buffer


@pytest.mark.case("R-124", "R-125")
async def test_a_broken_sensor_ends_it_at_once_and_the_text_is_kept() -> None:
    leaf = Leaf()
    found = await refine_leaf(RefineLeaf(sensor=saying({"ok": True})), leaf, CONTEXT)
    assert isinstance(found, Unrefined)
    assert isinstance(found.cause, Broken)
    assert found.cause.kind == "broken-sensor"
    assert (found.best, found.verdict, len(leaf.asked)) == ("try 0", None, 1)
    assert found.receipt.iterations == 1


@pytest.mark.case("R-116")
async def test_a_fault_of_the_worker_ends_it_and_is_never_shown_to_the_sensor() -> None:
    seen: list[str] = []

    def sense(result: str, context: SensorContext) -> object:
        seen.append(result)
        return {"pass": False}

    leaf = Leaf(faults={1: "denied:shell"}, texts=("first", ""))
    found = await refine_leaf(RefineLeaf(sensor=sense), leaf, CONTEXT)
    assert isinstance(found, Unrefined)
    assert (found.cause, found.best, seen) == ("denied:shell", "first", ["first"])
    assert found.verdict == NeedsRevision()
    assert found.usage == Usage(input=200, output=20)


@pytest.mark.case("R-115", "R-126")
async def test_a_halt_is_a_value_here_so_that_the_text_is_kept() -> None:
    def halts(*_: object) -> object:
        raise HALT

    by_sensor = await refine_leaf(RefineLeaf(sensor=halts), Leaf(), CONTEXT)
    assert isinstance(by_sensor, Unrefined)
    assert (by_sensor.cause, by_sensor.best) == (HALT, "try 0")
    by_worker = await refine_leaf(RefineLeaf(sensor=passing(None)), Leaf(halts_at=1), CONTEXT)
    assert isinstance(by_worker, Unrefined)
    assert (by_worker.cause, by_worker.best) == (HALT, "try 0")
    assert by_worker.receipt.iterations == 1


async def test_a_sensor_knows_what_the_leaf_was_about() -> None:
    seen: list[SensorContext] = []

    async def sense(result: str, context: SensorContext) -> object:
        seen.append(context)
        return {"pass": len(seen) == 2}

    await refine_leaf(RefineLeaf(sensor=sense), Leaf(), CONTEXT)
    assert [one.attempt for one in seen] == [0, 1]
    assert (seen[1].task, seen[1].contract, seen[1].node) == ("sort it", "sorted", "root.1")


async def test_what_one_attempt_does_not_know_of_its_tokens_is_unknown_in_the_sum() -> None:
    found = await refine_leaf(RefineLeaf(sensor=passing(None)), Leaf(), CONTEXT)
    assert (found.usage.input, found.usage.cache_read) == (300, None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sensor": None}, "sensor=None"),
        ({"max_iterations": 0}, "max_iterations=0"),
        ({"max_iterations": True}, "max_iterations=True"),
        ({"max_iterations": "3"}, "max_iterations='3'"),
        ({"temperatures": ()}, "temperatures=()"),
        ({"temperatures": (0.2, "hot")}, "temperatures="),
        ({"temperatures": (float("nan"),)}, "temperatures="),
        ({"temperatures": (-0.1,)}, "temperatures="),
        ({"temperatures": 0.5}, "temperatures=0.5"),
        ({"rejected_buffer": "yes"}, "rejected_buffer='yes'"),
        ({"deadline": 0}, "deadline=0"),
        ({"deadline": float("inf")}, "deadline=inf"),
    ],
)
async def test_options_that_are_none_are_refused(options: dict[str, object], named: str) -> None:
    given = {"sensor": passing(0)} | options
    with pytest.raises(ValidationError, match=named.replace("(", r"\(").replace(")", r"\)")):
        RefineLeaf(**given)  # type: ignore[arg-type]
