"""Expressions (RE2) that replace what they find: in linear time, whatever they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, cast

from executors.gate.patterns import Patterns

__all__ = ["Expression", "Found", "checked", "compiled", "replaced"]


class Found(Protocol):
    """Where an expression was found."""

    def span(self) -> tuple[int, int]:
        """Return its first byte, and the one behind its last."""
        ...

    def group(self, number: int = 0) -> bytes:
        """Return what was found, or a part of it."""
        ...


class Expression(Protocol):
    """A compiled expression over UTF-8."""

    def search(self, text: bytes) -> object:
        """Return something where the expression stands in a text, else None."""
        ...

    def finditer(self, text: bytes) -> Iterator[Found]:
        """Go through the places where it stands."""
        ...


def compiled(*expressions: str) -> Expression:
    """Compile expressions of our own: what any of them finds is found."""
    re2: Any = import_module("re2")  # loads with the first gate; it comes without types
    options = re2.Options()
    options.log_errors = False
    whole = "|".join(f"(?:{one})" for one in expressions)
    return cast("Expression", re2.compile(whole.encode("utf-8"), options))


def checked(pattern: str, *, key: str) -> Expression:
    """Compile an expression of the configuration.

    Raises:
        ConfigError: it is none, or matches every text.
    """
    Patterns([pattern], key=key)
    return compiled(pattern)


def replaced(expression: Expression, raw: bytes, instead: Callable[[Found], bytes]) -> bytes:
    """Return a text in which something else stands wherever an expression is found."""
    pieces: list[bytes] = []
    at = 0
    for found in expression.finditer(raw):
        start, end = found.span()
        if end > start:
            pieces += (raw[at:start], instead(found))
            at = end
    return b"".join((*pieces, raw[at:])) if at else raw
