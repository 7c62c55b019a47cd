"""What a gate says of the tool calls of one round, and hears of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from executors.boundary import Raised, attempt_now, described
from executors.gate.decisions import Allow, Deny, Settled
from executors.gate.governor import Deed, Done
from executors.loop.running import Result, Running
from executors.loop.worker import Worker
from executors.replies import JsonValue
from executors.tools.base import Tool

__all__ = ["Governing"]


class Governing:
    """The gate of a worker, as its calls pass it; without one everything goes."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._open: dict[int, tuple[Deed, str]] = {}

    async def check(
        self, index: int, tool: Tool, arguments: Mapping[str, JsonValue], running: Running
    ) -> Settled:
        """Decide about one call; what is allowed stays open until it is recorded or dropped."""
        worker = self._worker
        if worker.governor is None or running.admitted:
            return Allow()
        judged = _judged(tool, arguments)
        if isinstance(judged, Raised):
            why = f"the tool {tool.name!r} cannot say what it would do: {described(judged.error)}"
            return Deny(rule="tool.judged", reason=why)
        deed = Deed(
            tool=tool.name,
            kind=tool.kind,
            arguments=judged,
            context=worker.context,
            node=worker.node,
            depth=worker.depth,
        )
        decision = await worker.governor.check(deed)
        if isinstance(decision, Deny):  # the model may do better when it knows the rule
            return replace(decision, reason=f"{decision.reason} [{decision.rule}]".lstrip())
        if isinstance(decision, Allow):
            running.admit()
            self._open[index] = deed, decision.aid
        return decision

    async def record(self, index: int, result: Result) -> None:
        """Tell the gate what came of a call.

        Raises:
            Halted: the gate says that the run has to stop.
        """
        governor, found = self._worker.governor, self._open.pop(index, None)
        if governor is not None and found is not None:
            deed, aid = found
            done = Done(text=result.text, failed=result.end == "failed")
            await governor.record(deed, done, aid=aid)

    def drop(self) -> None:
        """Tell the gate that nothing will be known of what is still open."""
        governor = self._worker.governor
        while governor is not None and self._open:
            _, (_, aid) = self._open.popitem()
            governor.drop(aid)


def _judged(tool: Tool, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue] | Raised:
    """Return the arguments as rules read them."""
    if tool.judged is None:
        return arguments
    got = attempt_now(tool.judged, arguments)
    if isinstance(got, Raised):
        return got
    return cast("Mapping[str, JsonValue]", got.value)
