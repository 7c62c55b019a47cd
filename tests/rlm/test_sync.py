"""Sync twins: they work anywhere a person calls them, and leave nothing behind."""

import asyncio
import contextvars
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import rlm
from executors.errors import UsageError
from executors.models.fakes.acts import Act, Completion, Received
from executors.models.fakes.server import FakeServer
from rlm import sync
from rlm.counting import count_sync
from rlm.outcome import Completed
from rlm.sync import close, sync_twin

pytestmark = pytest.mark.case("K13-1", "K13-2")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close()


async def double(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x


double_sync = sync_twin(double)


def test_a_twin_returns_what_the_function_returns() -> None:
    assert double_sync(21) == 42
    assert double_sync.__name__ == "double_sync"


def test_a_twin_works_inside_a_running_loop_as_in_a_notebook() -> None:
    async def cell() -> int:
        return double_sync(3)

    assert asyncio.run(cell()) == 6


def test_a_twin_called_from_our_own_loop_says_what_to_do() -> None:
    async def nested() -> int:
        return double_sync(1)

    with pytest.raises(UsageError, match="own event loop") as caught:
        sync_twin(nested)()
    assert "await double" in str(caught.value)


def test_context_variables_reach_the_work() -> None:
    word: contextvars.ContextVar[str] = contextvars.ContextVar("word")

    async def read() -> str:
        return word.get()

    word.set("carried")
    assert sync_twin(read)() == "carried"


def test_an_error_comes_out_as_it_is() -> None:
    async def fail() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        sync_twin(fail)()


def test_close_ends_the_thread_and_the_next_call_starts_anew() -> None:
    double_sync(1)
    before = threading.active_count()
    close()
    assert threading.active_count() == before - 1
    assert double_sync(2) == 4


def test_a_fork_after_the_first_call_gets_a_loop_of_its_own() -> None:
    code = (
        "import os, sys, warnings; warnings.simplefilter('ignore')\n"
        "from tests.rlm.test_sync import double_sync\n"
        "assert double_sync(1) == 2\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(0 if double_sync(2) == 4 else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or (double_sync(4) != 8))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 0


def test_a_process_that_never_closes_still_ends() -> None:
    code = "from tests.rlm.test_sync import double_sync; print(double_sync(2))"
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "4\n")


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_a_program_comes_out_as_it_is_and_leaves_the_loop_alone(
    ending: BaseException,
) -> None:
    async def ends() -> None:
        raise BaseExceptionGroup("tasks", [ValueError("x"), BaseExceptionGroup("in", [ending])])

    with pytest.raises(type(ending)) as caught:
        sync_twin(ends)()
    assert caught.value is ending
    assert double_sync(2) == 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_something_broke_is_made_anew() -> None:
    double_sync(1)

    async def breaks() -> None:
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.sleep(60)

    with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever a broken loop leaves of it
        sync_twin(breaks)()
    assert double_sync(2) == 4


def test_user_code_that_exits_leaves_the_next_count_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def exits(text: str) -> bool:
        raise SystemExit(len(text))

    def source() -> Iterator[tuple[str, str]]:
        yield "1", "a"
        raise SystemExit(3)

    for corpus in (source(), [("1", "a")]):
        with pytest.raises(SystemExit):
            count_sync("is it?", corpus, judge=exits)
        done = count_sync("is it?", [("1", "a")], judge=lambda _: True)
        assert isinstance(done, Completed)


# ---------------------------------------------------------------- Ctrl-C


def press(*after: float) -> None:
    """Press Ctrl-C so many seconds from now, each after the one before."""

    def presses() -> None:
        for seconds in after:
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=presses).start()


async def tasks() -> int:
    return len(asyncio.all_tasks())


tasks_sync = sync_twin(tasks)


def test_ctrl_c_comes_out_once_the_work_has_ended_and_the_next_call_works() -> None:
    ends: list[str] = []

    async def asks() -> None:
        try:
            press(0)
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            ends.append("its last words")

    before = tasks_sync()
    with pytest.raises(KeyboardInterrupt):
        sync_twin(asks)()
    assert ends == ["its last words"]
    assert tasks_sync() == before


@pytest.mark.case("S23")
def test_code_that_blocks_the_loop_is_left_behind_after_the_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sync, "GRACE", 0.1)

    async def blocks() -> None:
        press(0.1)
        time.sleep(1.5)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sync_twin(blocks)()
    assert double_sync(2) == 4
    assert time.monotonic() - begun < 1


@pytest.mark.case("S23")
def test_a_second_ctrl_c_waits_for_nothing() -> None:
    async def blocks() -> None:
        press(0.1, 0.2)
        time.sleep(1.5)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sync_twin(blocks)()
    assert double_sync(2) == 4
    assert time.monotonic() - begun < 1


def test_ctrl_c_at_any_moment_of_a_call_leaves_no_task_and_a_loop_that_works() -> None:
    async def brief() -> None:
        await anyio.sleep(0.002)

    before, dice = tasks_sync(), random.Random(7)
    interrupted = 0
    for _ in range(40):
        try:
            press(dice.uniform(0, 0.004))
            sync_twin(brief)()
            time.sleep(0.01)  # the press may still be on its way
        except KeyboardInterrupt:
            interrupted += 1
    assert interrupted == 40
    assert tasks_sync() == before


def test_work_that_nobody_wants_any_more_when_it_begins_is_cancelled() -> None:
    begun: list[str] = []

    async def asks() -> None:
        await anyio.lowlevel.checkpoint()
        begun.append("asks")

    call = sync._Call(asks)
    call.give_up()
    assert isinstance(call.start().result(), sync._Ended)
    assert begun == []


# ---------------------------------------------------------------- other loops, threads, forks


def yes(received: Received) -> Act:
    return Completion(text='{"1": "yes"}')


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.case("S51")
def test_twins_and_awaits_work_where_a_policy_makes_the_loops() -> None:
    pytest.importorskip("uvloop", reason="makes the loops of this test")
    code = (
        "import asyncio, sys, warnings; warnings.simplefilter('ignore')\n"
        "import rlm, uvloop\n"
        "asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n"
        "async def kind(): return type(asyncio.get_running_loop()).__module__\n"
        "from rlm.sync import sync_twin\n"
        "assert sync_twin(kind)() == 'uvloop'\n"
        "asked = dict(model='openai+' + sys.argv[1] + ':m')\n"
        "ends = [rlm.count_sync('is it?', ['a'], **asked) for _ in range(2)]\n"
        "ends.append(asyncio.run(rlm.count('is it?', ['a'], **asked)))\n"
        "assert [len(end.result.matched_ids) for end in ends] == [1, 1, 1], ends\n"
    )
    with FakeServer(yes) as server:
        subprocess.run([sys.executable, "-c", code, server.base_url], check=True, timeout=60)


@pytest.mark.case("S52")
@pytest.mark.usefixtures("homeless")
def test_one_model_serves_several_runs_threads_and_loops() -> None:
    ends: list[object] = []
    with FakeServer(yes) as server:
        model = rlm.OpenAIModel("m", base_url=server.base_url)

        def run() -> None:
            ends.append(type(count_sync("is it?", ["a", "b"], model=model, window=1)))

        for _ in range(3):
            run()
        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        close()
        run()  # on a loop of its own
        sync_twin(model.aclose)()
    assert ends == [Completed] * 6


@pytest.mark.usefixtures("homeless")
def test_a_count_after_a_fork_has_connections_of_its_own() -> None:
    code = (
        "import os, sys, warnings; warnings.simplefilter('ignore')\n"
        "import rlm\n"
        "model = rlm.OpenAIModel('m', base_url=sys.argv[1])\n"
        "def run(): return len(rlm.count_sync('is it?', ['a'], model=model).result.matched_ids)\n"
        "assert run() == 1\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(0 if run() == 1 else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or run() != 1)\n"
    )
    with FakeServer(yes) as server:
        done = subprocess.run(
            [sys.executable, "-c", code, server.base_url], timeout=60, check=False
        )
    assert done.returncode == 0
