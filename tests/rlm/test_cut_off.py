"""A count that is ended from outside: what comes out names the run, and a stop lets it end well."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

import rlm
from executors.events import CallStarted, Event
from rlm import Completed, Incomplete, Stop, count, count_sync, resume
from rlm.testing import ScriptedModel, judge_script

TEXTS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(80)]


def model(latency: float = 0.0) -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text), latency=latency)


def at_first_call(act: Callable[[], object]) -> Callable[[Event], None]:
    told = threading.Event()

    def hear(event: Event) -> None:
        if isinstance(event, CallStarted) and not told.is_set():
            told.set()
            act()

    return hear


def wanted(run: Path) -> str:
    return f"the run can go on: rlm resume {run}, or rlm.resume({str(run)!r})"


@pytest.mark.anyio
async def test_a_cancellation_names_the_run_to_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    caught: list[BaseException] = []
    with anyio.CancelScope() as scope:
        try:
            hear = at_first_call(scope.cancel)
            await count("fire?", TEXTS, model=model(60.0), run=run, on_event=hear)
        except anyio.get_cancelled_exc_class() as error:
            caught.append(error)
            raise
    assert [error.__notes__ for error in caught] == [[wanted(run)]]
    assert isinstance(await resume(run, model=model()), Completed)


def test_ctrl_c_out_of_the_sync_twin_names_the_run_to_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    press = at_first_call(lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            count_sync("fire?", TEXTS, model=model(60.0), run=run, on_event=press)
    finally:
        rlm.close()
    assert caught.value.__notes__ == [wanted(run)]


@pytest.mark.anyio
async def test_a_count_that_is_asked_to_stop_ends_with_what_was_in_flight(tmp_path: Path) -> None:
    stop, run = Stop(), tmp_path / "run"
    hear = at_first_call(stop.ask)
    found = await count(
        "fire?", TEXTS, model=model(), run=run, concurrency=1, on_event=hear, stop=stop
    )
    assert isinstance(found, Incomplete)
    assert found.blocker == "interrupted"
    assert 1 <= found.receipts.totals.calls < 20
    assert isinstance(await resume(run, model=model()), Completed)
