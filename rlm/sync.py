"""Sync twins: an async function run to its end on an event loop of our own, in a thread.

One loop serves all twins of a process, so that connections outlive a call. It works in scripts and
notebooks alike, is made anew after a fork or when something broke it, and ends with `close()`.

Ctrl-C arrives in the caller's thread. It cancels the work and comes out once the work has ended:
the next cell of a notebook finds no request of the last one still running.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Final, Generic, ParamSpec, TypeVar, cast

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from executors.engine.stop import GRACE
from executors.errors import UsageError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["close", "sync_twin"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    manager: AbstractContextManager[BlockingPortal]
    portal: BlockingPortal
    thread: int

    def end(self) -> None:
        """End the loop and its thread, once what runs there has ended."""
        self.manager.__exit__(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How work ended that raised what is no Exception."""

    error: BaseException


_SLICE: Final = 0.5  # seconds

_lock = threading.Lock()
_open: _Loop | None = None
# Loops of a parent process. Their threads are gone after a fork, and even to finalise one of them
# would wait for its thread for ever.
_orphans: list[_Loop] = []


def _forked() -> None:
    global _lock, _open
    _lock = threading.Lock()
    if _open is not None:
        _orphans.append(_open)
        _open = None


os.register_at_fork(after_in_child=_forked)


def _portal() -> BlockingPortal:
    global _open
    with _lock:
        if _open is None:
            manager = start_blocking_portal("asyncio")
            portal = manager.__enter__()
            thread = portal.call(threading.get_ident)
            _open = _Loop(manager=manager, portal=portal, thread=thread)
        return _open.portal


def _taken(portal: BlockingPortal) -> _Loop | None:
    """Take a loop out of use and return it to be ended; None when it is out of use already."""
    global _open
    with _lock:
        if _open is None or _open.portal is not portal:
            return None
        loop, _open = _open, None
        return loop


def close() -> None:
    """End the loop and its thread; the next sync call starts a new one."""
    if _open is not None and (loop := _taken(_open.portal)) is not None:
        loop.end()


atexit.register(close)


class _Call(Generic[R]):
    """One call of a twin: what runs on the loop, and its end from outside."""

    def __init__(self, work: Callable[[], Awaitable[R]]) -> None:
        self._work = work
        self._unwanted = False
        self._ended = threading.Event()
        self._running: tuple[AbstractEventLoop, anyio.CancelScope] | None = None
        self._portal: BlockingPortal | None = None
        self.notes: tuple[str, ...] = ()
        """What the work noted at its end, for whoever ended it from outside."""

    def start(self) -> Future[R | _Ended]:
        """Begin the work on the loop that is open."""
        self._portal = _portal()
        try:
            return self._portal.start_task_soon(self._run)
        except RuntimeError:
            # What ran there before broke the loop: nothing of this work has begun.
            if (broken := _taken(self._portal)) is not None:
                broken.end()
            self._portal = _portal()
            return self._portal.start_task_soon(self._run)

    async def _run(self) -> R | _Ended:
        import asyncio  # heavy; the loop that runs this has loaded it

        try:
            with anyio.CancelScope() as scope:
                self._running = asyncio.get_running_loop(), scope
                if self._unwanted:
                    scope.cancel()
                try:
                    return await self._work()
                except BaseException as error:
                    self.notes = tuple(getattr(error, "__notes__", ()))
                    raise
            return _Ended(error=KeyboardInterrupt())  # for nobody: who asked is gone
        except ExceptionGroup:
            raise
        except (KeyboardInterrupt, SystemExit, BaseExceptionGroup) as error:
            # SystemExit and its like would end the loop; they are the caller's alone.
            return _Ended(error=_innermost(error))
        finally:
            self._ended.set()

    def give_up(self) -> None:
        """Cancel the work, and wait for its end within the grace.

        Code that blocks the loop is left behind with it: the next call gets a loop of its own.
        """
        # In this order: work that begins from now on sees it, work that has begun is cancelled.
        self._unwanted = True
        if self._running is not None:
            loop, scope = self._running
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(scope.cancel)
        if self._portal is None:
            return
        try:
            self._ended.wait(GRACE)
        finally:  # also when Ctrl-C is pressed again
            if not self._ended.is_set() and (blocked := _taken(self._portal)) is not None:
                threading.Thread(target=blocked.end, name="rlm leaves a loop", daemon=True).start()


def sync_twin(function: Callable[P, Awaitable[R]]) -> Callable[P, R]:
    """Return a blocking twin of an async function, with the same parameters.

    Raises:
        UsageError: the twin is called from the loop that it would have to wait for.
    """

    @wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        if _open is not None and threading.get_ident() == _open.thread:
            raise UsageError(
                f"{function.__name__}_sync was called from inside rlm's own event loop",
                hint=f"await {function.__name__}(...) there instead",
            )
        call = _Call(lambda: function(*args, **kwargs))
        context = contextvars.copy_context()
        try:
            value = _waited(context.run(call.start))
        except Exception:
            raise  # of the work, which has ended
        except BaseException as error:
            call.give_up()
            for note in call.notes:
                error.add_note(note)
            raise
        if isinstance(value, _Ended):
            raise value.error
        return value

    twin.__name__ = twin.__qualname__ = f"{function.__name__}_sync"
    return twin


def _waited(future: Future[R]) -> R:
    # In slices: of a signal that comes just before a wait, Python hears after it.
    while not future.done():
        wait([future], timeout=_SLICE)
    return future.result()


def _innermost(error: BaseException) -> BaseException:
    """Return the first of a group that is no Exception, since it says how the work ended."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = next(one for one in group.exceptions if not isinstance(one, Exception))
    return error
