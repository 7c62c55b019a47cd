"""Signals that end a run: heard at once, also while something runs that takes its time to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

from rlm.cli.exits import Exit

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["STOPPING", "ending_like_ctrl_c", "saying_that_it_stops", "stopped_by"]

STOPPING: Final = "stopping: what is running ends first"

# SIGTERM asks politely, SIGHUP says that the terminal is gone: a receipt is owed to both.
_ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)
_heard: list[signal.Signals] = []


def stopped_by() -> signal.Signals:
    """Return the signal that ended the run: SIGINT unless another one did it in its name."""
    return _heard[0] if _heard else signal.SIGINT


@contextmanager
def ending_like_ctrl_c() -> Generator[None]:
    """Answer SIGTERM and SIGHUP as Ctrl-C is answered, whoever handles that by then.

    A signal that is ignored, as nohup does with SIGHUP, stays so. Threads get no signals, so
    elsewhere than in the main one nothing is changed.
    """
    _heard.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    free = [number for number in _ENDINGS if signal.getsignal(number) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, _as_ctrl_c)
    try:
        yield
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    _heard.append(signal.Signals(number))
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # in the background of a shell Ctrl-C is ignored, these are not
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


@contextmanager
def saying_that_it_stops(stream: TextIO) -> Generator[None]:
    """Say in one line that the first Ctrl-C was heard, then let it do what it does anyway.

    A second one interrupts what runs, a third one ends the process.

    For use where the loop's own handler is installed already. Threads get no signals, so elsewhere
    than in the main one nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    # Heavy; whoever has a loop has loaded it.
    import asyncio

    loop = asyncio.get_running_loop()
    presses = count(1)  # counts in one step, since a handler may be interrupted by the next signal

    def heard(number: int, frame: FrameType | None) -> None:
        times = next(presses)
        if times == 1:
            _write(stream, STOPPING)
        elif times == 2:
            # Tasks that a second one tears down are no news; asyncio would print each in full.
            loop.set_exception_handler(_say_nothing)
        else:
            # Whatever holds up the way out: nobody has to look for a stronger signal.
            os._exit(Exit.STOPPED)
        before(number, frame)

    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _say_nothing(_loop: AbstractEventLoop, _context: dict[str, object]) -> None:
    """Take the place of the handler that prints."""


def _write(stream: TextIO, text: str) -> None:
    """Write past the stream's buffer: the signal may have come while the buffer was being filled."""
    start = "\n" if stream.isatty() else ""
    with suppress(OSError, ValueError):
        os.write(stream.fileno(), f"{start}{text}\n".encode())
