"""Text from outside, made fit for a terminal: nothing in it steers, hides or reorders anything.

Control characters move cursors and repaint what stands above. Format characters (bidi overrides,
zero-width ones, tags) make a text read differently from what it is. Both are shown as the escapes
that Python writes. What comes out is plain text: no caller may hand it to an interpreter of markup.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["cells", "plain", "plain_lines"]

_TAB = "    "
_ELLIPSIS = "…"
# Characters a cell that combining marks may pile up: more is a wall of ink over other lines.
_MARKS_A_CELL = 4

# Categories: controls, format characters, lone surrogates, line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Invisible although Unicode files them as letters or marks; variation selectors 17 to 256 carry
# hidden bytes. The first sixteen choose the shape of an emoji and stay.
_HIDDEN_OTHERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\U000e0100-\U000e01ef]"
)
# Most texts hold nothing but these: one match decides.
_HARMLESS = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff]*\Z")


def plain(text: str, width: int | None = None) -> str:
    """Return the text as one line without a character that a terminal would obey.

    Args:
        text: anything from outside: a record, an id, a path, a model's words.
        width: terminal cells at most; a longer text ends in "…". None: no limit.
    """
    shown = text if _HARMLESS.match(text) else _escape(_ahead(text, width))
    return shown if width is None else _clip(shown, width)


def plain_lines(text: str, width: int, height: int) -> list[str]:
    """Return the text as lines of at most `width` cells, at most `height` of them.

    Line ends in the text are kept as such, tabs become spaces. A text that is cut says so in its
    last line.
    """
    rows: list[str] = []
    limit = max(1, height)
    for line in re.split(r"\r\n|\r|\n", text[: limit * width * 2 + 1]):
        rows += _wrap(_escape(line.replace("\t", _TAB)), max(2, width))
        if len(rows) > limit:
            break
    if len(rows) <= limit and len(text) <= limit * width * 2:
        return rows
    kept = rows[: limit - 1]
    return [*kept, f"{_ELLIPSIS} (cut here; {len(text):,} characters in all)"]


def cells(text: str) -> int:
    """Count the terminal cells that an escaped text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _ahead(text: str, width: int | None) -> str:
    """Cut far behind what can be shown: a record may have a million characters."""
    return text if width is None else text[: (width + 1) * (_MARKS_A_CELL + 1)]


def _escape(text: str) -> str:
    if text.isprintable() and text.isascii():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES or _HIDDEN_OTHERS.match(char)
    return char.encode("unicode_escape").decode("ascii") if hidden else char


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _fitting(text: str, width: int) -> int:
    """Return how many characters from the start fit into `width` cells."""
    used = 0
    for index, char in enumerate(text):
        used += _width(char)
        if used > width or index >= width * _MARKS_A_CELL:
            return index
    return len(text)


def _clip(text: str, width: int) -> str:
    if _fitting(text, width) == len(text):
        return text
    return text[: _fitting(text, max(0, width - 1))] + _ELLIPSIS


def _wrap(line: str, width: int) -> list[str]:
    """Break a line at spaces where there are any; nothing is lost."""
    rows: list[str] = []
    rest = line
    while (fits := _fitting(rest, width)) < len(rest):
        space = rest.rfind(" ", 0, fits + 1)
        cut = space + 1 if space > fits // 2 else max(1, fits)
        rows.append(rest[:cut].rstrip(" "))
        rest = rest[cut:]
    return [*rows, rest]
