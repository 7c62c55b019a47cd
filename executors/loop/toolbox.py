"""The tools that a worker has in a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from executors.boundary import Raised, attempt_now, described
from executors.errors import UsageError
from executors.loop.worker import Tools, check_tools
from executors.messages import ToolSpec
from executors.tools.arguments import check_schema
from executors.tools.base import Tool

__all__ = ["Toolbox"]


class Toolbox:
    """Tools by name. Where a function gives them it is asked anew before each round.

    Args:
        warn: hears, as code and message, that the function failed and the former tools stay.
        offers: whether a model is told of a tool; one that it names all the same is found.

    Raises:
        ValidationError: tools given as such that are none, or whose schema is broken.
    """

    def __init__(
        self,
        tools: Tools,
        warn: Callable[[str, str], None],
        offers: Callable[[str], bool] | None = None,
    ) -> None:
        self._given = tools
        self._warn = warn
        self._offers = offers or _always
        self._tools: dict[str, Tool] = {} if callable(tools) else _checked(tools)

    def refresh(self) -> None:
        """Ask for the tools anew."""
        if not callable(self._given):
            return
        got = attempt_now(self._given)
        if isinstance(got, Raised):
            self._warn("tools", f"the former tools stay: tools() raised {described(got.error)}")
            return
        try:
            self._tools = _checked(cast("Sequence[Tool]", got.value))
        except (UsageError, TypeError) as error:  # what it gave is no list of tools
            self._warn("tools", f"the former tools stay: {described(error)}")

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told."""
        return tuple([tool.spec for name, tool in self._tools.items() if self._offers(name)])

    @property
    def names(self) -> list[str]:
        """The names that the model is told, in order."""
        return [name for name in self._tools if self._offers(name)]

    def find(self, name: str) -> Tool | None:
        """Return the tool of a name."""
        return self._tools.get(name)


def _always(_name: str) -> bool:
    return True


def _checked(given: Sequence[Tool]) -> dict[str, Tool]:
    tools = tuple(given)  # a generator would give them once
    check_tools(tools)
    for tool in tools:
        check_schema(tool)
    return {tool.name: tool for tool in tools}
