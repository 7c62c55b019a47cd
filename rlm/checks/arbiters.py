"""Code of the caller's that judges: run with a deadline, and never mistaken for a bad result.

An arbiter that raises, hangs or says nothing usable is broken itself. That is a value with a label,
so that nobody tries again against it, and nobody looks for the fault in the model.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from math import inf
from pathlib import PurePath
from typing import Final, Literal, TypeVar, cast

from anyio import move_on_after

from executors.coroutines import is_async
from executors.errors import Halted, RlmError, ValidationError
from executors.secrets import scrub
from rlm.checks.verdict import Unusable

__all__ = ["DEADLINE", "Broken", "BrokenKind", "describe_thrown", "require_deadline", "run_arbiter"]

BrokenKind = Literal["broken-sensor", "broken-synthesis", "broken-verifier", "verifier-unavailable"]
DEADLINE: Final = 120.0
"""Seconds that an arbiter may take, unless said otherwise."""
_DETAIL: Final = 200
# What may be told of an object that was thrown without a message: what went wrong and where.
_TELLING: Final = (
    "name",
    "code",
    "errno",
    "syscall",
    "path",
    "filename",
    "status",
    "signal",
    "message",
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """There is no verdict, since who judges is at fault."""

    kind: BrokenKind
    detail: str
    """What happened, for people; at most 200 characters."""


def require_deadline(value: object) -> None:
    """See to it that a deadline is one.

    Raises:
        ValidationError: it is no number of seconds, or not above 0, or endless.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < cast("float", value) < inf:
        raise ValidationError(f"deadline={value!r}"[:200], hint="give seconds above 0")


async def run_arbiter(
    function: Callable[..., object],
    *arguments: object,
    read: Callable[[object], T | Unusable],
    kind: BrokenKind,
    deadline: float = DEADLINE,
) -> T | Broken:
    """Return what the caller's code says, or how it broke.

    A coroutine function runs on the loop. A plain one runs in a thread of its own: when it hangs it
    is left behind there, which is said, since nothing can end a thread; it does not keep the program
    from ending.

    Args:
        read: makes of the value what is wanted.
        deadline: seconds.

    Raises:
        Halted: the arbiter says that the run stops.
    """
    plain, cancels = not is_async(function), _cancels()
    try:
        with move_on_after(deadline) as scope:
            value = await _called(function, arguments, threaded=plain)
            if isinstance(value, Broken):  # it asked another, and says so itself
                return value
            found = read(value)
            if isinstance(found, Unusable):
                wanted = "result" if kind == "broken-synthesis" else "verdict"
                return _broken(kind, f"what it returned is no {wanted}: {found.what}")
            return found
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # the caller's code: its faults are none of the result
        if isinstance(error, asyncio.CancelledError) and _cancels() > cancels:
            raise  # else it was something that the caller's code waited for
        halted = _halt_in(error)
        if halted is not None:
            raise halted from error
        return _broken(kind, describe_thrown(error))
    assert scope.cancelled_caught
    left = "; it is left behind in its thread" if plain else ""
    return _broken(kind, f"it did not answer within {deadline:g} s{left}")


def describe_thrown(error: BaseException) -> str:
    """Return what was raised in at most 200 characters: its message, else its telling fields.

    Never a whole object: that may hold outputs, environments and keys.
    """
    if isinstance(error, RlmError):
        return _line("; ".join(part for part in (error.what, error.hint) if part))
    name = type(error).__name__
    fields = _thrown_fields(error)
    if fields is not None:
        told = " ".join(f"{key}={fields[key]}" for key in _TELLING if _is_plain(fields.get(key)))
        return _line(f"{name}: {told}" if told else name)
    # The library's own formatting, since the text of a foreign error may raise, too.
    return _line("".join(traceback.format_exception_only(type(error), error)))


def _thrown_fields(error: BaseException) -> Mapping[str, object] | None:
    """Return the fields of an error that has no message; None where it has one."""
    if all(isinstance(part, str | int | float | PurePath | None) for part in error.args):
        if error.args and any(part not in (None, "") for part in error.args):
            return None
        return {key: getattr(error, key) for key in _TELLING if hasattr(error, key)}
    if type(error).__str__ not in (Exception.__str__, BaseException.__str__):
        return None  # it words itself
    for part in cast("tuple[object, ...]", error.args):
        if isinstance(part, Mapping):
            held = cast("Mapping[object, object]", part)
            return {str(key): value for key, value in held.items()}
    return {}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | PurePath) and str(value) != ""


def _broken(kind: BrokenKind, detail: str) -> Broken:
    return Broken(kind=kind, detail=_line(detail))


def _line(text: str) -> str:
    line = " ".join(scrub(text).split())
    shown = "".join(char if char.isprintable() else "\ufffd" for char in line)
    return shown if len(shown) <= _DETAIL else f"{shown[: _DETAIL - 1]}…"


def _cancels() -> int:
    """Return how often this very task was cancelled, less what a scope of its own took back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _halt_in(error: BaseException) -> Halted | None:
    """Return the halt that was raised, also where a task group wrapped it."""
    if isinstance(error, BaseExceptionGroup):
        found = [
            _halt_in(inner) for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions
        ]
        return next((halted for halted in found if halted is not None), None)
    return error if isinstance(error, Halted) else None


# ---------------------------------------------------------------- calling


async def _called(
    function: Callable[..., object], arguments: tuple[object, ...], *, threaded: bool
) -> object:
    value = await _in_thread(function, arguments) if threaded else function(*arguments)
    while isawaitable(value):  # a plain function may hand out what is to be awaited
        value = await cast("Awaitable[object]", value)
    return value


async def _in_thread(function: Callable[..., object], arguments: tuple[object, ...]) -> object:
    """Run a function in a daemon thread; one of a pool would keep the program from ending."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    box = _Box()

    def run() -> None:
        try:
            box.value = context.run(function, *arguments)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            box.error = error
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop has ended meanwhile: nobody waits any more
            return

    context = contextvars.copy_context()
    threading.Thread(target=run, name="rlm arbiter", daemon=True).start()
    await done.wait()
    if box.error is not None:
        raise box.error
    return box.value


class _Box:
    """What a thread came to."""

    def __init__(self) -> None:
        self.value: object = None
        self.error: BaseException | None = None
