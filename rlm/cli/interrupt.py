"""Signals that end the program: all of them as Ctrl-C does, each under its own name."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

__all__ = ["ending_like_ctrl_c", "name_of", "stopped_by"]

# SIGTERM asks politely, SIGHUP says that the terminal is gone: a receipt is owed to both.
_ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)
_heard: list[signal.Signals] = []


def stopped_by() -> signal.Signals:
    """Return the signal that ended the run: SIGINT unless another one did it in its name."""
    return _heard[0] if _heard else signal.SIGINT


def name_of(number: signal.Signals) -> str:
    """Return what people call a signal."""
    return "Ctrl-C" if number is signal.SIGINT else number.name


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
