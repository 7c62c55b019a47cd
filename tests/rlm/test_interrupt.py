"""What each press of Ctrl-C does while a run goes on, with signals raised in this process."""

import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from corpus.results import Tally
from executors.engine.local import Failed, Result, pull
from executors.engine.stop import Stop
from executors.errors import Interrupted, RlmError
from executors.events import Event
from executors.messages import ModelRequest
from executors.models.fakes.scripted import ScriptedModel
from rlm.cli import impatience, interrupt
from rlm.cli.interrupt import ending_like_ctrl_c
from rlm.cli.stopping import STOPPING, stopping
from rlm.counting import count_with
from rlm.events import NodeFinished, NodeStarted
from rlm.options.options import CountOptions
from rlm.outcome import Incomplete

pytestmark = pytest.mark.case("S55")

Work = Callable[[], Coroutine[object, object, object]]


@pytest.fixture(autouse=True)
def handlers_are_given_back() -> Iterator[None]:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    yield
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


class Run:
    """Work that is stopped, and what was told."""

    def __init__(self, folder: Path, stop: Stop) -> None:
        self._told = folder / "stderr"
        self.stop = stop

    def __call__(self, work: Work) -> None:
        async def main() -> None:
            with self._told.open("w", encoding="utf-8") as stream, stopping(self.stop, stream):
                await work()

        with ending_like_ctrl_c():
            anyio.run(main)

    @property
    def told(self) -> str:
        return self._told.read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, Stop())


@pytest.mark.case("K13-14")
@pytest.mark.parametrize(
    ("number", "by"),
    [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")],
)
def test_the_first_signal_asks_what_heeds_it_and_says_so(
    number: signal.Signals, by: str, run: Run
) -> None:
    async def work(n: int) -> int:
        signal.raise_signal(number)
        await anyio.sleep(0.01)
        return n

    results: list[Result[int, int]] = []
    with pytest.raises(Interrupted, match=by):
        run(lambda: pull(range(9), work, cap=1, settle=results.append, stop=run.stop))
    assert [result.item for result in results] == [0]
    assert run.told == f"{STOPPING}\n"
    assert STOPPING.endswith("at most 10 s; once more stops at once")


def test_where_nothing_is_paid_for_yet_the_first_signal_cancels(run: Run) -> None:
    async def reading() -> None:
        signal.raise_signal(signal.SIGTERM)
        await anyio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        run(reading)
    assert run.told == f"{STOPPING}\n"
    assert interrupt.stopped_by() is signal.SIGTERM
    assert not run.stop.asked


@pytest.mark.case("K9-4")
def test_the_second_signal_cancels_what_the_first_one_asked(run: Run) -> None:
    ends: list[str] = []

    async def work(n: int) -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await anyio.sleep(0.01)
            ends.append("goes on after one")
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()
        finally:
            ends.append("ends after two")

    results: list[Result[int, None]] = []
    with pytest.raises(KeyboardInterrupt):
        run(lambda: pull(range(9), work, cap=1, settle=results.append, stop=run.stop))
    assert ends == ["goes on after one", "ends after two"]
    assert results == []


def test_elsewhere_than_in_the_main_thread_nothing_is_changed(run: Run) -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    async def work() -> None:
        seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run, args=(work,))
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_ctrl_c_that_is_ignored_stays_so(run: Run) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        await anyio.sleep(0.01)

    try:
        run(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.told, run.stop.asked) == ("", False)


def test_the_loop_never_handles_signals_itself() -> None:
    """Its own way does not exist on every system, and hears nothing while the loop is busy."""
    root = Path(interrupt.__file__).parents[2]
    for package in ("rlm", "planner", "corpus", "executors"):
        for file in (root / package).rglob("*.py"):
            assert "add_signal_handler" not in file.read_text(encoding="utf-8"), file


# ---------------------------------------------------------------- what hangs


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setattr(impatience, "_TURN", 0.1)
    monkeypatch.setattr(impatience, "_EVERY", 0.02)
    return Run(tmp_path, Stop(grace=0.1))


def press_soon() -> None:
    def press() -> None:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()


@pytest.mark.case("S23")
def test_what_says_that_it_heeds_and_does_not_is_cancelled(impatient: Run) -> None:
    async def work() -> None:
        with impatient.stop.heeding():
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        impatient(work)


@pytest.mark.case("S23")
@pytest.mark.parametrize("heeds", [False, True])
def test_code_that_blocks_the_loop_is_interrupted(heeds: bool, impatient: Run) -> None:
    begun = time.monotonic()

    async def blocks(n: int) -> None:
        press_soon()
        time.sleep(30)

    async def work() -> None:
        if heeds:
            await pull([1], blocks, cap=1, settle=lambda _: None, stop=impatient.stop)
        await blocks(1)

    with pytest.raises(KeyboardInterrupt):
        impatient(work)
    assert time.monotonic() - begun < 5


def test_a_loop_that_writes_down_what_was_done_is_left_alone(impatient: Run) -> None:
    written: list[str] = []

    async def work() -> None:
        with suppress(Interrupted):
            await pull([1], asks, cap=1, settle=lambda _: None, stop=impatient.stop)
        time.sleep(0.8)  # longer than every patience
        written.append("all")

    async def asks(n: int) -> None:
        signal.raise_signal(signal.SIGINT)
        await anyio.sleep(0)

    impatient(work)
    assert written == ["all"]


def test_the_grace_of_the_stop_is_what_is_said_and_kept(tmp_path: Path) -> None:
    run, results = Run(tmp_path, Stop(grace=0.05)), list[Result[int, None]]()

    async def work(n: int) -> None:
        signal.raise_signal(signal.SIGINT)
        await anyio.sleep_forever()

    with pytest.raises(RlmError, match="stopped by Ctrl-C"):
        run(lambda: pull([1, 2], work, cap=1, settle=results.append, stop=run.stop))
    assert [type(result) for result in results] == [Failed]
    assert "at most 0.05 s" in run.told


# ---------------------------------------------------------------- a count that is asked to stop


def test_a_count_heeds_from_its_first_call_to_its_last_and_not_before(tmp_path: Path) -> None:
    stop, heeded = Stop(), dict[str, bool]()

    def hear(event: Event) -> None:
        if isinstance(event, NodeStarted | NodeFinished):
            heeded[f"{type(event).__name__} {event.node}"] = stop.heeded

    options = CountOptions(
        model=ScriptedModel('{"1": "no"}'), run=tmp_path / "run", on_event=hear, stop=stop
    )
    anyio.run(count_with, "is it?", ["a"], options)
    ends = [name for name, is_heeded in heeded.items() if is_heeded]
    assert ends == [
        "NodeStarted root.2",
        "NodeStarted root.2.0",
        "NodeFinished root.2.0",
        "NodeStarted root.2.1",
        "NodeFinished root.2.1",
        "NodeFinished root.2",
    ]


def test_a_count_that_was_asked_to_stop_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    stop = Stop()

    def script(request: ModelRequest) -> str:
        stop.ask("SIGTERM")
        return '{"1": "yes"}'

    options = CountOptions(
        model=ScriptedModel(script), run=tmp_path / "run", stop=stop, window=1, concurrency=1
    )
    outcome = anyio.run(count_with, "is it?", ["a", "b"], options)
    assert isinstance(outcome, Incomplete)
    assert (outcome.blocker, outcome.missing[0]) == ("interrupted", "stopped by SIGTERM")
    assert isinstance(outcome.best, Tally)
    assert (outcome.best.count, outcome.best.states["unresolved"]) == (1, 1)
