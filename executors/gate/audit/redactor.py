"""Values as they may be written down: plain, bounded, and without secrets.

The value is walked, never its JSON: what a text hides is found in the text itself, and what a name
says about a value is known where the value stands, at any depth, in keys too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from executors.gate.audit.masking import HIDDEN, Masking
from executors.gate.audit.secret_keys import SecretKeys
from executors.gate.config.secrets import SecretsSection
from executors.gate.copies import Bounds, Copier
from executors.replies import JsonValue

__all__ = ["Redacted", "Redactor"]

_BOUNDS: Final = Bounds(values=5_000, characters=16_000_000, depth=64)
_BITS: Final = 63
"""Of a number; one with more is written as text."""
_FLAG: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A value that may be written down."""

    value: JsonValue
    not_finite: bool = False
    """A number of it is infinite, or none at all: null stands there."""
    omitted: str | None = None
    """What of it could not be copied, and where."""


class Redactor:
    """Makes values harmless. Nothing that is given to it raises, or is changed by it.

    Args:
        section: what is masked beyond the usual.
        environment: whose secrets are masked; None is that of the process.

    Raises:
        ConfigError: an expression of the section is none.
    """

    def __init__(
        self, section: SecretsSection | None = None, *, environment: Mapping[str, str] | None = None
    ) -> None:
        section = section or SecretsSection()
        self._masking = Masking(
            section.patterns,
            section.env_vars,
            environment=os.environ if environment is None else environment,
        )
        self._keys = SecretKeys(section.keys) if section.redact_keys else None

    def redact(self, value: object) -> JsonValue:
        """Return a value as it may be written down.

        Texts, numbers, lists and mappings are copied, 64 levels deep; anything else stands there by
        the name of its class. NaN and infinity become null.
        """
        return self.redacted(value).value

    def redacted(self, value: object) -> Redacted:
        """Return the same, with what could not be kept of it."""
        copier = Copier(_BOUNDS)
        walk = _Walk(self._masking, self._keys)
        plain = walk.plain(copier.copy(value))
        omitted = None if copier.fault is None else self.text(copier.fault)
        return Redacted(value=plain, not_finite=walk.not_finite, omitted=omitted)

    def text(self, text: str) -> str:
        """Return a text without secrets, some 8,000 characters of it at most."""
        return self._masking.text(text)


class _Walk:
    """One walk through a copy, whose depth is bounded."""

    def __init__(self, masking: Masking, keys: SecretKeys | None) -> None:
        self._masking = masking
        self._keys = keys
        self.not_finite = False

    def plain(self, value: object) -> JsonValue:
        match value:
            case str():
                return self._masking.text(value)
            case None | bool():
                return value
            case int():
                return value if value.bit_length() <= _BITS else self._masking.text(str(value))
            case float():
                return self._number(value)
            case dict():
                return self._members(cast("dict[str, object]", value))
            case list():
                return self._items(cast("list[object]", value))
            case bytes():
                return self._masking.text(value.decode("utf-8", "replace"))
            case _:
                return self._masking.text(str(value))  # the name of a class

    def _number(self, number: float) -> JsonValue:
        if math.isfinite(number):
            return number
        self.not_finite = True
        return None

    def _members(self, members: dict[str, object]) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for key, value in members.items():
            name = self._masking.text(key)
            if name in found:  # two secrets as keys look the same
                name = f"{name} ({len(found)})"
            secret = self._keys is not None and key in self._keys and value is not None
            found[name] = HIDDEN if secret else self.plain(value)
        return found

    def _items(self, items: list[object]) -> JsonValue:
        found: list[JsonValue] = []
        before: object = None
        for item in items:
            found.append(HIDDEN if self._follows(before, item) else self.plain(item))
            before = item
        return found

    def _follows(self, before: object, item: object) -> bool:
        """Whether an item of a command line is what an option before it calls secret."""
        return (
            self._keys is not None
            and isinstance(before, str)
            and before.startswith(_FLAG)
            and isinstance(item, str)
            and before.lstrip(_FLAG) in self._keys
        )
