"""A run that a governed run starts, in a tool or a check of its caller's, is under the same gate."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio.to_thread
import pytest

import rlm
from executors.gate.audit.rebuilding import totals
from executors.messages import ModelReply, ModelRequest
from rlm.testing import ScriptedModel, judge_script
from tests.rlm.trees import calls, cast, results_of, said

pytestmark = pytest.mark.anyio
RECORDS = [(f"r{n}", f"text {n}") for n in range(40)]
Within = Callable[[ScriptedModel], Awaitable[object]]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    rlm.close()


async def counts(judge: ScriptedModel) -> object:
    return await rlm.count("is it?", RECORDS, model=judge, window=1, passes=1)


async def recurses(judge: ScriptedModel) -> object:
    return await rlm.recurse("is it?", judge, corpus=RECORDS, retrieval="scan", window=1, passes=1)


async def counts_blocking(judge: ScriptedModel) -> object:
    def blocking() -> object:
        return rlm.count_sync("is it?", RECORDS, model=judge, window=1, passes=1)

    return await anyio.to_thread.run_sync(blocking)


@pytest.mark.case("G-215")
@pytest.mark.parametrize("within", [counts, recurses, counts_blocking])
async def test_a_run_within_draws_on_the_budget_of_the_run_around(
    within: Within, tmp_path: Path
) -> None:
    judge = ScriptedModel(judge_script(lambda text: "1" in text))
    came: list[object] = []

    async def look() -> str:
        """Count in a run of its own."""
        came.append(await within(judge))
        return "counted"

    def works(request: ModelRequest) -> ModelReply:
        return said("done") if results_of(request) else calls("look", {})

    run = tmp_path / "run"
    wiring = rlm.Wiring(model=cast(worker=works), gate={"budget": {"max_calls": 6}})
    outcome = await rlm.recurse("Say how many.", wiring, tools=[rlm.tool(look)], run=run)
    assert isinstance(outcome, rlm.Incomplete)
    (inner,) = came
    assert isinstance(inner, rlm.Incomplete)
    assert "budget.maxCalls" in "\n".join(inner.missing)
    assert 0 < judge.calls <= 5
    assert totals(run / "gate" / "audit.jsonl").calls == 6


async def test_a_run_within_may_have_a_gate_of_its_own() -> None:
    judge = ScriptedModel(judge_script(lambda text: "1" in text))
    came: list[object] = []

    async def look() -> str:
        """Count in a run of its own."""
        came.append(await rlm.count("is it?", RECORDS, model=judge, window=8, passes=1, gate={}))
        return "counted"

    def works(request: ModelRequest) -> ModelReply:
        return said("done") if results_of(request) else calls("look", {})

    wiring = rlm.Wiring(model=cast(worker=works), gate={"budget": {"max_calls": 3}})
    outcome = await rlm.recurse("Say how many.", wiring, tools=[rlm.tool(look)])
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(came[0], rlm.Completed)


async def test_a_run_within_is_not_told_bounds_that_would_not_hold() -> None:
    came: list[str] = []

    async def look() -> str:
        """Count in a run of its own."""
        with pytest.raises(rlm.ConfigError) as error:
            await rlm.count("is it?", RECORDS, model=cast(), caps=rlm.Caps(calls=3))
        came.append(str(error.value))
        return "no"

    def works(request: ModelRequest) -> ModelReply:
        return said("done") if results_of(request) else calls("look", {})

    wiring = rlm.Wiring(model=cast(worker=works), gate={})
    await rlm.recurse("Say how many.", wiring, tools=[rlm.tool(look)])
    assert "leave caps= out" in came[0]
