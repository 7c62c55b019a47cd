"""Names of fields, headers and variables whose values are secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["SecretKeys"]

_JOINTS: Final = re.compile(r"[\s_.-]+")
_LONGEST: Final = 200
"""Characters of a name. What is longer is judged by its end."""
_WHOLE: Final = frozenset(
    {"auth", "cookie", "credential", "credentials", "passwd", "pwd", "secret", "setcookie", "token"}
)
_ENDS: Final = (
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authkey",
    "authorization",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
    "secrettoken",
    "sessiontoken",
)
_VARIABLE: Final = re.compile(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:TOKEN|SECRET|PASS|PWD|PAT|CREDENTIALS)"
)
# Tokens of another trade: where a page begins, and what a form carries to be told from a forged one.
_OPEN: Final = ("pagetoken", "csrftoken", "xsrftoken", "continuationtoken", "nexttoken")


class SecretKeys:
    """Tells by a name whether what stands under it is secret.

    Args:
        more: names besides the usual ones; `*` stands for any text, and case is the same.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = [one.lower().split("*") for one in more]
        self._cached = lru_cache(maxsize=1_024)(self._judged)

    def __contains__(self, name: str) -> bool:
        return self._cached(name[-_LONGEST:])

    def _judged(self, name: str) -> bool:
        lower = name.strip().lower()
        if any(_fits(lower, parts) for parts in self._more):
            return True
        plain = _JOINTS.sub("", lower)
        if plain.endswith(_OPEN):
            return False
        return (
            plain in _WHOLE
            or plain.endswith(_ENDS)
            or _VARIABLE.fullmatch(name.strip()) is not None
        )


def _fits(name: str, parts: list[str]) -> bool:
    """Match a name to a pattern that was split at its stars, in one pass."""
    if len(parts) == 1:
        return name == parts[0]
    first, *middle, last = parts
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return name.endswith(last)
