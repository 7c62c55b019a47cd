"""One call of a tool, from the journal's word on it to its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from executors.boundary import Attempt, Overdue, Raised, Returned, attempt, described
from executors.errors import ToolBroken
from executors.events import ToolEnd, Warned
from executors.gate.governor import Reach, Sight
from executors.ids import content_key
from executors.journal.records import ToolBegun, ToolDone
from executors.loop.worker import Worker
from executors.messages import ToolCall
from executors.tools.base import Arguments, Execute, Led, Tool, ToolContext
from executors.tools.results import as_text, shown

__all__ = ["Result", "Running"]

_INTERRUPTED: Final = (
    "Interrupted: the tool {name!r} was running when the run stopped. Its effect is unknown, and it "
    "was not run again. Find out what it did before you call it anew."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a model reads of a call."""

    text: str
    end: ToolEnd
    broken: ToolBroken | None = None
    """No call of this tool can succeed any more."""


class Running:
    """A call whose arguments fit, on its way through the journal."""

    def __init__(
        self,
        worker: Worker,
        tool: Tool,
        call: ToolCall,
        arguments: Arguments,
        *,
        round_: int,
        index: int,
    ) -> None:
        self._worker = worker
        self._tool = tool
        self._call = call
        self._arguments = arguments
        self._round, self._index = round_, index
        # What it is filed under: its place in the tree, and what it asks for.
        where = (worker.node, str(worker.ordinal), str(round_), str(index))
        self._key = content_key("tool", *where, call.name, call.arguments)
        self._let = content_key("let", self._key)

    def found(self) -> Result | None:
        """Return what an earlier session knows of it; None where it is to run.

        Raises:
            Halted: a replay does not hold it, or the disk fails.
        """
        if self._tool.replays:
            return None
        match self._worker.calls.journal.tool_found(self._key):
            case ToolDone(result=text, failed=failed):
                return Result(text=text, end="failed" if failed else "done")
            case ToolBegun() if not self._tool.idempotent:
                return Result(text=_INTERRUPTED.format(name=self._tool.name), end="interrupted")
            case _:
                return None

    @property
    def admitted(self) -> bool:
        """Whether a gate has let it go in an earlier session, and it only repeats what it did there."""
        return self._tool.replays and self._worker.calls.journal.tool_found(self._let) is not None

    def admit(self) -> None:
        """Write down that a gate lets it go, where it will be run again: it is counted once."""
        if self._tool.replays:
            self._worker.calls.journal.tool_begun(self._let, name=self._tool.name)

    async def run(self) -> Result:
        """Run it; whatever it raises is a result.

        Raises:
            Halted: the tool, or the disk, says that the run has to stop.
        """
        journal, name = self._worker.calls.journal, self._tool.name
        if not self._tool.replays:
            journal.tool_begun(self._key, name=name)
        result = self._read(await self._tried())
        if not self._tool.replays and result.broken is None:
            await journal.tool_done(self._key, result=result.text, failed=result.end == "failed")
        return result

    async def _tried(self) -> Attempt:
        worker = self._worker
        context = ToolContext(
            node=worker.node,
            depth=worker.depth,
            round=self._round,
            index=self._index,
            call_id=self._call.id,
        )
        return await attempt(
            self._execute(),
            self._arguments,
            context,
            seconds=inf if self._tool.replays else worker.guards.seconds_a_tool,
            waiting=self._waiting,
        )

    def _execute(self) -> Execute:
        """Return what does it; where it may be led on, each step of the way has to pass the gate too."""
        execute = self._tool.execute
        led: object = execute
        governor: object = self._worker.governor
        if not isinstance(led, Led):
            return execute
        if self._tool.kind == "read":
            return led.checked(governor.why_not_read) if isinstance(governor, Sight) else execute
        return led.checked(governor.why_not) if isinstance(governor, Reach) else execute

    def _read(self, got: Attempt) -> Result:
        """Return what the model reads of it."""
        name = self._tool.name
        match got:
            case Returned(value=value):
                try:
                    return self._result(as_text(value), "done")
                except (TypeError, ValueError, RecursionError) as error:
                    said = f"the tool {name!r} gave what JSON has no form for: {described(error)}"
            case Raised(error=ToolBroken() as broken):
                # Not filed as done: the next session may find it mended.
                text = f"Error: the tool {name!r} is broken: {described(broken)}"
                return replace(self._result(text, "failed"), broken=broken)
            case Raised(error=error):
                said = f"the tool {name!r} raised {described(error)}"
            case Overdue(seconds=seconds, runs_on=runs_on):
                ending = "it may still have an effect" if runs_on else "it was cancelled"
                said = f"the tool {name!r} did not end within {seconds:g} s; {ending}"
        return self._result(f"Error: {said}", "failed")

    def _result(self, text: str, end: ToolEnd) -> Result:
        return Result(text=shown(text, self._worker.guards.result_characters), end=end)

    def _waiting(self) -> None:
        """Say so at once: whoever pressed Ctrl-C must not think that nothing happens."""
        calls = self._worker.calls
        message = f"cancelling: the tool {self._tool.name!r} cannot be stopped, waiting for its end"
        calls.emit(
            Warned(node=self._worker.node, at=calls.clock.now(), code="cancelling", message=message)
        )
