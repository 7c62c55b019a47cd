"""A call as its model wrote it, made ready to run, or the reason why it never can."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from executors.boundary import Raised, attempt_now, described
from executors.coroutines import is_async
from executors.loop.running import Running
from executors.loop.toolbox import Toolbox
from executors.loop.worker import Worker
from executors.messages import ToolCall
from executors.tools.arguments import Unfit, read_arguments
from executors.tools.base import Arguments, Tool

__all__ = ["Hopeless", "Ready", "prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A call that can be run."""

    index: int
    call: ToolCall
    tool: Tool
    arguments: Arguments
    paths: Collection[str]
    running: Running

    @property
    def parallel(self) -> bool:
        """Whether it may run beside others."""
        return self.tool.parallel

    @property
    def is_plain(self) -> bool:
        """Whether it takes a thread."""
        return not is_async(self.tool.execute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopeless:
    """A call that no tool can take; it holds up nobody."""

    index: int
    call: ToolCall
    why: str
    parallel: bool = True


def prepared(
    worker: Worker, toolbox: Toolbox, call: ToolCall, *, round_: int, index: int
) -> Ready | Hopeless:
    """Find the tool of a call, and hold its arguments against the schema."""
    tool = toolbox.find(call.name)
    if tool is None:
        there = ", ".join(map(repr, toolbox.names)) or "none"
        why = f"there is no tool {call.name[:80]!r}; there are: {there}"
        return Hopeless(index=index, call=call, why=why)
    arguments = read_arguments(tool, call.arguments)
    if isinstance(arguments, Unfit):
        why = f"the arguments of the tool {tool.name!r} do not fit: {arguments.reason}"
        return Hopeless(index=index, call=call, why=why)
    touched = _touched(tool, arguments)
    if isinstance(touched, Raised):
        why = f"the tool {tool.name!r} cannot say what it touches: {described(touched.error)}"
        return Hopeless(index=index, call=call, why=why)
    running = Running(worker, tool, call, arguments, round_=round_, index=index)
    return Ready(
        index=index, call=call, tool=tool, arguments=arguments, paths=touched, running=running
    )


def _touched(tool: Tool, arguments: Arguments) -> Collection[str] | Raised:
    if tool.paths is None:
        return ()
    paths = tool.paths
    got = attempt_now(lambda: tuple([str(path) for path in paths(arguments)]))
    return got if isinstance(got, Raised) else cast("tuple[str, ...]", got.value)
