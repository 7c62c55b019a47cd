"""What a person is told while a run goes on: a fold over its events, written to standard error."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from types import TracebackType
from typing import Self, TextIO

from corpus.events import ScanStarted, SourceRead, WindowFinished
from executors.clock import Clock, SystemClock
from executors.events import CallFailed, CallFinished, Event, Retried, Warned
from executors.gate.allowance import Caps
from rlm.events import NodeFinished, NodeStarted, RunStarted
from rlm.render.progress import Progress, duration, say
from rlm.render.text import times

__all__ = ["Watch", "bounds_of"]

# Distinct reasons of failed calls that are said; a failing server may find a new one every time.
_REASONS = 5


class Watch:
    """Shows progress of the node that works, and says what was detected, bounded and odd.

    Args:
        caps: the bounds of the run, said before anything is judged.
        stream: where to write; progress is live when it is a terminal.
        directory: where the run is, if the caller said so; else its id names it.
    """

    def __init__(
        self,
        caps: Caps,
        *,
        stream: TextIO,
        directory: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._caps = caps
        self._stream = stream
        self._directory = directory
        self._clock = clock or SystemClock()
        self._open = ExitStack()
        self._progress: Progress | None = None
        self._node = ""
        self._calls = self._failures = self._unpriced = 0
        self.run: str | None = None
        """Id of the run, once it began."""
        self._limits = ""
        self._cost = Decimal(0)
        self._reasons: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self.run, self._limits = event.run, event.options.get("limits", "")
            case NodeStarted() if event.node.count(".") == 1:  # passes show in their scan's line
                self._begin(event)
            case NodeFinished() if event.node == self._node:
                self._end()
            case SourceRead():
                self._read(event)
            case ScanStarted():
                self._scan(event)
            case WindowFinished():
                if self._progress is not None:
                    self._progress.add(event.items, unresolved=event.unresolved)
            case CallFinished(source="paid"):  # others are no calls of this run's bill either
                self._calls += 1
                self._unpriced += event.cost is None
                self._cost += event.cost or 0
                self._call()
            case CallFailed():
                self._failures += 1
                self._failed(event)
                self._call()
            case Retried():
                self._note(f"{event.error}, trying again in {duration(event.wait)}")
            case Warned():
                self.say(f"warning: {times(event.message, event.count)}")
            case _:
                pass

    def say(self, message: str) -> None:
        """Write one line, above a live display if there is one, be it another's."""
        say(message, self._stream)

    async def ticking(self) -> None:
        """Let time show while nothing else happens; runs until cancelled."""
        while True:
            await self._clock.sleep(1.0)
            if self._progress is not None:
                self._progress.tick()

    def _begin(self, event: NodeStarted) -> None:
        self._end()
        self._node = event.node
        progress = Progress(event.name, stream=self._stream, clock=self._clock)
        self._progress = self._open.enter_context(progress)

    def _end(self) -> None:
        self._open.close()
        self._progress = None

    def _read(self, event: SourceRead) -> None:
        self.say(
            f"{event.source}: {event.records:,} records, {event.empty:,} without text, "
            f"{event.identical:,} with the text of an earlier one"
        )
        for sentence in event.said:
            self.say(f"  {sentence}")

    def _scan(self, event: ScanStarted) -> None:
        passes = f"{event.passes} pass{'es' if event.passes != 1 else ''}"
        self.say(
            f"{event.judge}: {event.items:,} distinct texts in {passes}, "
            f"{event.window} a window, {event.cap} in flight"
        )
        if event.asks:
            self.say(f"bounds: {bounds_of(self._caps, priced=event.priced)}")
            if self._limits:
                self.say(f"limits: {self._limits}")
            if name := self._directory or self.run:
                self.say(f"run: {name}; should it be cut off: rlm resume {shlex.quote(name)}")
        if event.restored:
            self.say(f"{event.restored:,} verdicts stand in the run already")
        if self._progress is not None:
            standing = self._progress.standing
            unit = "records" if event.passes == 1 else "readings"
            total = max(0, event.items * event.passes - event.restored)
            self._progress.update(replace(standing, total=total, unit=unit))

    def _failed(self, event: CallFailed) -> None:
        """Say why calls fail, each reason once: the count itself names kinds of errors alone."""
        if len(self._reasons) < _REASONS and event.message not in self._reasons:
            self._reasons.add(event.message)
            self.say(f"call failed: {event.message}")

    def _call(self) -> None:
        if self._progress is not None:
            cost = None if self._calls == self._unpriced else self._cost
            now = replace(
                self._progress.standing,
                calls=self._calls,
                failed=self._failures,
                cost=cost,
                note="",
            )
            self._progress.update(now)

    def _note(self, note: str) -> None:
        if self._progress is not None:
            self._progress.update(replace(self._progress.standing, note=note))


def bounds_of(caps: Caps, *, priced: bool = True) -> str:
    """Return the bounds of a run in words, and which of them binds nothing.

    Args:
        priced: the price of what it spends is known.
    """
    usd = f"{caps.usd.normalize():f} USD"
    if not priced:
        usd += " (binds nothing: no price is known)"
    calls = f"{caps.calls:,} call{'s' if caps.calls != 1 else ''}"
    return f"{calls}, {caps.tokens:,} tokens, {usd}, {duration(caps.seconds)}"
