"""Text from outside, made fit for a spreadsheet: no cell of a CSV is a formula.

A spreadsheet runs a cell that starts with one of a few characters. Such a cell gets a leading
apostrophe, which spreadsheets take as "this is text". So does a cell that already starts with
apostrophes before one of these characters: taking one off therefore always gives the text back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CellGuard", "restored"]

# = + - @ in their own and their full width, and the white space that some programs skip or run on.
_FORMULA = re.compile("'*[\\s\u200b\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]")
_GUARDED = re.compile(f"'(?:{_FORMULA.pattern})")
_NUL_SHOWN = "\u2400"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True, kw_only=True)
class CellGuard:
    """Makes cells safe and counts what it changed, so that it can be said."""

    formulas: int = 0
    """Cells that would have run as a formula and got a leading apostrophe."""
    replaced: int = 0
    """Cells that held what a CSV cannot: NUL (shown as U+2400) or half a character (U+FFFD)."""

    def __call__(self, text: str) -> str:
        """Return what can stand in a cell of a CSV."""
        cleaned = self.encodable(text)
        if "\0" in cleaned:
            self.replaced += cleaned == text
            cleaned = cleaned.replace("\0", _NUL_SHOWN)
        return self.inert(cleaned)

    def inert(self, text: str) -> str:
        """Return the text with an apostrophe before it where it would run as a formula."""
        if _FORMULA.match(text):
            self.formulas += 1
            return f"'{text}"
        return text

    def encodable(self, text: str) -> str:
        """Return the text without half characters, which no UTF-8 file can hold."""
        if text.isascii():
            return text
        cleaned = _SURROGATE.sub("\ufffd", text)
        self.replaced += cleaned != text
        return cleaned


def restored(cell: str) -> str:
    """Return what a guarded cell held before it got its apostrophe; others as they are."""
    return cell[1:] if _GUARDED.match(cell) else cell
