"""The tools that a worker is offered: the caller's, and ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from executors.boundary import Raised, attempt_now, described
from executors.loop.worker import Tools, check_tools
from executors.tools.base import Tool

__all__ = ["offered"]


def offered(given: Tools, mine: Sequence[Tool], warn: Callable[[str, str], None]) -> Tools:
    """Return the caller's tools and ours.

    Where a function gives them, what it does wrong takes its own tools away, and never ours.

    Args:
        warn: hears, as code and message, that the function failed and the former tools stay.
    """
    if not mine:
        return given
    if not callable(given):
        return (*given, *mine)
    return _Anew(given, tuple(mine), warn)


class _Anew:
    """Tools that are asked for before each round."""

    def __init__(
        self,
        given: Callable[[], Sequence[Tool]],
        mine: tuple[Tool, ...],
        warn: Callable[[str, str], None],
    ) -> None:
        self._given = given
        self._mine = mine
        self._warn = warn
        self._former: tuple[Tool, ...] = ()

    def __call__(self) -> Sequence[Tool]:
        got = attempt_now(self._fresh)
        if isinstance(got, Raised):
            self._warn("tools", f"the former tools stay: tools() raised {described(got.error)}")
        else:
            self._former = cast("tuple[Tool, ...]", got.value)
        return (*self._former, *self._mine)

    def _fresh(self) -> tuple[Tool, ...]:
        tools = tuple(self._given())
        check_tools((*tools, *self._mine))
        return tools
