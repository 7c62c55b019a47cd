"""Text that UTF-8 can hold, made of text that it cannot."""

from __future__ import annotations

__all__ = ["sound"]


def sound(text: str) -> str:
    """Return the text as UTF-8 can hold it: halves of surrogate pairs joined, else U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
