"""Whether a caller's function would only hand out a coroutine, told before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable

__all__ = ["is_async"]


def is_async(function: Callable[..., object]) -> bool:
    """Return whether a call gives a coroutine: of a function, a partial one, or an object's call."""
    call: object = getattr(type(function), "__call__", None)  # noqa: B004 - its kind, not its being
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
