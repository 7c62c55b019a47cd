"""An arbiter that raises, hangs or says nothing usable is broken itself: a value with a label."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from executors.errors import Halted, ServerFault
from executors.secrets import Secret
from rlm.checks.arbiters import Broken, describe_thrown, run_arbiter
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict, read_verdict

pytestmark = pytest.mark.anyio
HALT = Halted(bound="usd", scope="run", limit="1 USD")


async def judged(
    function: Callable[..., object], *arguments: object, deadline: float = 30.0
) -> Verdict | Broken:
    return await run_arbiter(
        function, *arguments, read=read_verdict, kind="broken-sensor", deadline=deadline
    )


async def detail(function: Callable[..., object], *, deadline: float = 30.0) -> str:
    found = await judged(function, deadline=deadline)
    assert isinstance(found, Broken)
    assert found.kind == "broken-sensor"
    return found.detail


def raises(error: BaseException) -> Callable[[], object]:
    def sensor() -> object:
        raise error

    return sensor


# ---------------------------------------------------------------- good ones


async def test_plain_functions_run_in_a_thread_with_the_context_of_the_caller() -> None:
    named = contextvars.ContextVar("named", default="none")
    named.set("mine")
    seen: list[object] = []

    def sensor(result: str) -> object:
        seen.extend([result, named.get(), threading.current_thread() is threading.main_thread()])
        return {"pass": True}

    assert await judged(sensor, "text") == Satisfied()
    assert seen == ["text", "mine", False]


async def test_coroutine_functions_run_on_the_loop_and_what_is_awaitable_is_awaited() -> None:
    async def sensor(result: str) -> object:
        await anyio.lowlevel.checkpoint()
        on_the_loop = threading.current_thread() is threading.main_thread()
        return {"pass": on_the_loop, "critique": result}

    assert await judged(sensor, "a") == Satisfied(critique="a")
    assert await judged(partial(sensor, "b")) == Satisfied(critique="b")
    assert await judged(lambda: sensor("c")) == Satisfied(critique="c")


# ---------------------------------------------------------------- broken ones


@pytest.mark.case("R-125", "R-054")
async def test_what_is_no_verdict_is_named_by_keys_and_types() -> None:
    assert "['ok']" in await detail(lambda: {"ok": "hunter2"})
    assert "of type str" in await detail(lambda: "pass")
    assert "of type bool" in await detail(lambda: True)
    assert "['critique', 'score']" in await detail(lambda: {"score": 1, "critique": "hunter2"})
    assert "hunter2" not in await detail(lambda: {"ok": "hunter2", "pass": ["hunter2"]})


class Coded(Exception):
    """An error without a message, as test runners raise them."""

    def __init__(self, **fields: object) -> None:
        super().__init__()
        vars(self).update(fields)


@pytest.mark.case("R-124")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no such test"), "ValueError: no such test"),
        (Coded(code="ENOENT", path="/x", stdout="hunter2"), "Coded: code=ENOENT path=/x"),
        (Coded(stdout="hunter2"), "Coded"),
        (RuntimeError({"code": 3, "stdout": "hunter2"}), "RuntimeError: code=3"),
        (RuntimeError(["hunter2"]), "RuntimeError"),
        (RuntimeError(), "RuntimeError"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(), "RuntimeError: coroutine raised StopIteration"),
        (ServerFault("the server said no"), "the server said no"),
        (FileNotFoundError(2, "No such file", "pytest"), "FileNotFoundError"),
    ],
)
async def test_what_is_raised_is_told_by_its_message_or_by_telling_fields(
    error: BaseException, expected: str
) -> None:
    found = await detail(raises(error))
    assert found.startswith(expected)
    assert "hunter2" not in found


async def test_what_is_told_is_one_short_line_without_secrets() -> None:
    Secret("a-very-secret-key")
    found = describe_thrown(ValueError("a-very-secret-key \x1b[31m\n" + "x" * 1_000))
    assert found.startswith("ValueError: [secret] \ufffd[31m xxx")
    assert len(found) == 200


async def test_an_error_that_cannot_be_told_is_told_by_its_name() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    assert "Mute" in await detail(raises(Mute(object())))


async def test_a_field_that_raises_breaks_the_arbiter_as_well() -> None:
    class Lazy:
        @property
        def passed(self) -> bool:
            raise OSError("the report is gone")

    assert await detail(Lazy) == "OSError: the report is gone"


async def test_a_plain_one_that_hangs_is_left_behind_and_said_to_be() -> None:
    release = threading.Event()
    ended = threading.Event()

    def hangs() -> object:
        release.wait()
        ended.set()
        return {"pass": True}

    found = await detail(hangs, deadline=0.05)
    assert found == "it did not answer within 0.05 s; it is left behind in its thread"
    release.set()
    await asyncio.to_thread(ended.wait)
    while any(thread.name == "rlm arbiter" for thread in threading.enumerate()):
        await anyio.sleep(0.001)


async def test_an_asynchronous_one_that_hangs_is_cancelled() -> None:
    cancelled = False

    async def hangs() -> None:
        nonlocal cancelled
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            cancelled = True
            raise

    assert await detail(hangs, deadline=0.05) == "it did not answer within 0.05 s"
    assert cancelled


async def test_a_time_out_of_its_own_is_not_the_deadline() -> None:
    assert await detail(raises(TimeoutError("the runner"))) == "TimeoutError: the runner"


def test_one_that_hangs_does_not_keep_a_program_from_ending() -> None:
    code = (
        "import anyio, threading\n"
        "from rlm.checks.arbiters import run_arbiter\n"
        "from rlm.checks.verdict import read_verdict\n"
        "hang = threading.Event().wait\n"
        "run = lambda: run_arbiter(hang, read=read_verdict, kind='broken-sensor', deadline=0.05)\n"
        "print(anyio.run(run).kind)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=root,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("broken-sensor\n", "", 0)


# ---------------------------------------------------------------- signals


@pytest.mark.case("R-126", "R-055")
async def test_a_halt_passes_through_from_wherever_it_is_raised() -> None:
    async def grouped() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(halts)

    async def halts() -> object:
        raise HALT

    for sensor in (raises(HALT), halts, grouped):
        with pytest.raises(Halted, match="usd bound"):
            await judged(sensor)


async def test_cancelling_passes_through() -> None:
    release = threading.Event()
    with anyio.move_on_after(0.05) as scope:
        await judged(release.wait)
    assert scope.cancelled_caught
    release.set()
    while any(thread.name == "rlm arbiter" for thread in threading.enumerate()):
        await anyio.sleep(0.001)


async def test_an_arbiter_that_broke_says_nothing_of_the_result() -> None:
    assert not isinstance(await judged(raises(ValueError("x"))), NeedsRevision)
