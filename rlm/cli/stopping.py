"""The ladder of Ctrl-C while a run goes on: ask, cancel, end the process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

from executors.engine.stop import GRACE, Stop
from rlm.cli.impatience import Impatience
from rlm.cli.interrupt import name_of, stopped_by

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["STOPPING", "stopping"]

_STOPPING: Final = "stopping: what is running ends first, at most {:g} s; once more stops at once"
STOPPING: Final = _STOPPING.format(GRACE)

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def stopping(stop: Stop, stream: TextIO) -> Generator[None]:
    """Let the first Ctrl-C ask the stop, the second cancel, and the third end the process.

    Where nothing heeds the stop, since nothing was paid for yet, the first one cancels. The first
    one is answered in a line at once. What hangs is pressed again for the user; see `Impatience`.

    For use where the loop's own handler is installed already. Threads get no signals, so elsewhere
    than in the main one nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    # Heavy; whoever has a loop has loaded it.
    import asyncio

    handler = _Presses(stop, stream, before, asyncio.get_running_loop())
    signal.signal(signal.SIGINT, handler)
    try:
        with handler.impatience:
            yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Presses:
    """The handler of Ctrl-C while a run goes on; it may be interrupted by itself."""

    def __init__(
        self, stop: Stop, stream: TextIO, before: _Handler, loop: AbstractEventLoop
    ) -> None:
        self._stop = stop
        self._stream = stream
        self._before = before
        self._loop = loop
        self._times = count(1)  # counts in one step
        self._cancelled = False
        self.impatience = Impatience(stop, loop, give_up=_give_up)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        # One that nobody pressed stands on no rung of the user's own ladder.
        times = 0 if self.impatience.pressed() else next(self._times)
        if times == 1:
            _write(self._stream, _STOPPING.format(self._stop.grace))
        elif times > 2:
            _give_up()
        if times == 1 and self._stop.heeded:
            self.impatience.asked()
            self._stop.ask(name_of(stopped_by()))
            return
        if self._cancelled:
            # Tasks that are torn down are no news; asyncio would print each in full.
            self._loop.set_exception_handler(_say_nothing)
        self._cancelled = True
        self.impatience.cancelled()
        # The loop's own: it cancels first, and then raises KeyboardInterrupt where the code stands.
        self._before(number, frame)


def _give_up() -> None:
    """End the process, whatever holds up the way out: nobody has to look for a stronger signal."""
    os._exit(128 + stopped_by())


def _say_nothing(_loop: AbstractEventLoop, _context: dict[str, object]) -> None:
    """Take the place of the handler that prints."""


def _write(stream: TextIO, text: str) -> None:
    """Write past the stream's buffer: the signal may have come while the buffer was being filled."""
    start = "\n" if stream.isatty() else ""
    with suppress(OSError, ValueError):
        os.write(stream.fileno(), f"{start}{text}\n".encode())
