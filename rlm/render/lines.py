"""Lines of styled pieces: built once, written with colour on a terminal and as plain text elsewhere.

Every piece is text that was made safe or that is our own. Colour is put around it here and nowhere
else, so that where there is no colour there is no escape byte at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["Line", "Piece", "Style", "as_text", "is_fancy", "line", "rich_text", "write_lines"]

Style = Literal["plain", "strong", "dim", "good", "warn", "bad"]

_RICH_STYLES: Mapping[Style, str] = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text in one style."""

    text: str
    style: Style = "plain"


Line = tuple[Piece, ...]


def line(*pieces: str | Piece) -> Line:
    """Return a line; a bare string is a plain piece."""
    return tuple(Piece(piece) if isinstance(piece, str) else piece for piece in pieces)


def as_text(lines: Iterable[Line]) -> str:
    """Return the lines without any style, each ended by a newline."""
    return "".join("".join(piece.text for piece in row).rstrip() + "\n" for row in lines)


def is_fancy(stream: TextIO, env: Mapping[str, str] = os.environ) -> bool:
    """Whether colour and cursor movement are welcome: a terminal that is not dumb, no NO_COLOR."""
    wanted = not env.get("NO_COLOR") and env.get("TERM", "") not in {"", "dumb"}
    return wanted and stream.isatty()


def write_lines(lines: Iterable[Line], stream: TextIO, *, fancy: bool | None = None) -> None:
    """Write lines in colour where it is welcome, else as plain text.

    Args:
        fancy: whether colour is welcome; None asks the stream.
    """
    if not (is_fancy(stream) if fancy is None else fancy):
        stream.write(as_text(lines))
        stream.flush()
        return
    from rich.console import Console  # heavy: loaded where colour is really shown

    console = Console(file=stream, force_terminal=True, markup=False, emoji=False, highlight=False)
    for row in lines:
        console.print(rich_text(row), soft_wrap=True)
    stream.flush()


def rich_text(row: Line) -> Text:
    """Return a line as rich shows it."""
    from rich.text import Text  # heavy, as above

    return Text.assemble(*((piece.text, _RICH_STYLES[piece.style]) for piece in row))
