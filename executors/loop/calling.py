"""The tool calls of one round: permitted in order, run side by side where they may be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, Literal, assert_never

import anyio
import anyio.lowlevel

from executors.engine.groups import ungrouped
from executors.errors import Halted, ToolBroken
from executors.gate.decisions import Allow, Deny, Halt
from executors.gate.governor import halted_by
from executors.gate.rules.remedies import remedy
from executors.loop.governing import Governing
from executors.loop.grouping import batches, chains
from executors.loop.permits import Warn, decide
from executors.loop.preparing import Hopeless, Ready, prepared
from executors.loop.running import Result
from executors.loop.streaks import Streaks
from executors.loop.telling import Telling
from executors.loop.toolbox import Toolbox
from executors.loop.worker import ToolRequest, Worker
from executors.messages import Message, ToolCall
from executors.tools.base import Tool
from executors.tools.results import shown

__all__ = ["Calling", "Tripped"]

_SHOWN: Final = 300
_THREADS: Final = 32
"""Plain functions of one round that run at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tripped:
    """A guard ended the worker; calls without a result were not run."""

    reason: Literal["broken-tool", "denied", "stuck", "stopped"]
    detail: str
    error: ToolBroken | None = None


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
        self._governing = Governing(worker)
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._exits: list[KeyboardInterrupt] = []
        self._denied = ""
        self.results: dict[int, Result] = {}

    async def run(self, calls: Sequence[ToolCall]) -> Tripped | None:
        """Run all of them; return the guard that ended it before.

        Raises:
            Halted: the policy, the gate, a tool or the disk says that the run has to stop.
        """
        stop = self._worker.stop
        try:
            ready = [self._prepared(index, call) for index, call in enumerate(calls)]
            for batch in batches(ready, _is_parallel):
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
        finally:
            self._governing.drop()
        return None

    def turns(self, calls: Sequence[ToolCall]) -> list[Message]:
        """Return the results that are there as turns, in the order of the calls."""
        return [
            Message(role="tool", content=self.results[index].text, call_id=call.id)
            for index, call in enumerate(calls)
            if index in self.results
        ]

    # ---------------------------------------------------------------- before they run

    def _prepared(self, index: int, call: ToolCall) -> Ready | Hopeless:
        return prepared(self._worker, self._toolbox, call, round_=self._round, index=index)

    async def _permitted(self, one: Ready) -> Result | None:
        """Return the result of what is not to run; None where it is."""
        worker = self._worker
        if (found := one.running.found()) is not None:
            self._streaks.allowed()
            return found
        request = ToolRequest(
            tool=one.tool.name,
            # A copy: a policy cannot change what it allows.
            arguments=deepcopy(one.arguments),
            context=worker.context,
            node=worker.node,
            depth=worker.depth,
        )
        decision = await decide(worker.policy, request, ask=worker.ask, warn=self._warn)
        governed = isinstance(decision, Allow)
        if governed:
            arguments = deepcopy(one.arguments)
            decision = await self._governing.check(one.index, one.tool, arguments, one.running)
        match decision:
            case Allow():
                self._streaks.allowed()
                return None
            case Deny(reason=reason, rule=rule):
                why = " ".join(reason.split())[:_SHOWN]
                self._denied = f"{one.tool.name}{': ' if why else ''}{why}"
                if governed:
                    self._denied += f"; {remedy(rule)}"
                text = f"Denied: {reason or f'the tool {one.tool.name!r} is not allowed here'}"
                limit = worker.guards.result_characters
                return Result(text=shown(text, limit), end="denied")
            case Halt():
                raise halted_by(decision)
            case _:
                assert_never(decision)

    # ---------------------------------------------------------------- running

    async def _batch(self, batch: Sequence[Ready | Hopeless]) -> Tripped | None:
        ready: list[Ready] = []
        denied: Tripped | None = None
        for one in batch:
            self._telling.started(one.index, one.call)
            if isinstance(one, Hopeless):
                self._settle(one.index, self._error(one.why))
            elif (result := await self._permitted(one)) is None:
                ready.append(one)
            else:
                self._settle(
                    one.index, result, source="none" if result.end == "denied" else "journal"
                )
                if result.end == "denied" and self._streaks.denied():
                    denied = Tripped(reason="denied", detail=self._denied)
                    break
        await self._side_by_side(ready)
        return self._counted(batch) or denied

    async def _side_by_side(self, ready: Sequence[Ready]) -> None:
        lines = chains(ready, _paths)
        if len(lines) <= 1:
            for line in lines:
                await self._one_after_another(line)
            return
        with ungrouped():
            async with anyio.create_task_group() as group:
                for line in lines:
                    group.start_soon(self._in_a_task, line, group.cancel_scope)
        if self._exits:
            raise self._exits[0]

    async def _in_a_task(self, line: Sequence[Ready], group: anyio.CancelScope) -> None:
        try:
            await self._one_after_another(line)
        except KeyboardInterrupt as wanted:
            # Raised by a task of its own it would break the event loop, for all who use it.
            self._exits.append(wanted)
            group.cancel()

    async def _one_after_another(self, line: Sequence[Ready]) -> None:
        for one in line:
            async with self._threads if one.is_plain else nullcontext():
                result = await one.running.run()
            self._settle(one.index, result, source="run", stays=_stays(one.tool))
            await self._governing.record(one.index, result)

    def _settle(
        self,
        index: int,
        result: Result,
        *,
        source: Literal["run", "journal", "none"] = "none",
        stays: bool = False,
    ) -> None:
        self.results[index] = result
        self._telling.finished(
            index, result.end, source=source, characters=len(result.text), stays=stays
        )

    def _error(self, why: str) -> Result:
        limit = self._worker.guards.result_characters
        return Result(text=shown(f"Error: {why}", limit), end="unfit")

    # ---------------------------------------------------------------- after they ran

    def _counted(self, batch: Sequence[Ready | Hopeless]) -> Tripped | None:
        """Count in the order of the calls, so that it does not matter who was done first."""
        for one in batch:
            if (result := self.results.get(one.index)) is None:
                continue
            name, arguments = one.call.name, one.call.arguments
            if result.broken is not None:
                return Tripped(reason="broken-tool", detail=name, error=result.broken)
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


def _is_parallel(one: Ready | Hopeless) -> bool:
    return one.parallel


def _paths(one: Ready) -> Collection[str]:
    return one.paths


def _stays(tool: Tool) -> bool:
    """Whether a tool sends nothing anywhere by itself: files and children are of this run."""
    return tool.stays or tool.kind in ("read", "write", "edit", "spawn", "defer")
