"""The text of an HTML mail: what is shown, block by block."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

__all__ = ["text_of_html"]

_HIDDEN = frozenset({"script", "style", "title"})
_BLOCKS = frozenset(
    {"blockquote", "br", "div", "h1", "h2", "h3", "h4", "hr", "li", "p", "table", "td", "tr", "ul"}
)
_TAG = re.compile(r"<[^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v]+")
_BREAKS = re.compile(r"\s*\n\s*")


def text_of_html(markup: str) -> str:
    """Return the text that a reader would see, one line a block."""
    shown = _Shown()
    try:
        shown.feed(markup)
        shown.close()
    except AssertionError:
        # The standard parser gives up so on broken declarations.
        return _tidy(unescape(_TAG.sub(" ", markup)))
    # A title that is never closed would hide all the rest.
    return _tidy("".join(shown.pieces)) or _tidy(unescape(_TAG.sub(" ", markup)))


def _tidy(text: str) -> str:
    return _BREAKS.sub("\n", _SPACES.sub(" ", text)).strip()


class _Shown(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)
