"""Regular expressions that run in linear time whatever they are given (RE2).

RE2: R. Cox, "Regular Expression Matching Can Be Simple And Fast", 2007. It takes no back-references
and no look-around, so that no pattern can hang whoever is held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from executors.characters import sound
from executors.errors import ConfigError

__all__ = ["Patterns"]


class _Expression(Protocol):
    def search(self, text: bytes) -> object: ...


class Patterns:
    """Patterns of one key of the configuration, compiled once.

    Args:
        key: where they stand, for messages.

    Raises:
        ConfigError: one that RE2 does not take, or that matches every text.
    """

    def __init__(self, patterns: Sequence[str], *, key: str) -> None:
        self._compiled = [(pattern, _compiled(pattern, key)) for pattern in patterns]
        self._any = _together(patterns) if self._compiled else None

    def __bool__(self) -> bool:
        return bool(self._compiled)

    def first(self, texts: Iterable[str]) -> str | None:
        """Return the first pattern that stands anywhere in one of the texts; None if none does."""
        if not self._compiled:
            return None
        for text in texts:
            raw = sound(text).encode("utf-8")
            if self._any is not None and self._any.search(raw) is None:
                continue
            for pattern, expression in self._compiled:
                if expression.search(raw) is not None:
                    return pattern
        return None


def _compiled(pattern: str, key: str) -> _Expression:
    try:
        expression = _expression(pattern)
    except ValueError as error:
        raise _refused(pattern, key, f"RE2 says: {error}") from None
    if expression.search(b"") is not None:
        raise _refused(pattern, key, "it matches every text")
    return expression


def _together(patterns: Sequence[str]) -> _Expression | None:
    """Return what any of them finds, so that a text without any is read once.

    None where they have to stay apart.
    """
    if any(r"\Q" in pattern for pattern in patterns):
        return None  # a quotation that is left open would swallow what follows
    try:
        return _expression("|".join(f"(?:{pattern})" for pattern in patterns))
    except ValueError:
        return None


def _expression(pattern: str) -> _Expression:
    # It has no types, and loads with the first pattern, not with the command line.
    re2: Any = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        # Bytes, so that no offsets are counted back into characters that nobody asks for.
        return cast("_Expression", re2.compile(sound(pattern).encode("utf-8"), options))
    except re2.error as error:
        words = error.args[0] if error.args else ""
        said = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
        raise ValueError(said) from None


def _refused(pattern: str, key: str, why: str) -> ConfigError:
    return ConfigError(
        f"{key} holds {pattern!r}, which is no pattern: {why}"[:500],
        where="the gate's configuration",
        hint="write a regular expression as RE2 takes it: without back-references and look-around "
        "(?=, ?!, ?<), (?i) for any case",
    )
