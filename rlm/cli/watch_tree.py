"""What a person is told while a task tree grows: the tree itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from corpus.events import SourceRead
from executors.clock import Clock, SystemClock
from executors.engine.stop import Stop
from executors.events import CallFailed, CallFinished, Event, Retried, Warned
from executors.gate.allowance import Caps
from rlm.cli.stopping import STOPPING
from rlm.cli.watch import bounds_of
from rlm.events import NodeFinished, NodeStarted, RunStarted
from rlm.render.lines import Line, Piece, is_fancy, line
from rlm.render.progress import duration, say
from rlm.render.safe import plain
from rlm.render.text import times
from rlm.render.tree_lines import standing_of, totals_of, tree_lines
from rlm.render.tree_state import Branch, TreeState

if TYPE_CHECKING:
    from rlm.render.tree_live import LiveTree

__all__ = ["TreeWatch"]

_LIVE_EVERY: Final = 0.25
_PLAIN_EVERY: Final = 1.0
_TOLD: Final = 40
"""Starts and ends that get a line of their own; after that only what went wrong does."""
_REASONS: Final = 5
"""Distinct reasons of failed calls that are said; a failing server may find a new one every time."""
_HEIGHT: Final = 24
_UNPRICED: Final = (
    "no price is known for a model, so the bound of USD does not count its calls: --price IN,OUT"
)


class TreeWatch:
    """Shows a tree while it grows, and says what was detected, bounded and odd.

    Args:
        caps: the bounds of the run.
        stream: where to write; the tree is repainted where it is a terminal.
        directory: where the run is, if the caller said so; else its id names it.
        again: returns the command that goes on with a run, where that is not `rlm resume`.
    """

    def __init__(
        self,
        caps: Caps,
        *,
        stream: TextIO,
        directory: str | None = None,
        again: Callable[[str], str] | None = None,
        clock: Clock | None = None,
        live: bool | None = None,
    ) -> None:
        self._caps = caps
        self._stream = stream
        self._directory = directory
        self._again = again or _resume
        self._clock = clock or SystemClock()
        self._wants_live = is_fancy(stream) if live is None else live
        self._live: LiveTree | None = None
        self._closed = False
        self._state = TreeState()
        self._began = self._shown_at = self._clock.monotonic()
        self._told = 0
        self._said = ""
        self._reasons: set[str] = set()
        self.stop: Stop | None = None
        """What Ctrl-C asks, once there is one."""
        self.run: str | None = None
        """Id of the run, once it began."""

    def __enter__(self) -> Self:
        if self._wants_live:
            from rlm.render.tree_live import LiveTree  # rich is heavy, and for terminals alone

            self._live = LiveTree(self._stream)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Paint no more; say a last time where it stands."""
        if self._closed:
            return
        self._closed = True
        if self._live is not None:
            self._live.stop()
        elif self._state.branches:
            self._plain()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        was = self._state.ended
        self._state(event)
        match event:
            case RunStarted():
                self.run = event.run
                self._begin()
            case NodeStarted() if event.node.count(".") == 1:
                self._tell(event.node, "began")
            case NodeFinished() if event.node.count(".") <= 1 and self._state.ended > was:
                self._tell(event.node, "ended")
            case SourceRead():
                self._read(event)
            case CallFinished(source="paid", cost=None):
                self._once(_UNPRICED)
            case CallFailed():
                self._once(f"call failed: {event.message}")
            case Retried():
                self._once(f"{event.error}, trying again in {duration(event.wait)}")
            case Warned():
                self.say(f"warning: {times(event.message, event.count)}")
            case _:
                pass
        self._show()

    def say(self, message: str) -> None:
        """Write one line, above the tree where it is painted."""
        if self._live is None:
            say(message, self._stream)
        else:
            self._live.say(plain(message))

    async def ticking(self) -> None:
        """Let time show while nothing else happens; runs until cancelled."""
        while True:
            await self._clock.sleep(1.0)
            self._show()

    # ---------------------------------------------------------------- sentences

    def _begin(self) -> None:
        self.say(f"bounds: {bounds_of(self._caps)}")
        if name := self._directory or self.run:
            self.say(f"run: {name}; should it be cut off: {self._again(name)}")

    def _read(self, event: SourceRead) -> None:
        self.say(
            f"{event.source}: {event.records:,} records, {event.empty:,} without text, "
            f"{event.identical:,} with the text of an earlier one"
        )
        for sentence in event.said:
            self.say(f"  {sentence}")

    def _once(self, message: str) -> None:
        if len(self._reasons) < _REASONS and message not in self._reasons:
            self._reasons.add(message)
            self.say(message)

    def _tell(self, node: str, what: str) -> None:
        """Say that a node began or ended, where no tree is painted."""
        branch = self._state.of(node)
        if self._live is not None or branch.id != node or not branch.name:
            return
        broke = branch.state in ("incomplete", "stopped")
        self._told += 1
        if self._told > _TOLD and not broke:
            return
        self.say(f"{what}: {_described(branch, what)}")

    # ---------------------------------------------------------------- the tree

    def _show(self) -> None:
        now = self._clock.monotonic()
        if self._live is not None:
            if now - self._shown_at >= _LIVE_EVERY:
                self._shown_at = now
                self._live.paint(self._lines)
        elif now - self._shown_at >= max(_PLAIN_EVERY, (now - self._began) / 30):
            self._shown_at = now
            self._plain()

    def _lines(self, height: int, width: int) -> list[Line]:
        head = f"{self._summary()}, {duration(self._clock.monotonic() - self._began)}"
        lines = [line(Piece(head, "dim"))]
        if self.stop is not None and self.stop.asked:  # what the handler wrote is painted over
            lines.append(line(Piece(STOPPING, "warn")))
        room = min(height, _HEIGHT) - len(lines)
        return lines + tree_lines(self._state, height=room, width=width, now=self._clock.now())

    def _plain(self) -> None:
        said = self._summary()
        if said != self._said:
            self._said = said
            passed = duration(self._clock.monotonic() - self._began)
            say(f"{said}, {passed}", self._stream)

    def _summary(self) -> str:
        state = self._state
        nodes = len(state.branches)
        facts = [f"{state.ended:,} of {nodes:,} node{'s' if nodes != 1 else ''} ended"]
        scans = [branch for branch in state.branches.values() if branch.total]
        if scans:
            done, total = sum(b.done for b in scans), sum(b.total or 0 for b in scans)
            facts.append(f"{done:,} of {total:,} readings")
        facts.append(totals_of(state) or "no call yet")
        return ", ".join(facts)


def _resume(run: str) -> str:
    return f"rlm resume {shlex.quote(run)}"


def _described(branch: Branch, what: str) -> str:
    name = plain(branch.name, 80)
    if what == "began":
        return name
    facts = [standing_of(branch)]
    if said := totals_of(branch):
        facts.append(said)
    if (seconds := branch.seconds(None)) is not None:
        facts.append(duration(seconds))
    return f"{name}: {', '.join(facts)}"
