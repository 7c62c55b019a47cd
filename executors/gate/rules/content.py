"""What no action may hold, and what a person is asked about, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator

from executors.gate.actions import Action
from executors.gate.config.content import MEANINGS, ContentSection
from executors.gate.decisions import Ask, Deny
from executors.gate.harmless import harmless
from executors.gate.patterns import Patterns

__all__ = ["ContentRule"]


class ContentRule:
    """Holds patterns against an action as JSON, each of its texts, and command lines put together.

    Raises:
        ConfigError: a pattern that cannot be one.
    """

    def __init__(self, section: ContentSection) -> None:
        self._denied = Patterns(section.deny_patterns, key="content.deny_patterns")
        self._asked = Patterns(section.ask_patterns, key="content.ask_patterns")

    def deny(self, action: Action) -> Deny | None:
        """Return why an action may not happen for what it holds; None where it may."""
        found = self._denied.first(_read(action)) if self._denied else None
        if found is None:
            return None
        return Deny(rule="content.denyPatterns", reason=_meant(found))

    def deny_broken(self, action: Action) -> Deny | None:
        """Return why an action cannot be judged; None where it can."""
        if action.broken is None:
            return None
        return Deny(
            rule="content.unserializable", reason=f"it cannot be judged whole: {action.broken}"
        )

    def ask(self, action: Action) -> Ask | None:
        """Return what a person has to decide about what it holds; None where there is nothing."""
        found = self._asked.first(_read(action)) if self._asked else None
        if found is None:
            return None
        return Ask(rule="content.askPatterns", question=f"{_meant(found)}: let it happen?")


def _meant(pattern: str) -> str:
    return MEANINGS.get(pattern) or f"it matches {harmless(pattern, 200)}"


def _read(action: Action) -> Iterator[str]:
    yield action.json
    yield from action.texts()
