"""What the caller's own functions and options may do: raise anything, give anything, be anything."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from typing import cast as cast_as

import anyio
import orjson
import pytest

import rlm
from executors.messages import ModelReply, ModelRequest
from rlm.runs.history import Unknown, read_events
from tests.rlm.trees import (
    COMPLEX,
    SIMPLE,
    calls,
    cast,
    grade,
    plan,
    results_of,
    said,
    spawns,
    task_of,
)

pytestmark = pytest.mark.anyio


def blocked(outcome: rlm.RecurseOutcome, blocker: str) -> rlm.Incomplete[object]:
    assert isinstance(outcome, rlm.Incomplete), outcome
    assert outcome.blocker == blocker, (outcome.blocker, outcome.missing)
    return outcome


def done(outcome: rlm.RecurseOutcome) -> rlm.Completed[object]:
    assert isinstance(outcome, rlm.Completed), outcome
    return outcome


class Odd(BaseException):
    """As those by which test tools and event loops end what they run."""


def raising(error: type[BaseException], *, later: bool) -> Callable[..., object]:
    def now(*_: object) -> object:
        raise error("x")

    async def soon(*_: object) -> object:
        raise error("x")

    return soon if later else now


# ---------------------------------------------------------------- what they raise


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("error", [Odd, asyncio.CancelledError, SystemExit])
async def test_whatever_an_arbiter_raises_is_a_fault_of_its_own(
    error: type[BaseException], later: bool
) -> None:
    fault = raising(error, later=later)
    sensed = await rlm.recurse(COMPLEX, cast(), count=2, refine_leaf=rlm.RefineLeaf(sensor=fault))
    assert blocked(sensed, "broken-sensor").best == "### Part 1\ndone\n\n### Part 2\ndone"
    judged = await rlm.recurse(SIMPLE, cast(), evaluate=fault)
    assert blocked(judged, "broken-verifier").best == "done"
    joined = await rlm.recurse(COMPLEX, cast(), count=2, synthesize=fault)
    assert blocked(joined, "broken-synthesis").best
    for found in (sensed, judged, joined):
        assert error.__name__ in str(cast_as("rlm.Incomplete[object]", found).detail)


@pytest.mark.parametrize("later", [False, True])
async def test_whatever_a_tool_or_a_policy_raises_is_no_end_of_the_run(later: bool) -> None:
    fault = raising(Odd, later=later)
    tool = rlm.Tool(name="odd", description="d", parameters={"type": "object"}, execute=fault)
    model = cast(lambda r: said(results_of(r)[0]) if results_of(r) else calls("odd", {}))
    found = done(await rlm.recurse(SIMPLE, model, tools=[tool]))
    assert found.result == "Error: the tool 'odd' raised Odd: x"
    wiring = rlm.Wiring(model=model, policy=cast_as("Any", fault))
    assert "Denied" in str(done(await rlm.recurse(SIMPLE, wiring, tools=[tool])).result)


async def test_a_cancellation_of_ours_is_no_fault_of_an_arbiter() -> None:
    async def waits(*_: object) -> object:
        await anyio.sleep(60)
        return True

    with anyio.move_on_after(0.3) as scope:
        await rlm.recurse(SIMPLE, cast(), evaluate=waits)
    assert scope.cancelled_caught


# ---------------------------------------------------------------- what they give


def generator(_: object) -> Iterator[str]:
    yield "x"


async def async_generator(_: object) -> AsyncIterator[str]:
    yield "x"


def nothing(_: object) -> None:
    return None


@pytest.mark.parametrize("synthesize", [nothing, generator, async_generator])
async def test_a_synthesis_that_gives_nothing_is_broken(
    synthesize: Callable[[object], object],
) -> None:
    found = await rlm.recurse(COMPLEX, cast(), count=2, synthesize=synthesize)
    assert blocked(found, "broken-synthesis").best == "### Part 1\ndone\n\n### Part 2\ndone"


class Mute:
    def __str__(self) -> str:
        raise ZeroDivisionError

    __repr__ = __str__


def deep() -> object:
    value: object = 1
    for _ in range(5_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [{(1, 2): 3}, Mute(), deep(), "half \ud800", float("nan"), {"k": Mute()}, b"x"]
)
async def test_whatever_a_synthesis_gives_ends_in_an_outcome_and_a_receipt(
    value: object, tmp_path: Path
) -> None:
    found = done(
        await rlm.recurse(COMPLEX, cast(), count=2, synthesize=lambda _: value, run=tmp_path / "r")
    )
    assert found.result is value
    assert rlm.Receipts.load(tmp_path / "r").result["kind"] in ("text", "value")


@pytest.mark.parametrize("later", [False, True])
async def test_a_verdict_whose_fields_are_nonsense_is_read_for_what_it_says(later: bool) -> None:
    odd: Any = rlm.NeedsRevision(critique=cast_as("str", 5), score=cast_as("float", "high"))

    def now(*_: object) -> object:
        return odd

    async def soon(*_: object) -> object:
        return odd

    found = done(await rlm.recurse(SIMPLE, cast(), evaluate=soon if later else now))
    assert isinstance(found.verdict, rlm.NeedsRevision)
    assert found.verdict.score is None


# ---------------------------------------------------------------- halves of characters

HALF = "half \ud800"


def hands_on(request: ModelRequest) -> ModelReply:
    if results_of(request):
        return said(f"{HALF} {results_of(request)[0]}")
    return spawns(f"list {HALF}") if task_of(request) == COMPLEX else said(HALF)


def turns_down(*_: object) -> object:
    return {"pass": False, "critique": HALF}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"count": 2},
        {"count": 2, "synthesize": "merge"},
        {"contract": "all"},
        {"evaluate": turns_down},
        {"refine_leaf": rlm.RefineLeaf(sensor=turns_down)},
    ],
)
async def test_half_a_character_stops_nothing_and_the_run_reads_back(
    options: dict[str, Any], tmp_path: Path
) -> None:
    model = cast(
        hands_on,
        planner=lambda _: plan(f"{HALF} 0", f"{HALF} 1"),
        verifier=lambda _: grade("satisfied", HALF),
        merge=lambda _: said(HALF),
    )
    first = done(await rlm.recurse(COMPLEX, model, run=tmp_path / "run", **options))
    assert "half \ufffd" in str(first.result)
    before = model.calls
    again = done(await rlm.recurse(COMPLEX, model, run=tmp_path / "run", **options))
    assert (again.result, model.calls) == (first.result, before)
    assert again.receipts.content_root == first.receipts.content_root
    events = read_events(tmp_path / "run" / "events.jsonl")
    assert not [event for event in events if isinstance(event, Unknown)]
    orjson.loads((tmp_path / "run" / "receipt.json").read_bytes())


# ---------------------------------------------------------------- tools and options


def shout(word: str) -> str:
    """Shout a word."""
    return word.upper()


def spawn_child(subtask: str) -> str:
    """Take the name of ours."""
    return subtask


async def none_yet() -> list[object]:
    return []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", "hot"),
        ("temperature", -1),
        ("temperature", float("nan")),
        ("temperature", True),
        ("planner_rules", "yes"),
        ("run", 5),
        ("run", ""),
        ("run", "a\0b"),
        ("tools", 5),
        ("tools", "abc"),
        ("tools", [1]),
        ("tools", iter(())),
        ("tools", none_yet),
        ("tools", async_generator),
        ("tools", [rlm.tool(spawn_child)]),
        ("tools", [rlm.tool(shout), rlm.tool(shout)]),
    ],
)
async def test_an_option_that_is_none_is_refused_before_anything_is_spent(
    option: str, value: object
) -> None:
    model = cast()
    with pytest.raises(rlm.ValidationError):
        await rlm.recurse(COMPLEX, model, count=2, **cast_as("Any", {option: value}))
    assert model.calls == 0


async def test_a_model_without_a_name_is_not_the_one_on_this_machine() -> None:
    with pytest.raises(rlm.ValidationError, match="model=''"):
        await rlm.recurse(SIMPLE, "")


def raises() -> list[object]:
    raise OSError("gone")


def no_tools() -> object:
    return 5


def same_name() -> object:
    return [rlm.tool(spawn_child)]


@pytest.mark.parametrize("tools", [raises, no_tools, same_name])
async def test_a_function_of_tools_that_fails_takes_none_of_ours_away(
    tools: Callable[[], list[rlm.Tool]],
) -> None:
    def worker(request: ModelRequest) -> ModelReply:
        if task_of(request) != COMPLEX:
            return said("part done")
        return said(results_of(request)[0]) if results_of(request) else spawns("list one")

    found = done(await rlm.recurse(COMPLEX, cast(worker), tools=tools))
    assert found.result == "part done"
    events = (found.receipts.directory / "events.jsonl").read_text(encoding="utf-8")
    assert "the former tools stay" in events


async def test_tools_from_a_generator_are_there_in_each_round() -> None:
    def tools() -> Iterator[object]:
        yield rlm.tool(shout)

    model = cast(
        lambda r: said(results_of(r)[0]) if results_of(r) else calls("shout", {"word": "a"})
    )
    assert done(await rlm.recurse(SIMPLE, model, tools=cast_as("Any", tools))).result == "A"
