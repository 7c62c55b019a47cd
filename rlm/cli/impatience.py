"""Keeps the promise that a run which was told to stop ends soon, whatever hangs."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from executors.engine.stop import Stop

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["Impatience"]

_EVERY: Final = 0.25
# Seconds that a loop which is not blocked needs to hear of a cancellation, or to pass one on.
_TURN: Final = 1.0


class Impatience:
    """Presses Ctrl-C again for the user: a thread, since the loop's own may be what hangs.

    - Asked to stop, and what heeds that outlasts its grace: it is cancelled.
    - Cancelled, and the loop did not hear of it, since code of the user's blocks it: that code is
      interrupted.
    - Cancelled, the grace is over, and the loop idles: it waits for a thread that does not end. The
      process is given up; what is durable stays so.

    A loop that is busy is left alone: it writes down what was done.

    Args:
        give_up: ends the process.
    """

    def __init__(
        self, stop: Stop, loop: AbstractEventLoop, *, give_up: Callable[[], object]
    ) -> None:
        self._stop = stop
        self._loop = loop
        self._give_up = give_up
        self._main = threading.get_ident()
        # The one queue that the handler of a signal may put into while its own thread gets.
        self._news: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, name="rlm impatience", daemon=True)
        self._asked_at: float | None = None
        self._cancelled_at: float | None = None
        self._cancels = 0
        self._heard_at: float | None = None
        self._presses = self._turned = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._news.put(False)
        self._thread.join()

    # ------------------------------------------------------------ from the handler

    def pressed(self) -> bool:
        """Whether the signal that is handled now was sent from here."""
        was, self._presses = self._presses, False
        return was

    def asked(self) -> None:
        """The stop is asked."""
        self._asked_at = time.monotonic()
        self._news.put(True)

    def cancelled(self) -> None:
        """The main task is cancelled, or interrupted where it stands."""
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
        self._cancels += 1
        self._call(self._hear)
        self._news.put(True)

    # ------------------------------------------------------------ on the loop

    def _hear(self) -> None:
        self._heard_at = time.monotonic()

    def _turn(self) -> None:
        self._turned = True

    # ------------------------------------------------------------ in the thread

    def _watch(self) -> None:
        pressed = False
        while self._goes_on(pressed):
            pressed = True
            self._look(time.monotonic())

    def _goes_on(self, pressed: bool) -> bool:
        try:
            return self._news.get(timeout=_EVERY if pressed else None)
        except Empty:
            return True

    def _look(self, now: float) -> None:
        idles, self._turned = self._turned, False
        self._call(self._turn)
        if self._cancelled_at is None:
            assert self._asked_at is not None
            if self._stop.heeded and now - self._asked_at > self._stop.grace + _TURN:
                self._press()
        elif self._heard_at is None:
            if self._cancels == 1 and now - self._cancelled_at > _TURN:
                self._press()
        elif idles and self._is_over(now, self._asked_at or self._cancelled_at, self._heard_at):
            self._give_up()

    def _is_over(self, now: float, first: float, heard: float) -> bool:
        """Whether the grace is over; who heard late has a moment of his own to write down what is."""
        return now - first > self._stop.grace + 2 * _TURN and now - heard > 2 * _TURN

    def _press(self) -> None:
        if not self._presses:
            self._presses = True
            # To that thread: a signal to the process would not interrupt what it waits for.
            signal.pthread_kill(self._main, signal.SIGINT)

    def _call(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(what)
