"""Ctrl-C is answered at once, also while something runs that takes its time to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, TextIO

__all__ = ["STOPPING", "saying_that_it_stops"]

STOPPING: Final = "stopping: what is running ends first"


@contextmanager
def saying_that_it_stops(stream: TextIO) -> Generator[None]:
    """Say in one line that the first Ctrl-C was heard, then let it do what it does anyway.

    For use where the loop's own handler is installed already. Threads get no signals, so elsewhere
    than in the main one nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    loop = asyncio.get_running_loop()
    times = 0

    def heard(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if times == 1:
            _write(stream, STOPPING)
        else:
            # Tasks that a second one tears down are no news; asyncio would print each in full.
            loop.set_exception_handler(_say_nothing)
        before(number, frame)

    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _say_nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, object]) -> None:
    """Take the place of the handler that prints."""


def _write(stream: TextIO, text: str) -> None:
    """Write past the stream's buffer: the signal may have come while the buffer was being filled."""
    start = "\n" if stream.isatty() else ""
    with suppress(OSError, ValueError):
        os.write(stream.fileno(), f"{start}{text}\n".encode())
