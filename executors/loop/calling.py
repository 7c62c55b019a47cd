"""The tool calls of one round: permitted in order, run side by side where they may be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never, cast

import anyio
import anyio.lowlevel

from executors.engine.groups import ungrouped
from executors.errors import Halted
from executors.gate.decisions import Allow, Deny, Halt
from executors.loop.boundary import Raised, attempt_now, described
from executors.loop.grouping import batches, chains
from executors.loop.permits import Warn, decide
from executors.loop.running import Result, Running
from executors.loop.streaks import Streaks
from executors.loop.telling import Telling
from executors.loop.toolbox import Toolbox
from executors.loop.worker import ToolRequest, Worker
from executors.messages import Message, ToolCall
from executors.tools.arguments import Unfit, read_arguments
from executors.tools.base import Arguments, Tool
from executors.tools.results import shown

__all__ = ["Calling", "Tripped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tripped:
    """A guard ended the worker; calls without a result were not run."""

    reason: Literal["denied", "stuck", "stopped"]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A call that can be run."""

    index: int
    call: ToolCall
    tool: Tool
    arguments: Arguments
    paths: Collection[str]
    running: Running

    @property
    def parallel(self) -> bool:
        return self.tool.parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hopeless:
    """A call that no tool can take; it holds up nobody."""

    index: int
    call: ToolCall
    why: str
    parallel: bool = True


class Calling:
    """Runs the calls of one round.

    Attributes:
        results: what came of them, by index; those that were not run are missing.
    """

    def __init__(
        self, worker: Worker, toolbox: Toolbox, streaks: Streaks, *, round_: int, warn: Warn
    ) -> None:
        self._worker = worker
        self._toolbox = toolbox
        self._streaks = streaks
        self._round = round_
        self._warn = warn
        self._telling = Telling(worker, round_)
        self.results: dict[int, Result] = {}

    async def run(self, calls: Sequence[ToolCall]) -> Tripped | None:
        """Run all of them; return the guard that ended it before.

        Raises:
            Halted: the policy, a tool or the disk says that the run has to stop.
        """
        stop = self._worker.stop
        try:
            prepared = [self._prepared(index, call) for index, call in enumerate(calls)]
            for batch in batches(prepared, _is_parallel):
                await anyio.lowlevel.checkpoint()
                if stop is not None and stop.asked:
                    return Tripped(reason="stopped", detail=stop.error().limit)
                if (tripped := await self._batch(batch)) is not None:
                    return tripped
        except Halted:
            self._telling.cut("halted")
            raise
        except BaseException:
            self._telling.cut("cancelled")
            raise
        return None

    def turns(self, calls: Sequence[ToolCall]) -> list[Message]:
        """Return the results that are there as turns, in the order of the calls."""
        return [
            Message(role="tool", content=self.results[index].text, call_id=call.id)
            for index, call in enumerate(calls)
            if index in self.results
        ]

    # ---------------------------------------------------------------- before they run

    def _prepared(self, index: int, call: ToolCall) -> _Ready | _Hopeless:
        tool = self._toolbox.find(call.name)
        if tool is None:
            there = ", ".join(map(repr, self._toolbox.names)) or "none"
            why = f"there is no tool {call.name[:80]!r}; there are: {there}"
            return _Hopeless(index=index, call=call, why=why)
        arguments = read_arguments(tool, call.arguments)
        if isinstance(arguments, Unfit):
            why = f"the arguments of the tool {tool.name!r} do not fit: {arguments.reason}"
            return _Hopeless(index=index, call=call, why=why)
        touched = _touched(tool, arguments)
        if isinstance(touched, Raised):
            why = f"the tool {tool.name!r} cannot say what it touches: {described(touched.error)}"
            return _Hopeless(index=index, call=call, why=why)
        running = Running(self._worker, tool, call, arguments, round_=self._round, index=index)
        return _Ready(
            index=index, call=call, tool=tool, arguments=arguments, paths=touched, running=running
        )

    async def _permitted(self, one: _Ready) -> Result | None:
        """Return the result of what is not to run; None where it is."""
        worker = self._worker
        if (found := one.running.found()) is not None:
            self._streaks.allowed()
            return found
        request = ToolRequest(
            tool=one.tool.name,
            arguments=one.arguments,
            context=worker.context,
            node=worker.node,
            depth=worker.depth,
        )
        decision = await decide(worker.policy, request, ask=worker.ask, warn=self._warn)
        match decision:
            case Allow():
                self._streaks.allowed()
                return None
            case Deny(reason=reason):
                text = f"Denied: {reason or f'the tool {one.tool.name!r} is not allowed here'}"
                limit = worker.guards.result_characters
                return Result(text=shown(text, limit), end="denied")
            case Halt(rule=rule, reason=reason):
                raise Halted(bound=rule, scope=f"node {worker.node}", limit=reason)
            case _:
                assert_never(decision)

    # ---------------------------------------------------------------- running

    async def _batch(self, batch: Sequence[_Ready | _Hopeless]) -> Tripped | None:
        ready: list[_Ready] = []
        denied: Tripped | None = None
        for one in batch:
            self._telling.started(one.index, one.call)
            if isinstance(one, _Hopeless):
                self._settle(one.index, self._error(one.why))
            elif (result := await self._permitted(one)) is None:
                ready.append(one)
            else:
                source = one.index, result
                self._settle(*source, from_journal=result.end != "denied")
                if result.end == "denied" and self._streaks.denied():
                    denied = Tripped(reason="denied", detail=one.tool.name)
                    break
        await self._side_by_side(ready)
        return self._stuck(batch) or denied

    async def _side_by_side(self, ready: Sequence[_Ready]) -> None:
        lines = chains(ready, _paths)
        if len(lines) == 1:
            return await self._one_after_another(lines[0])
        with ungrouped():
            async with anyio.create_task_group() as group:
                for line in lines:
                    group.start_soon(self._one_after_another, line)
        return None

    async def _one_after_another(self, line: Sequence[_Ready]) -> None:
        for one in line:
            self._settle(one.index, await one.running.run(), ran=True)

    def _settle(
        self, index: int, result: Result, *, ran: bool = False, from_journal: bool = False
    ) -> None:
        self.results[index] = result
        self._telling.finished(
            index,
            result.end,
            source="run" if ran else "journal" if from_journal else "none",
            characters=len(result.text),
        )

    def _error(self, why: str) -> Result:
        limit = self._worker.guards.result_characters
        return Result(text=shown(f"Error: {why}", limit), end="unfit")

    # ---------------------------------------------------------------- after they ran

    def _stuck(self, batch: Sequence[_Ready | _Hopeless]) -> Tripped | None:
        """Count in the order of the calls, so that it does not matter who was done first."""
        for one in batch:
            if (result := self.results.get(one.index)) is None:
                continue
            name, arguments = one.call.name, one.call.arguments
            match result.end:
                case "failed" | "unfit":
                    again = self._streaks.failed(name, arguments)
                case "done":
                    again = self._streaks.succeeded(name, arguments, result.text)
                case _:
                    continue
            if again:
                return Tripped(reason="stuck", detail=name)
        return None


def _is_parallel(one: _Ready | _Hopeless) -> bool:
    return one.parallel


def _paths(one: _Ready) -> Collection[str]:
    return one.paths


def _touched(tool: Tool, arguments: Arguments) -> Collection[str] | Raised:
    if tool.paths is None:
        return ()
    paths = tool.paths
    got = attempt_now(lambda: tuple([str(path) for path in paths(arguments)]))
    return got if isinstance(got, Raised) else cast("tuple[str, ...]", got.value)
