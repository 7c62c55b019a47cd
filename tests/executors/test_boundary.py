"""What a caller's code does becomes a value; threads that hang are left behind."""

import threading
from collections.abc import Awaitable
from contextvars import ContextVar

import anyio
import pytest

from executors.boundary import Overdue, Raised, Returned, attempt, attempt_now, described
from executors.errors import ConfigError, Halted
from executors.secrets import Secret
from executors.threads import LeftBehind, bounded

pytestmark = pytest.mark.anyio

HALT = Halted(bound="usd", scope="run", limit="1")
mood: ContextVar[str] = ContextVar("mood")


def fails() -> None:
    raise ValueError("x")


def halts() -> None:
    raise HALT


async def test_a_plain_function_runs_in_a_thread_of_its_own_with_the_callers_context() -> None:
    mood.set("calm")
    got = await attempt(lambda: (mood.get(), threading.current_thread().daemon))
    assert got == Returned(value=("calm", True))


async def test_a_coroutine_that_a_plain_function_hands_out_is_awaited() -> None:
    async def later() -> int:
        return 7

    def plain() -> Awaitable[int]:
        return later()

    assert await attempt(plain) == Returned(value=7)


async def test_what_it_raised_is_a_value_and_a_halt_passes_through() -> None:
    assert isinstance(await attempt(fails), Raised)
    assert isinstance(attempt_now(fails), Raised)
    with pytest.raises(Halted):
        await attempt(halts)
    with pytest.raises(Halted):
        attempt_now(halts)


async def test_a_halt_inside_a_task_group_passes_through_and_a_fault_is_told_by_itself() -> None:
    async def groups(error: Exception) -> None:
        async with anyio.create_task_group() as outer:

            async def inner() -> None:
                async with anyio.create_task_group():
                    raise error

            outer.start_soon(inner)

    with pytest.raises(Halted):
        await attempt(groups, HALT)
    got = await attempt(groups, ValueError("deep down"))
    assert isinstance(got, Raised)
    assert described(got.error) == "ValueError: deep down"


async def test_what_takes_too_long_is_overdue_and_a_cancel_of_its_own_stays_inside() -> None:
    got = await attempt(anyio.sleep_forever, seconds=0.01)
    assert got == Overdue(seconds=0.01, runs_on=False)
    with anyio.move_on_after(0.01):  # its scope is not ours
        await attempt(anyio.sleep_forever, seconds=5)
    await anyio.lowlevel.checkpoint()


async def test_a_thread_that_hangs_is_left_behind_at_its_deadline() -> None:
    free = threading.Event()
    assert await bounded(free.wait, seconds=0.01) == LeftBehind(seconds=0.01)
    free.set()


async def test_what_a_thread_raised_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ValueError, match="x"):
        await bounded(fails)


async def test_a_cancelled_caller_waits_for_its_thread_at_most_so_long() -> None:
    free = threading.Event()
    with anyio.move_on_after(0.01) as scope:
        await bounded(free.wait, longest=0.01)
    assert scope.cancelled_caught
    assert not free.is_set()
    free.set()


def test_an_error_is_described_in_one_bounded_line_without_secrets() -> None:
    Secret("canary-55aa77")
    assert described(ValueError("a\n  canary-55aa77")) == "ValueError: a [secret]"
    assert described(ValueError()) == "ValueError"
    assert described(ConfigError("bad key", where="here")) == "ConfigError: bad key"
    assert len(described(ValueError("x" * 100_000))) < 600


def test_an_error_that_cannot_say_what_it_is_has_its_name_alone() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("not even that")

    assert described(Mute()) == "Mute"
