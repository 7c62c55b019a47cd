"""The events of the tool calls of a round: each start has exactly one end."""

from __future__ import annotations

from typing import Final, Literal

from executors.events import ToolEnd, ToolFinished, ToolStarted
from executors.loop.worker import Worker
from executors.messages import ToolCall
from executors.secrets import scrub

__all__ = ["Telling"]

_SHOWN: Final = 200  # characters of arguments in an event
_NAME: Final = 64  # characters of the longest name that a tool may have
_AHEAD: Final = 4_000  # characters that are looked through for secrets, to show those


class Telling:
    """Emits what happens to the calls of one round."""

    def __init__(self, worker: Worker, round_: int) -> None:
        self._worker = worker
        self._round = round_
        self._open: dict[int, tuple[ToolCall, float]] = {}

    def started(self, index: int, call: ToolCall) -> None:
        """It is looked at: first whether it may run."""
        clock = self._worker.calls.clock
        self._open[index] = call, clock.monotonic()
        self._worker.calls.emit(
            ToolStarted(
                node=self._worker.node,
                at=clock.now(),
                tool=scrub(call.name[:_NAME]),
                round=self._round,
                index=index,
                arguments=scrub(call.arguments[:_AHEAD])[:_SHOWN],
            )
        )

    def finished(
        self,
        index: int,
        end: ToolEnd,
        *,
        source: Literal["run", "journal", "none"] = "none",
        characters: int = 0,
        stays: bool = False,
    ) -> None:
        """It has a result."""
        clock = self._worker.calls.clock
        call, begun = self._open.pop(index)
        self._worker.calls.emit(
            ToolFinished(
                node=self._worker.node,
                at=clock.now(),
                tool=scrub(call.name[:_NAME]),
                round=self._round,
                index=index,
                end=end,
                seconds=clock.monotonic() - begun,
                source=source,
                characters=characters,
                stays=stays,
            )
        )

    def cut(self, end: Literal["cancelled", "halted"]) -> None:
        """End what has no result and will have none."""
        for index in sorted(self._open):
            self.finished(index, end)
