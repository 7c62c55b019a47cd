"""Work in a thread outlives no caller that was cancelled."""

import asyncio
import threading
from collections.abc import Callable

import anyio
import anyio.to_thread
import pytest

from executors.threads import _Work, to_its_end

pytestmark = pytest.mark.anyio


class Gate:
    """Work that begins, and ends when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()
        self.ended = False

    def work(self) -> str:
        self.begun.set()
        assert self.go.wait(10)
        self.ended = True
        return "done"


async def test_what_the_work_returns_and_raises_comes_back() -> None:
    def broken() -> None:
        raise ValueError("broken")

    assert await to_its_end(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ValueError, match="broken"):
        await to_its_end(broken)


def by_asyncio(task: "asyncio.Task[str]", _: anyio.CancelScope) -> None:
    task.cancel()


def by_scope(_: "asyncio.Task[str]", scope: anyio.CancelScope) -> None:
    scope.cancel()


@pytest.mark.parametrize("cancel", [by_asyncio, by_scope])
async def test_who_is_cancelled_waits_until_the_work_has_ended(
    cancel: Callable[["asyncio.Task[str]", anyio.CancelScope], None],
) -> None:
    """Ctrl-C cancels by asyncio, which no scope of anyio holds back."""
    gate, scope = Gate(), anyio.CancelScope()
    seen: list[bool] = []

    async def caller() -> str:
        with scope:
            try:
                return await to_its_end(gate.work)
            finally:
                seen.append(gate.ended)
        return "left"

    async with asyncio.TaskGroup() as group:
        task = group.create_task(caller())
        await anyio.to_thread.run_sync(gate.begun.wait)
        cancel(task, scope)
        await asyncio.sleep(0.05)
        assert seen == []
        gate.go.set()
    assert seen == [True]


async def test_the_wait_is_bounded() -> None:
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(to_its_end(gate.work, longest=0.05))
        await anyio.to_thread.run_sync(gate.begun.wait)
        task.cancel()
        await asyncio.wait([task])
        assert not gate.ended
        gate.go.set()


def test_work_that_was_called_off_before_it_began_never_begins() -> None:
    """A thread may pick it up in the instant in which its caller leaves."""
    begun: list[None] = []
    work = _Work(lambda: begun.append(None))
    assert not work.is_running()
    with pytest.raises(RuntimeError):
        work.run()
    assert begun == []
