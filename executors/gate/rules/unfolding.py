"""All commands of a script: those behind others, in texts that are run, and in pipes to a shell."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from executors.gate.rules.inner import Begun, Given, Opaque, bare, runs, shell_operand
from executors.gate.rules.programs import INTERPRETERS, SHELLS, program
from executors.gate.rules.words import Command, Script, read

__all__ = ["Step", "Unfolded", "unfolded"]

_DEEPEST: Final = 16
_MOST: Final = 400  # commands besides those that stand in the script itself
_DEAREST: Final = 500_000  # characters to be read beyond the script's own; a word counts as several
_WORD: Final = 12
_LONGEST: Final = 2_000  # commands of a script
_INPUTS: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_SELF: Final = frozenset({"$0", "${0}"})
_PRINTERS: Final = frozenset({"echo", "printf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command, wherever it was found."""

    words: Sequence[str]
    """From its program on; empty where it only writes to a file."""
    command: Command
    """Whose it is, or that it stands behind: with the same input and output."""
    depth: int

    @property
    def runs_input(self) -> bool:
        """Return whether it runs what another command prints."""
        return self.command.source is not None and _waits(self.words)

    @property
    def runs_output(self) -> bool:
        """Return whether it runs what a command within its words prints."""
        return bool(self.command.within) and _interprets(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfolded:
    """What a script does."""

    steps: tuple[Step, ...]
    bomb: bool
    """It names a command that begins itself twice."""
    unknown: str | None
    """Why not all that it does is known; None where it is."""


def unfolded(script: Script) -> Unfolded:
    """Find all commands of a script, in linear time: what is nested too deeply is not known."""
    work = _Work()
    work.take(script, 0)
    work.run()
    return Unfolded(
        steps=tuple(work.steps),
        bomb=any(_doubles(one, script.functions) for one in script.commands),
        unknown=work.unknown,
    )


class _Work:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.unknown: str | None = None
        self._open: deque[Step] = deque()
        self._left = _MOST
        self._spare = _DEAREST

    def take(self, script: Script, depth: int, *, doubtful: bool = False) -> None:
        if script.error is not None and not doubtful:
            self.unknown = script.error
        if len(script.commands) > _LONGEST:
            self.unknown = "it holds more commands than anybody reads"
        for command in script.commands[:_LONGEST]:
            self._begin(command.words, command, depth)

    def run(self) -> None:
        while self._open:
            step = self._open.popleft()
            self.steps.append(step)
            for one in runs(step.words):
                self._inner(one, step)
            for text in _fed(step):
                self._inner(Given(text=text), step)

    def _begin(self, words: Sequence[str], command: Command, depth: int) -> None:
        self._open.append(Step(words=words[bare(words) :], command=command, depth=depth))

    def _inner(self, one: Begun | Given | Opaque, step: Step) -> None:
        if isinstance(one, Opaque):
            if not one.doubtful:
                self.unknown = one.why
            return
        cost = len(one.text) if isinstance(one, Given) else _WORD * (one.end - one.start)
        self._left -= 1
        self._spare -= cost
        if step.depth >= _DEEPEST or self._left < 0 or self._spare < 0:
            self.unknown = "commands are nested too deeply"
            return
        if isinstance(one, Given):
            self.take(read(one.text), step.depth + 1, doubtful=one.doubtful)
        else:
            self._begin(step.words[one.start : one.end], step.command, step.depth + 1)


def _interprets(words: Sequence[str]) -> bool:
    return bool(words) and program(words[0]) in INTERPRETERS


def _waits(words: Sequence[str]) -> bool:
    """Return whether an interpreter reads its program from its input."""
    if not words:
        return False
    name = program(words[0])
    if name in ("su", "sudo", "doas"):
        return _begins_shell(name, words)
    if name not in INTERPRETERS:
        return False
    if name in SHELLS:
        at, letters = shell_operand(words)
        if "c" in letters:
            return False
        return "s" in letters or at >= len(words) or words[at] in _INPUTS
    operands = [word for word in words[1:] if not word.startswith("-") or word == "-"]
    return not operands or operands[0] in _INPUTS or "-s" in words[1:3] or "/dev/stdin" in operands


def _begins_shell(name: str, words: Sequence[str]) -> bool:
    """Return whether who becomes another user gets a shell that reads the input."""
    letters = "".join(word[1:] for word in words[1:] if word.startswith("-") and word[1:2] != "-")
    if name == "su":
        return "c" not in letters and not any(word.startswith("--c") for word in words)
    shell = "s" in letters or "i" in letters or "--shell" in words or "--login" in words
    return shell and not any(isinstance(one, Begun) for one in runs(words))


def _fed(step: Step) -> Iterator[str]:
    """Go through the scripts that a shell reads, as far as they stand in the text."""
    if not _waits(step.words) or program(step.words[0]) not in SHELLS:
        return
    yield from step.command.fed
    source = step.command.source
    if source is not None:
        yield from source.fed
        words = source.words[bare(source.words) :]
        if words and program(words[0]) in _PRINTERS:
            yield " ".join(words[1:])


def _doubles(command: Command, functions: frozenset[str]) -> bool:
    """Return whether a command begins itself twice: in a pipe with itself, or without waiting for it."""
    words = command.words[bare(command.words) :]
    if not words or words[0] not in functions | _SELF:
        return False
    if command.background and (command.body == words[0] or words[0] in _SELF):
        return True
    before = command.source.words if command.source is not None else []
    return before[bare(before) :] == words
