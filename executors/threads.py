"""Work in a thread that nobody walks away from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from anyio import move_on_after, to_thread

__all__ = ["to_its_end"]

T = TypeVar("T")

_LONGEST: Final = 10.0


async def to_its_end(work: Callable[[], T], *, longest: float = _LONGEST) -> T:
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
