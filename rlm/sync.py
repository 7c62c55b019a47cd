"""Sync twins: an async function run to its end on an event loop of our own, in a thread.

One loop serves all twins of a process, so that connections outlive a call. It works in scripts and
notebooks alike, is made anew after a fork or when something broke it, and ends with `close()`.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from executors.errors import UsageError

__all__ = ["close", "sync_twin"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    manager: AbstractContextManager[BlockingPortal]
    portal: BlockingPortal
    thread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How work ended that raised what is no Exception."""

    error: BaseException


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


def _start(work: Callable[[], Coroutine[object, object, R]]) -> Future[R]:
    portal = _portal()
    try:
        return portal.start_task_soon(work)
    except RuntimeError:
        # What ran there before broke the loop: nothing of this work has begun.
        _forget(portal)
        return _portal().start_task_soon(work)


def _forget(portal: BlockingPortal) -> None:
    global _open
    with _lock:
        if _open is not None and _open.portal is portal:
            loop, _open = _open, None
            loop.manager.__exit__(None, None, None)


def close() -> None:
    """End the loop and its thread; the next sync call starts a new one."""
    global _open
    with _lock:
        if _open is None:
            return
        loop, _open = _open, None
        loop.manager.__exit__(None, None, None)


atexit.register(close)


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
        context = contextvars.copy_context()

        async def run() -> R | _Ended:
            try:
                return await function(*args, **kwargs)
            except ExceptionGroup:
                raise
            except (KeyboardInterrupt, SystemExit, BaseExceptionGroup) as error:
                # SystemExit and its like would end the loop; they are the caller's alone.
                return _Ended(error=_innermost(error))

        future = context.run(_start, run)
        try:
            value = future.result()
        except BaseException:
            # Ctrl-C arrives here, in the caller's thread; the work must not go on without it.
            future.cancel()
            raise
        if isinstance(value, _Ended):
            raise value.error
        return value

    twin.__name__ = twin.__qualname__ = f"{function.__name__}_sync"
    return twin


def _innermost(error: BaseException) -> BaseException:
    """Return the first of a group that is no Exception, since it says how the work ended."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = next(one for one in group.exceptions if not isinstance(one, Exception))
    return error
