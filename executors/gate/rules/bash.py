"""Which commands may run, and which a person is asked about: by their words, never by their letters.

`cmd` and `command` are lines that a shell reads. `argv`, or a program with a list of `args` beside it, is
what runs as it stands: each of its words is one word, whatever characters it holds.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

from executors.boundary import Returned, attempt_now
from executors.gate.config.bash import BashSection, Platform
from executors.gate.decisions import Ask, Deny
from executors.gate.patterns import Patterns
from executors.gate.rules.allowing import Allowing
from executors.gate.rules.destructive import Tier, tier_of
from executors.gate.rules.unfolding import Unfolded, unfolded
from executors.gate.rules.words import Script, given_as_list, read

if TYPE_CHECKING:
    from executors.gate.actions import Action

__all__ = ["BashRule"]

_LONGEST: Final = 131_072  # characters; the kernel takes no longer argument
_CLASSES: Final = {2: "destructive", 3: "superDestructive"}


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A command, as a text and as what it does."""

    text: str
    script: Script

    @cached_property
    def unfolded(self) -> Unfolded:
        return unfolded(self.script)


class _Invalid(Exception):
    """What is no command."""


class BashRule:
    """Judges commands.

    Raises:
        ConfigError: a pattern that RE2 does not take; an entry of `allow` that is blank, that holds
            operators of a shell, or that would allow every command there is.
    """

    def __init__(self, section: BashSection) -> None:
        self._allowing = None if section.allow is None else Allowing(section.allow)
        self._denied = Patterns(tuple(section.deny_patterns), key="bash.deny_patterns")
        self._classifies = section.classify
        self._platform: Platform = section.platform or _platform()
        self._second = Patterns(tuple(section.extra_destructive), key="bash.extra_destructive")
        self._third = Patterns(
            tuple(section.extra_super_destructive), key="bash.extra_super_destructive"
        )
        self._reclassify = section.reclassify

    def deny(self, action: Action) -> Deny | None:
        """Return why an action may not run its command; None where it may, or runs none."""
        if action.kind != "bash":
            return None
        try:
            lines = _lines(action)
        except _Invalid as why:
            return Deny(rule="bash.invalidCmd", reason=str(why))
        for line in lines:
            found = self._denied.first(_texts(line)) if self._denied else None
            if found is not None:
                return Deny(rule="bash.denyPatterns", reason=f"it matches {found[:200]!r}")
            if (
                self._allowing is not None
                and (said := self._allowing.deny(line.script)) is not None
            ):
                return said
        return None

    def ask(self, action: Action) -> Ask | None:
        """Return what a person is asked about an action; None where nothing is."""
        if action.kind != "bash":
            return None
        try:
            lines = _lines(action)
        except _Invalid:  # it is denied
            return None
        for line in lines:
            if (found := self._asked(line)) is not None:
                return found
        return None

    def _asked(self, line: _Line) -> Ask | None:
        if self._classifies:
            tier = self.tier(line)
            if tier > 1:
                return Ask(
                    rule="bash.classify",
                    question=f"a {'super-' if tier == 3 else ''}destructive command: {_shown(line)}",
                    tier=tier,
                    classification=_CLASSES[tier],
                )
        if line.script.error is not None and (self._classifies or self._allowing is not None):
            return Ask(
                rule="bash.classify",
                question=f"a command that cannot be read ({line.script.error}): {_shown(line)}",
            )
        return None

    def tier(self, line: _Line) -> Tier:
        """Return how destructive a command is, once callers' patterns and function were heard."""
        tier = tier_of(line.unfolded, self._platform)
        if tier < 3 and self._third.first(_texts(line)) is not None:
            tier = 3
        elif tier < 2 and self._second.first(_texts(line)) is not None:
            tier = 2
        if self._reclassify is None:
            return tier
        got = attempt_now(self._reclassify, line.text, tier)
        value = got.value if isinstance(got, Returned) else None
        if isinstance(value, int) and not isinstance(value, bool) and value in (1, 2, 3):
            return cast("Tier", int(value))
        return tier


def _platform() -> Platform:
    if sys.platform == "darwin":
        return "macos"
    return "windows" if sys.platform == "win32" else "linux"


def _texts(line: _Line) -> Iterator[str]:
    """Go through the texts that patterns are held against: as written, and each command's words."""
    yield line.text
    for step in line.unfolded.steps:
        if step.words:
            yield " ".join(step.words)


def _shown(line: _Line) -> str:
    return repr(line.text if len(line.text) <= 300 else f"{line.text[:300]}…")


# ---------------------------------------------------------------- what is to be run


def _lines(action: Action) -> list[_Line]:
    """Return the commands that an action may mean; all of them have to pass.

    Raises:
        _Invalid: none, what is no command, or two that differ.
    """
    texts = [_text(one) for one in action.values("cmd", "command")]
    lists = [_list(one) for one in action.values("argv")]
    # Beside a program these are its arguments; by themselves they are anything.
    rests = [_list(one) for one in action.values("args", "arguments")] if texts else []
    if len(texts) > 1 or len(lists) + len(rests) > 1:
        raise _Invalid("it holds two commands that differ")
    if not texts and not lists:
        raise _Invalid("it holds no command: give cmd as text, or argv as a list of texts")
    if not texts:
        return [_as_list(lists[0])]
    if not lists and not rests:
        return [_Line(text=texts[0], script=read(texts[0]))]
    return [_beside(texts[0], lists, rests)]


def _beside(text: str, lists: Sequence[list[str]], rests: Sequence[list[str]]) -> _Line:
    """Return the one command that a line and a list beside it can mean."""
    script = read(text)
    one_line = script.error is None and not script.meta and len(script.commands) == 1
    own = script.commands[0].words if one_line else []
    if len(own) == 1 and rests:
        return _as_list([*own, *rests[0]])
    if lists and own and (lists[0] == own or (len(own) == 1 and lists[0][:1] == own)):
        return _as_list(lists[0])
    raise _Invalid("it holds a command line, and another command beside it")


def _as_list(words: Sequence[str]) -> _Line:
    if not words or not words[0].strip():
        raise _Invalid("its argv names no program")
    return _Line(text=shlex.join(words), script=given_as_list(words))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Invalid(f"its command is no text but {type(value).__name__}, or blank")
    if "\0" in value or len(value) > _LONGEST:
        raise _Invalid("its command is longer than any that runs, or holds a zero byte")
    return value


def _list(value: object) -> list[str]:
    if not isinstance(value, list):
        raise _Invalid("its argv is no list of texts")
    words = [_word(one) for one in cast("list[object]", value)]
    if sum(map(len, words)) > _LONGEST:
        raise _Invalid("its argv is longer than any that runs")
    return words


def _word(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or "\0" in str(value):
        raise _Invalid("its argv holds what is no text")
    return str(value)
