"""A worker's side: it runs units one at a time, and keeps their lines.

The line is a matter of two functions that the coordinator calls: `listen` waits until the unit asks
something and takes the answers to what it asked before, `say` tells it something. So the worker
needs no way to the coordinator, and what was asked is never lost with a connection: what has no
answer yet is told again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

import anyio

from executors.engine.units import UnitReport, UnitSpec, entry_of

__all__ = ["Asked", "Heard", "HostLine", "greet", "host_unit", "listen", "say"]

Asked = tuple[int, str, bytes]
"""What a unit asks: a number, what, and with what."""
Heard = tuple[list[Asked], UnitReport | None]
"""What a unit asks, and its report once it has come to its end."""

_PATIENCE: Final = 60.0  # seconds that a coordinator may be silent before it is taken for gone

_lines: dict[str, HostLine] = {}


class HostLine:
    """The line of one unit; see `Line`."""

    def __init__(self) -> None:
        self._next = 0
        self._open: dict[int, tuple[str, bytes]] = {}
        self._answers: dict[int, bytes] = {}
        self._answered = anyio.Event()
        self._asking = anyio.Event()
        self._words: list[tuple[str, bytes]] = []
        self._hear: Callable[[str, bytes], None] | None = None
        self._report: UnitReport | None = None
        self._reported = anyio.Event()

    async def ask(self, what: str, body: bytes = b"") -> bytes:
        number, self._next = self._next, self._next + 1
        self._open[number] = (what, body)
        self._asking.set()
        try:
            while number not in self._answers:
                with anyio.fail_after(_PATIENCE):  # TimeoutError is an OSError
                    await self._answered.wait()
            return self._answers.pop(number)
        finally:
            self._open.pop(number, None)

    def on_word(self, hear: Callable[[str, bytes], None]) -> None:
        self._hear = hear
        for what, body in self._words:
            hear(what, body)
        self._words.clear()

    async def report(self, report: UnitReport) -> None:
        """Return once the coordinator has the report, or cannot want it any more."""
        self._report = report
        self._asking.set()
        with anyio.move_on_after(_PATIENCE):
            await self._reported.wait()

    async def exchange(self, answers: Mapping[int, bytes], seconds: float) -> Heard:
        """Take answers, and return what is asked, as soon as anything is."""
        for number, body in answers.items():
            if self._open.pop(number, None) is not None:
                self._answers[number] = body
        if answers:
            self._answered.set()
            self._answered = anyio.Event()
        self._asking = anyio.Event()
        if not self._open and self._report is None:
            with anyio.move_on_after(seconds):
                await self._asking.wait()
        if self._report is not None:
            self._reported.set()
        return [(n, what, body) for n, (what, body) in self._open.items()], self._report

    def say(self, what: str, body: bytes) -> None:
        """Tell the unit something; kept until it listens."""
        if self._hear is None:
            self._words.append((what, body))
        else:
            self._hear(what, body)


async def host_unit(text: str) -> None:
    """Run a unit that travelled as JSON; its report leaves on its line.

    Raises:
        RlmError: it cannot be run here.
    """
    spec = UnitSpec.of_json(text)
    line = _lines.setdefault(spec.id, HostLine())
    try:
        await line.report(await entry_of(spec.entry)(spec, line))
    finally:
        del _lines[spec.id]


async def listen(unit: str, answers: Mapping[int, bytes], seconds: float) -> Heard:
    """Take answers for a unit, and wait for what it says next; nothing after so many seconds."""
    line = _lines.get(unit)
    if line is None:  # it has not begun, or has ended
        await anyio.sleep(min(seconds, 0.02))
        return [], None
    return await line.exchange(answers, seconds)


async def say(unit: str, what: str, body: bytes) -> None:
    """Tell a unit something; lost where it does not run."""
    line = _lines.get(unit)
    if line is not None:
        line.say(what, body)


def greet(module: str, ours: bool) -> str:
    """Return the version that a module of this worker states.

    Args:
        ours: the coordinator made this process. A key pressed in its terminal is the coordinator's
            to answer, which then tells us; and we end with it in any case.
    """
    if ours and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    version: str = import_module(module).__version__
    return version
