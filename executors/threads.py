"""Work in a thread that nobody walks away from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from math import inf
from typing import Final, Generic, TypeVar

import anyio
from anyio import move_on_after, to_thread

__all__ = ["LONGEST", "LeftBehind", "bounded", "to_its_end"]

T = TypeVar("T")

LONGEST: Final = 10.0


async def to_its_end(work: Callable[[], T], *, longest: float = LONGEST) -> T:
    """Run work in a worker thread; whoever is cancelled meanwhile waits until it has ended.

    Scopes of anyio see to that by themselves. A task that asyncio cancels, as Ctrl-C does, goes on
    at once, and would clean up what the thread is still at work on.

    Args:
        longest: seconds that a cancelled caller waits: a disk that is gone may never answer.
    """
    it = _Work(work)
    try:
        return await to_thread.run_sync(it.run)
    except BaseException:
        if it.is_running():
            with move_on_after(longest, shield=True):
                await to_thread.run_sync(it.ended.wait, abandon_on_cancel=True)
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """Work that did not end in time. Its thread goes on, and holds up nobody, not even our exit."""

    seconds: float


async def bounded(
    work: Callable[[], T],
    *,
    seconds: float = inf,
    longest: float = LONGEST,
    waiting: Callable[[], None] | None = None,
) -> T | LeftBehind:
    """Run work in a thread of its own, and leave it behind where it takes too long.

    Args:
        seconds: that it may take.
        longest: seconds that a cancelled caller waits for it to end.
        waiting: hears at once that a cancelled caller has to wait; must not raise.
    """
    it: _Alone[T] = _Alone(work)
    it.start()
    try:
        with move_on_after(seconds):
            await it.ended.wait()
    except BaseException:
        if waiting is not None and not it.ended.is_set():
            waiting()
        with move_on_after(longest, shield=True):
            await it.ended.wait()
        raise
    return it.outcome() if it.ended.is_set() else LeftBehind(seconds=seconds)


class _Alone(Generic[T]):
    """Work in a thread of its own: those of a pool are waited for when the process ends."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = copy_context()
        self._value: list[T] = []
        self._error: BaseException | None = None
        self.ended = anyio.Event()

    def start(self) -> None:
        """Begin."""
        import asyncio  # heavy; whoever waits has a loop and so has loaded it

        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                self._value.append(self._context.run(self._work))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self._error = error
            with suppress(RuntimeError):  # its loop has ended, and so has who waited
                loop.call_soon_threadsafe(self.ended.set)

        threading.Thread(target=run, name="rlm bounded work", daemon=True).start()

    def outcome(self) -> T:
        """Return what it gave, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._value[0]


class _Work(Generic[T]):
    """Work that can be called off until it has begun."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._begun = self._off = False
        self.ended = threading.Event()

    def run(self) -> T:
        with self._lock:
            if self._off:
                raise RuntimeError("called off")  # heard by nobody
            self._begun = True
        try:
            return self._work()
        finally:
            self.ended.set()

    def is_running(self) -> bool:
        """Whether it has begun and not ended; what has not begun never will."""
        with self._lock:
            self._off = True
            return self._begun and not self.ended.is_set()
