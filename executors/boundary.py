"""Where what a caller's function raised becomes a value, so that it is no fault of the run.

Halts and cancellation are no faults: they pass through.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import cast

from anyio import get_cancelled_exc_class, move_on_after

from executors.coroutines import is_async
from executors.errors import Halted, RlmError
from executors.secrets import scrub
from executors.threads import LONGEST, LeftBehind, bounded

__all__ = ["Attempt", "Overdue", "Raised", "Returned", "attempt", "attempt_now", "described"]

_SHOWN = 500  # characters of an error's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """It gave a value."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """It raised, or tried to end the process."""

    error: BaseException


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """It did not end in time."""

    seconds: float
    runs_on: bool
    """A plain function cannot be stopped: its thread goes on until it ends by itself."""


Attempt = Returned | Raised | Overdue


async def attempt(
    function: Callable[..., object],
    *arguments: object,
    seconds: float = inf,
    waiting: Callable[[], None] | None = None,
    longest: float = LONGEST,
) -> Attempt:
    """Call a function of a caller's: on this loop where it is asynchronous, else in a thread.

    Args:
        seconds: it may take; 0 and infinity bound nothing.
        waiting: hears at once that this was cancelled, and has to wait for a thread to end.
        longest: seconds of that; 0 for what may be left behind at once.
    """
    cancels = _cancels()
    got = await _tried(partial(function, *arguments), function, seconds or inf, waiting, longest)
    if _cancels() > cancels:
        # It made a result of a cancellation that was meant for us. Cancelled once is cancelled.
        raise get_cancelled_exc_class()
    return got


async def _tried(
    call: Callable[[], object],
    function: Callable[..., object],
    limit: float,
    waiting: Callable[[], None] | None,
    longest: float,
) -> Attempt:
    cancels = _cancels()
    try:
        if is_async(function):
            return await _awaited(cast("Awaitable[object]", call()), limit)
        value = await bounded(call, seconds=limit, longest=longest, waiting=waiting)
        if isinstance(value, LeftBehind):
            return Overdue(seconds=limit, runs_on=True)
        if inspect.isawaitable(value):
            return await _awaited(value, limit)
        return Returned(value=value)
    except (Halted, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # the boundary: a caller's code
        if isinstance(error, get_cancelled_exc_class()) and _cancels() > cancels:
            raise  # else something that it waited for was cancelled, not this task
        if (halt := _halt_in(error)) is not None:
            raise halt from None
        return Raised(error=error)


def attempt_now(function: Callable[..., object], *arguments: object) -> Returned | Raised:
    """Call a plain function of a caller's at once, on this thread."""
    try:
        return Returned(value=function(*arguments))
    except Halted:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary: a caller's code
        return Raised(error=error)


def described(error: BaseException) -> str:
    """Return what an error says, in one bounded text without secrets."""
    while isinstance(error, BaseExceptionGroup):  # what a task group says of itself tells nothing
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    words = error.what if isinstance(error, RlmError) else _words(error)
    text = scrub(" ".join(words[: 4 * _SHOWN].split()))
    name = type(error).__name__
    return f"{name}: {text[:_SHOWN]}" if text else name


def _words(error: BaseException) -> str:
    got = attempt_now(str, error)  # its class may be a caller's too
    return got.value if isinstance(got, Returned) and isinstance(got.value, str) else ""


def _halt_in(error: BaseException) -> Halted | None:
    """Return a halt that a task group of the caller's has wrapped: no group may swallow one."""
    if not isinstance(error, BaseExceptionGroup):
        return None
    halts = cast("BaseExceptionGroup[BaseException]", error).subgroup(Halted)
    while isinstance(halts, BaseExceptionGroup):
        inner = halts.exceptions[0]
        if isinstance(inner, Halted):
            return inner
        halts = inner
    return None


async def _awaited(coming: Awaitable[object], limit: float) -> Returned | Overdue:
    with move_on_after(limit):
        return Returned(value=await coming)
    return Overdue(seconds=limit, runs_on=False)


def _cancels() -> int:
    """Return how often this very task was cancelled, less what a scope of its own took back."""
    from asyncio import current_task  # heavy; whoever runs a tool has a loop and so has loaded it

    task = current_task()
    return 0 if task is None else task.cancelling()
