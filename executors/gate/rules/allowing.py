"""The commands that are allowed by their first words, and what may never be allowed so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from executors.errors import ConfigError
from executors.gate.decisions import Deny
from executors.gate.rules.inner import Begun, Hidden, Opaque, bare, runs
from executors.gate.rules.programs import (
    FOLLOWED,
    INTERPRETERS,
    RUNNERS,
    UNBOUNDED,
    WRAPPERS,
    program,
)
from executors.gate.rules.words import Script, read

__all__ = ["Allowing"]

_DEEPEST: Final = 16
_MOST_WORDS: Final = 40_000
_MOST: Final = 400  # commands that one runs, and those that they run
_KEY: Final = "bash.allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A command that is to be judged."""

    words: Sequence[str]
    covered: int
    """How many of its words an entry allowed already, as those of `sudo git` do."""
    depth: int


class Allowing:
    """A list of beginnings of commands.

    Raises:
        ConfigError: an entry that is blank, holds operators, or allows every command there is.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._entries = tuple(_entry(one) for one in entries)

    def deny(self, script: Script) -> Deny | None:
        """Return why a script may not run; None where each command that it runs is on the list."""
        if script.meta:
            return Deny(
                rule="bash.allow.shellMeta",
                reason="one plain command is allowed: no pipes, lists, redirections, expansions "
                "or substitutions",
            )
        words = script.commands[0].words if script.commands else []
        why = self._why_not(words)
        return None if why is None else Deny(rule=_KEY, reason=why)

    def _why_not(self, words: Sequence[str]) -> str | None:
        """Return why a command, or one that it runs, may not run."""
        waiting = [_Waiting(words=words, covered=0, depth=0)]
        read_already = 0
        for _ in range(_MOST):
            if not waiting:
                return None
            one = waiting.pop()
            read_already += len(one.words)
            named = self._matched(one.words)
            if named == 0 and one.covered == 0:
                return f"{_shown(one.words)} is not on {_KEY}"
            one = replace(one, covered=max(one.covered, named))
            if one.depth > _DEEPEST or read_already > _MOST_WORDS:
                break
            for hidden in runs(one.words):
                if (why := _follow(hidden, one, waiting)) is not None:
                    return why
        return "commands are nested too deeply"

    def _matched(self, words: Sequence[str]) -> int:
        return max(
            (len(one) for one in self._entries if tuple(words[: len(one)]) == one), default=0
        )


def _follow(hidden: Hidden, one: _Waiting, waiting: list[_Waiting]) -> str | None:
    """Let what a command runs wait to be judged; return why it may not run at all."""
    if not isinstance(hidden, Begun) and hidden.upto is not None and hidden.upto <= one.covered:
        return None
    if isinstance(hidden, Opaque):
        return f"{_shown(one.words)}: {hidden.why}"
    if isinstance(hidden, Begun):
        inner = one.words[hidden.start : hidden.end]
        covered = max(0, one.covered - hidden.start)
        waiting.append(_Waiting(words=inner, covered=covered, depth=one.depth + 1))
        return None
    script = read(hidden.text)
    if script.meta or script.error is not None:
        return f"{_shown(one.words)} runs a script"
    waiting.extend(
        _Waiting(words=command.words, covered=0, depth=one.depth + 1) for command in script.commands
    )
    return None


def _entry(entry: str) -> tuple[str, ...]:
    script = read(entry)
    if script.meta or script.error is not None:
        raise _refused(
            entry, "is more than the beginning of one command", "leave out operators of a shell"
        )
    words = script.commands[0].words if script.commands else []
    if not words or not words[0]:
        raise _refused(entry, "names no command", "write a program, and its first words if need be")
    if _allows_all(words):
        raise _refused(
            entry,
            "allows every command there is",
            "add what it shall run: a script after an interpreter, a task after a runner, the "
            "command after sudo, env, xargs and the like",
        )
    return tuple(words)


def _allows_all(words: Sequence[str]) -> bool:
    """Return whether the words after these decide what is run."""
    for _ in range(_DEEPEST):
        words = words[bare(words) :]
        if not words:
            return True
        name = program(words[0])
        rest = list(words[1:])
        if name in WRAPPERS:
            begun = [one for one in runs(words) if isinstance(one, Begun)]
            if not begun:
                return True
            words = words[begun[-1].start :]
        elif name in INTERPRETERS | UNBOUNDED:
            return not rest or (rest[0].startswith("-") and (rest[0] != "-m" or len(rest) < 2))
        elif name in RUNNERS:
            while rest and rest[0] in FOLLOWED:
                rest.pop(0)
            if not rest or rest[0].startswith("-"):
                return True
            words = rest
        else:
            return any(char in words[0] for char in "*?[{$")
    return True


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words[:6])
    return repr(text if len(text) <= 120 else f"{text[:120]}…")


def _refused(entry: str, why: str, hint: str) -> ConfigError:
    return ConfigError(
        f"{_KEY} holds {entry[:200]!r}, which {why}", where="the gate's configuration", hint=hint
    )
