"""Single keys from a terminal."""

from __future__ import annotations

import codecs
import os
import select
import shutil
import termios
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

__all__ = ["Keys", "screen_size"]

_ESCAPE: Final = "\x1b"
_INTERRUPT: Final = "\x03"
_END: Final = "\x04"
# Seconds within which the rest of an arrow key or the like follows its first byte.
_SEQUENCE_GAP: Final = 0.02


def screen_size() -> tuple[int, int]:
    """Return columns and rows; 80 by 24 where nobody knows."""
    size = shutil.get_terminal_size()
    return max(20, size.columns), max(10, size.lines)


class Keys:
    """Reads key after key without waiting for Enter; a context manager that restores the terminal.

    Ctrl-C is read as a key and raised as KeyboardInterrupt by `read`, since a signal would reach the
    main thread while this one goes on waiting.
    """

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor
        self._before: list[int | list[bytes | int]] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        # What was typed ahead of the first record is no answer to it.
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, mode)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(termios.error):  # a terminal that went away needs nothing back
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def read(self) -> str:
        """Wait for one key; "" for one that is no character; "q" when the terminal went away.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        key = ""
        while not key:
            try:
                raw = os.read(self._fd, 1)
            except OSError:  # the other end of a pseudo-terminal was closed
                raw = b""
            if not raw:
                return "q"
            key = decoder.decode(raw)
        if key == _INTERRUPT:
            raise KeyboardInterrupt
        if key == _ESCAPE:
            self._drop_sequence()
            return ""
        return "q" if key == _END else key.lower()

    def _drop_sequence(self) -> None:
        while select.select([self._fd], [], [], _SEQUENCE_GAP)[0]:
            if not os.read(self._fd, 16):
                return
