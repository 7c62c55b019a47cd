"""An event loop whose time jumps to the next timer as soon as nothing else is to be done."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import anyio

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Never waits: what it was to wait for is added to the time."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing is left that could ever happen")
        if timeout > 0:
            self.skipped += timeout
        return super().select(0)


class HastyLoop(asyncio.SelectorEventLoop):
    """Time is made of timers alone: what is computed takes none. No sockets, no threads."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.skipped


class LoopClock:
    """The running loop's time as a `Clock`."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))


def run_hastily(work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Return what the work returns, in no time."""
    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        return runner.run(work())
