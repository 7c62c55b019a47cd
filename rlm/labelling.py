"""Labelling in a terminal: one record, one key, saved.

`Session` is the whole behaviour without a terminal: it is shown keys and answers with what to do.
`label_in_terminal` puts it in front of a person.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TextIO, assert_never

from corpus.questions import OneOf, Question, YesNo
from executors.errors import UsageError, ValidationError
from rlm.label_file import LabelFile
from rlm.labels import Label
from rlm.render.lines import Line, Piece, line, write_lines
from rlm.render.safe import plain, plain_lines
from rlm.terminal import Keys, screen_size

__all__ = [
    "Action",
    "Ignored",
    "Labelled",
    "Pick",
    "Quit",
    "Records",
    "Session",
    "Shown",
    "Skipped",
    "Undone",
    "choices_of",
    "keys_of",
    "label_in_terminal",
    "require_terminal",
    "who",
]

Pick = Callable[[Mapping[int, str], frozenset[int]], int | None]
"""Chooses the next record: labels by ordinal, ordinals to leave alone -> ordinal, None: no more."""

_SKIP, _UNDO, _QUIT = "s", "u", "q"
_RESERVED: Final = frozenset({_SKIP, _UNDO, _QUIT})
_KEYS: Final = "1234567890" + "".join(
    key for key in "abcdefghijklmnopqrstuvwxyz" if key not in _RESERVED
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A record as a person sees it."""

    id: str
    text: str


class Records(Protocol):
    """Where records are read from by their ordinal."""

    def __call__(self, ordinal: int) -> Shown: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The record got a label, which is on disk."""

    id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The last label or skip was taken back; its record is shown again."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """The record stays without a label and is not shown again in this session."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quit:
    """The person has had enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """The key means nothing here."""

    why: str


Action = Labelled | Undone | Skipped | Quit | Ignored


def choices_of(question: Question) -> tuple[str, ...]:
    """Return the classes that a person chooses from."""
    match question:
        case YesNo():
            return ("yes", "no")
        case OneOf():
            return question.labels
        case _:
            assert_never(question)


def keys_of(question: Question) -> dict[str, str]:
    """Return the key of each class: y and n, or 1, 2, 3 … and letters after 0.

    Raises:
        ValidationError: more classes than keys.
    """
    if isinstance(question, YesNo):
        return {"y": "yes", "n": "no"}
    if len(question.labels) > len(_KEYS):
        raise ValidationError(
            f"{len(question.labels)} labels, but one key each is had for {len(_KEYS)} only",
            hint="give labels in a file or a column (--labels)",
        )
    return dict(zip(_KEYS, question.labels, strict=False))


class Session:
    """Keys in, actions out; `current` is the ordinal to show, None when there is nothing left.

    Args:
        goal: labels wanted in all, those known before included.
        known: labels by ordinal that exist already; they stay.
    """

    def __init__(
        self,
        *,
        question: Question,
        goal: int,
        known: Mapping[int, str],
        pick: Pick,
        records: Records,
        file: LabelFile,
    ) -> None:
        self.question = question
        self.keys = keys_of(question)
        self.goal = goal
        self.labels = dict(known)
        self.made: list[Label] = []
        self._pick = pick
        self._records = records
        self._file = file
        self._skipped: set[int] = set()
        self._past: list[int] = []
        self.current = self._next()

    @property
    def path(self) -> Path:
        """Where labels are saved."""
        return self._file.path

    @property
    def shown(self) -> Shown | None:
        """The record to show now; None when the goal is reached or no record is left."""
        return None if self.current is None else self._records(self.current)

    def press(self, key: str) -> Action:
        """Take one key and do what it says."""
        if key == _QUIT:
            return Quit()
        if key == _UNDO:
            return self._undo()
        if self.current is None:
            return Ignored(why="nothing is left to label")
        if key == _SKIP:
            return self._skip(self.current)
        if key in self.keys:
            return self._label(self.current, self.keys[key])
        return Ignored(why=f"no such key: {plain(key, 12)}")

    def _label(self, ordinal: int, label: str) -> Action:
        id_ = self._records(ordinal).id
        self.made.append(self._file.add(id_, label))
        self.labels[ordinal] = label
        self._go_on(ordinal)
        return Labelled(id=id_, label=label)

    def _skip(self, ordinal: int) -> Action:
        self._skipped.add(ordinal)
        self._go_on(ordinal)
        return Skipped(id=self._records(ordinal).id)

    def _undo(self) -> Action:
        if not self._past:
            return Ignored(why="nothing to undo in this session")
        ordinal = self._past.pop()
        id_ = self._records(ordinal).id
        if ordinal in self._skipped:
            self._skipped.remove(ordinal)
        else:
            self._file.withdraw(id_)
            self.made.pop()
            del self.labels[ordinal]
        self.current = ordinal
        return Undone(id=id_)

    def _go_on(self, ordinal: int) -> None:
        self._past.append(ordinal)
        self.current = self._next()

    def _next(self) -> int | None:
        if len(self.labels) >= self.goal:
            return None
        return self._pick(self.labels, frozenset(self._skipped))


def who() -> str:
    """Return who sits here: $USER, or the name of the account."""
    try:
        return os.environ.get("USER") or getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return f"uid {os.getuid()}"


def label_in_terminal(session: Session, *, stdin: TextIO, out: TextIO) -> None:
    """Show records and read keys until the goal, the end of the records, or `q`.

    Raises:
        UsageError: standard input is no terminal.
    """
    require_terminal(stdin)
    write_lines([line(f"labels are saved key by key in {plain(str(session.path))}")], out)
    with Keys(stdin.fileno()) as keys:
        while True:
            action = _turn(session, keys, out)
            if action is None:
                return
            write_lines([_said(action)], out)
            if isinstance(action, Quit):
                return


def _turn(session: Session, keys: Keys, out: TextIO) -> Action | None:
    """Show what there is and take keys until one means something; None: all is done."""
    shown = session.shown
    if shown is None:
        if not session.made:
            return None
        write_lines([line("done: any key ends, ", Piece(f"[{_UNDO}]", "strong"), " undo")], out)
        return session.press(_UNDO) if keys.read() == _UNDO else None
    write_lines(_page(session, shown), out)
    while isinstance(action := session.press(keys.read()), Ignored):
        write_lines([_said(action)], out)
    return action


def require_terminal(stdin: TextIO) -> None:
    """Refuse to ask where nobody can answer.

    Raises:
        UsageError: it is no terminal.
    """
    if not stdin.isatty():
        raise UsageError(
            "labels are asked for key by key, but standard input is no terminal",
            where="--label",
            hint="run it in a terminal, or give labels in a file or a column (--labels)",
        )


def _page(session: Session, shown: Shown) -> list[Line]:
    columns, rows = screen_size()
    count = len(session.labels)
    rule = "-" * min(columns, 60)
    head = line(Piece(f"{count + 1} of {session.goal}", "strong"), f"  {plain(shown.id, columns)}")
    body = [line(text) for text in plain_lines(shown.text, columns, max(4, rows - 9))]
    asked = line(Piece(plain(session.question.text, columns * 2), "strong"))
    return [line(Piece(rule, "dim")), head, line(""), *body, line(""), asked, _help(session.keys)]


def _help(keys: Mapping[str, str]) -> Line:
    pieces: list[str | Piece] = []
    for key, label in {**keys, _SKIP: "skip", _UNDO: "undo", _QUIT: "quit"}.items():
        pieces += [Piece(f"[{key}]", "strong"), f" {plain(label, 40)}  "]
    return line(*pieces)


def _said(action: Action) -> Line:
    match action:
        case Labelled():
            return line(
                Piece(f"saved: {plain(action.id, 40)} is {plain(action.label, 40)}", "good")
            )
        case Skipped():
            return line(f"skipped: {plain(action.id, 40)}")
        case Undone():
            return line(f"undone: {plain(action.id, 40)}")
        case Quit():
            return line("labelling ends here; every label so far is saved")
        case Ignored():
            return line(Piece(action.why, "warn"))
        case _:
            assert_never(action)
