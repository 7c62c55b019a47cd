"""Fields of an action whose value alone decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from executors.gate.actions import Action
from executors.gate.config.flags import FlagsSection, flag_text
from executors.gate.decisions import Ask, Deny

__all__ = ["FlagsRule"]


class FlagsRule:
    """Reads fields as they are, and no other text; a list or a mapping in one says nothing."""

    def __init__(self, section: FlagsSection) -> None:
        self._fields: Mapping[str, Mapping[str, Literal["deny", "ask"]]] = section.root

    def deny(self, action: Action) -> Deny | None:
        """Return why a field of an action forbids it; None where none does."""
        for field, value in self._found(action, "deny"):
            return Deny(rule=f"flags.{field}", reason=f"its {field} is {value!r}")
        return None

    def ask(self, action: Action) -> Ask | None:
        """Return what a person has to decide about a field of an action; None where there is none."""
        for field, value in self._found(action, "ask"):
            return Ask(rule=f"flags.{field}", question=f"its {field} is {value!r}: let it happen?")
        return None

    def _found(self, action: Action, what: Literal["deny", "ask"]) -> Iterator[tuple[str, str]]:
        for field, values in self._fields.items():
            for given in action.values(field):
                text = flag_text(given)
                if isinstance(text, str) and values.get(text) == what:
                    yield field, text
