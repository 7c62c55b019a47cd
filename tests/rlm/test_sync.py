"""Sync twins: they work anywhere a person calls them, and leave nothing behind."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.errors import UsageError
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
