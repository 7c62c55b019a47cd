"""A run on the loop that Ctrl-C asks to stop, while its time shows."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import anyio

from executors.engine.stop import Stop
from executors.errors import InternalError, RlmError
from rlm.cli.stopping import stopping

__all__ = ["stoppable"]

T = TypeVar("T")


async def stoppable(
    work: Callable[[Stop], Awaitable[T]], ticking: Callable[[], Coroutine[object, object, None]]
) -> T:
    """Return what the work comes to; the first Ctrl-C asks its stop.

    Args:
        ticking: shows that time passes; runs until it is cancelled.
    """
    stop = Stop()
    found: list[T] = []
    failed: RlmError | KeyboardInterrupt | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(ticking)
        try:
            with stopping(stop, sys.stderr):
                found.append(await work(stop))
        except (RlmError, KeyboardInterrupt) as error:
            failed = error  # leaving the group it would be wrapped in a group of errors
        group.cancel_scope.cancel()
    if not found:
        raise failed or InternalError("a run ended without an outcome")
    return found[0]
