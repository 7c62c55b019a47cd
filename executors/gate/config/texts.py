"""Lists of texts, as files and as Python write them."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Texts", "require_texts"]

Texts = list[str] | tuple[str, ...]
T = TypeVar("T", Texts, Texts | None)


def require_texts(given: T, what: str) -> T:
    """Refuse an entry that is blank: it would stand for nothing, or for everything.

    Raises:
        ValueError: one is.
    """
    for entry in given or ():
        if not entry.strip():
            raise ValueError(f"{entry!r} is not {what}")
    return given
