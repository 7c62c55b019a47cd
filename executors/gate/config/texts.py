"""Lists of texts, as files and as Python write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["Texts", "refuse_models", "require_texts"]

Texts = list[str] | tuple[str, ...]
T = TypeVar("T", Texts, Texts | None)


def refuse_models(names: Iterable[str]) -> None:
    """Refuse a rule about calls of models: they pass the budget, and no rule about actions.

    Raises:
        ValueError: one is.
    """
    if "llm" in names:
        raise ValueError(
            "'llm' has no effect here: calls of models are bounded by budget (max_calls, max_tokens,"
            " max_cost_usd), and where they may go by data.hosts"
        )


def require_texts(given: T, what: str) -> T:
    """Refuse an entry that is blank: it would stand for nothing, or for everything.

    Raises:
        ValueError: one is.
    """
    for entry in given or ():
        if not entry.strip():
            raise ValueError(f"{entry!r} is not {what}")
    return given
