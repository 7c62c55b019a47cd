"""Which tools may be called at all, and with which arguments never."""

from __future__ import annotations

from typing import Final

from executors.errors import ConfigError
from executors.gate.actions import Action
from executors.gate.config.texts import Texts
from executors.gate.config.tools import ToolsSection
from executors.gate.decisions import Deny
from executors.gate.harmless import harmless
from executors.gate.patterns import Patterns
from executors.gate.rules.globs import Glob

__all__ = ["ToolsRule"]

_SHOWN: Final = 100


class ToolsRule:
    """Judges names of tools, and the arguments of those that have patterns of their own.

    What is denied is denied by the tool's name and by its type; allowed it is by its name alone.

    Raises:
        ConfigError: a list that is none, or a pattern that cannot be one.
    """

    def __init__(self, section: ToolsSection) -> None:
        self._section = section
        self._listed = section.allowlist
        self._allowed = None if self._listed is None else _globs("tools.allowlist", self._listed)
        self._denied = _globs("tools.denylist", section.denylist)
        self._arguments = [
            (Glob(name), Patterns(patterns, key=f"tools.deny_arg_patterns[{name!r}]"))
            for name, patterns in section.deny_arg_patterns.items()
        ]

    def deny_listed(self, action: Action) -> Deny | None:
        """Return why a tool may never be called; None where it may."""
        for glob in self._denied:
            if _stands_for(glob, action):
                return Deny(
                    rule="tools.denylist",
                    reason=f"{_shown(action)} is on the denylist, by {glob.text!r}",
                )
        return None

    def deny_arguments(self, action: Action) -> Deny | None:
        """Return why a tool may not be called with what it is given; None where it may."""
        for glob, patterns in self._arguments:
            if not _stands_for(glob, action):
                continue
            texts = (action.serialized(payload=True), *action.texts(payload=True))
            if (found := patterns.first(texts)) is not None:
                return Deny(
                    rule="tools.denyArgPatterns",
                    reason=f"the arguments of {_shown(action)} match {harmless(found, 200)}",
                )
        return None

    def deny_unlisted(self, action: Action) -> Deny | None:
        """Return why a tool may not be called where some may; None where it may, or all may."""
        if self._section.allowlist is not self._listed:
            return Deny(
                rule="tools.allowlist.invalid",
                reason="tools.allowlist was changed after the gate was built",
            )
        if self._allowed is None or any(glob.matches(action.tool) for glob in self._allowed):
            return None
        return Deny(
            rule="tools.allowlist.exclusive",
            reason=f"{_shown(action)} is not on the allowlist",
        )


def _stands_for(glob: Glob, action: Action) -> bool:
    return glob.matches(action.tool) or glob.matches(action.type)


def _shown(action: Action) -> str:
    name = action.tool
    return "an action without a type" if not name else repr(name[:_SHOWN])


def _globs(key: str, entries: Texts) -> tuple[Glob, ...]:
    # A section that was built around its checks may hold anything.
    given: object = entries
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in entries):
        raise ConfigError(
            f"{key}={given!r}"[:300],
            where="the gate's configuration",
            hint="give a list of names of tools; [] is one",
        )
    return tuple(map(Glob, entries))
