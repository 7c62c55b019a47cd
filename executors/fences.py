"""Text from outside, shown to a model as data: between marks that it cannot write itself."""

from __future__ import annotations

from executors.characters import sound
from executors.ids import content_key

__all__ = ["clipped", "fenced"]


def fenced(text: str, label: str = "data") -> str:
    """Return a text between two marks, the same ones each time.

    They carry a hash of the text, so that no text can hold the mark that would close it. What UTF-8
    cannot hold, no model could be shown: halves of characters are joined, or become U+FFFD.
    """
    text = sound(text)
    nonce = content_key(text)[:8]
    return f"<{label}-{nonce}>\n{text}\n</{label}-{nonce}>"


def clipped(text: str, most: int) -> str:
    """Return a text of at most about `most` characters: its head and its tail, and what is left out."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    left = len(text) - head - tail
    return f"{text[:head]}\n[… {left:,} characters left out …]\n{text[len(text) - tail :]}"
