"""A tree that is painted again and again at the foot of a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from rlm.render.lines import Line, rich_text

__all__ = ["LiveTree"]

_LEAST: Final = 4
"""Lines, on however small a terminal."""


class _Console(Console):
    """A console that leaves the cursor as it is: a process that is ended at once shows none again."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


class LiveTree:
    """Paints lines below whatever is said. What was painted last is gone when it ends.

    Nothing is painted by a thread: a signal that interrupts the loop finds the terminal whole.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = _Console(
            file=stream, force_terminal=True, markup=False, emoji=False, highlight=False
        )
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def start(self) -> None:
        """Take the foot of the terminal."""
        self._live.start()

    def stop(self) -> None:
        """Give it back."""
        self._live.stop()

    def paint(self, lines: Callable[[int, int], list[Line]]) -> None:
        """Paint lines anew.

        Args:
            lines: returns them for the height and the width that there are.
        """
        drawn = lines(max(_LEAST, self._console.height - 2), self._console.width)
        texts = [rich_text(one) for one in drawn]
        for text in texts:
            text.no_wrap, text.overflow = True, "ellipsis"
        self._live.update(Group(*texts), refresh=True)

    def say(self, message: str) -> None:
        """Write a line above, which stays."""
        self._console.print(Text(message), soft_wrap=True)
