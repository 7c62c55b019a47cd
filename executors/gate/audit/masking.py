"""Texts without secrets: those that are known, those of the environment, and what has their look.

Only what an expression finds keeps its first four characters, so that people see which kind of key it
was. What is known to be a secret shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from executors.characters import sound
from executors.gate.audit.expressions import Found, checked, compiled, replaced
from executors.gate.audit.secret_keys import SecretKeys
from executors.secrets import Secret, mask

__all__ = ["HIDDEN", "Masking"]

HIDDEN: Final = "[secret]"
_SHORTEST: Final = 6
"""Characters of a value that is secret by its variable's name in the configuration."""
_GUESSED: Final = 8
"""The same for one whose name alone says so."""
_READ: Final = 16_384
"""Characters of a text that are looked at."""
_MARGIN: Final = 8_192
"""Those at the end of a longer one that are not given back: more than a secret has."""
_PREFIX: Final = 4
_SHOWN_FROM: Final = 12
"""Characters of what is found, below which its first four would be too much of it."""

_SHAPES: Final = (
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    r"(?i)\b(?:sk|pk|rk|key)-[a-z0-9_-]{8,}",
    r"\b(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}",
    r"\b(?:gh[oprsu]|glpat|hf|npm|pypi|shpat|dop_v1|r8|gsk|xai|pplx|tvly)[-_][A-Za-z0-9_-]{16,}",
    r"\bgithub_pat_\w{20,}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[\w-]{20,}",
    r"\bya29\.[\w-]{20,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
    r"(?i)\bbearer\s+[a-z0-9._~+/-]+=*",
    r"(?i)\bbasic\s+[a-z0-9+/]{16,}=*",
)
# What stands before a value stays, the value does not: in URLs, in headers, and by the name it has.
_NAMES: Final = (
    r"[\w.-]*(?:api[_-]?key|secret|passwd|password|passphrase|private[_-]?key|access[_-]?key|"
    r"(?:access|auth|refresh|session|id|api|secret)[_-]?token|authorization)"
)
_VALUE: Final = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[\"'\\]*[^\s\"'\\&,;<>{}()\[\]]+)"
_BEHIND: Final = (
    r"(://)[^\s/?#@\"'<>]+@",
    r"(?i)([?&](?:key|sig|signature|token|pwd|auth)=)[^&\s#\"'<>]+",
    rf"(?i)((?:{_NAMES}|(?:^|[^\w-])(?:token|pwd))[\"'\\]*\s*[:=]\s*){_VALUE}",
    rf"(?i)((?:^|\s)--?(?:{_NAMES}|token)\s+){_VALUE}",
    r"(?i)(\b(?:set-)?cookie[\"'\\]*\s*:\s*)[^\n]+",
    r"((?:^|\s)(?:-u|--user)[\s=]+[\"']?[^\s:\"']+:)[^\s\"']+",
)


class Masking:
    """Masks secrets in texts.

    Args:
        patterns: expressions besides those of the usual keys.
        variables: names of environment variables whose values are secret everywhere: they become known
            to all that this process writes.
        environment: where they are read, as are those whose names say that they are secret.

    Raises:
        ConfigError: a pattern that is none, or that matches every text.
    """

    def __init__(
        self,
        patterns: Sequence[str] = (),
        variables: Iterable[str] = (),
        *,
        environment: Mapping[str, str],
    ) -> None:
        for name in variables:
            if len(value := environment.get(name, "")) >= _SHORTEST:
                Secret(value)
        self._values = _guessed(environment)
        self._any = compiled(*_SHAPES, *_BEHIND)
        self._shapes = compiled(*_SHAPES)
        self._behind = [compiled(one) for one in _BEHIND]
        self._own = [checked(pattern, key="secrets.patterns") for pattern in patterns]

    def text(self, text: str) -> str:
        """Return a text without secrets, some 8,000 characters of it at most."""
        cut = mask(text[:_READ])
        for value in self._values:
            if value in cut:
                cut = cut.replace(value, HIDDEN)
        raw = sound(cut).encode("utf-8")
        if self._any.search(raw) is not None:
            raw = replaced(self._shapes, raw, _hidden)
            for expression in self._behind:
                raw = replaced(expression, raw, _behind)
        for expression in self._own:
            raw = replaced(expression, raw, _hidden)
        shown = raw.decode("utf-8", "replace")
        if len(text) <= _READ:
            return shown
        # A secret that is cut in two is not found; it stands at the end, with what is dropped.
        return f"{shown[: max(0, len(shown) - _MARGIN)]}… ({len(text):,} characters)"


def _guessed(environment: Mapping[str, str]) -> list[str]:
    """Return values of variables that are secret by their names, the longest first."""
    keys = SecretKeys()
    found = {
        value for name, value in environment.items() if len(value) >= _GUESSED and name in keys
    }
    return sorted(found, key=len, reverse=True)


def _hidden(found: Found) -> bytes:
    secret = found.group().decode("utf-8", "replace")
    shown = secret[:_PREFIX] if len(secret) >= _SHOWN_FROM else ""
    return f"{shown}{HIDDEN}".encode()


def _behind(found: Found) -> bytes:
    before = found.group(1)
    return before + HIDDEN.encode() + (b"@" if before == b"://" else b"")
