"""Labelling: one record, one key, saved; the whole behaviour without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from corpus.questions import Question, YesNo
from executors.errors import ValidationError
from rlm.labelling.writer import LabelFile
from rlm.labels import Label
from rlm.render.safe import plain

__all__ = [
    "QUIT",
    "SKIP",
    "UNDO",
    "Action",
    "Ignored",
    "Labelled",
    "Pick",
    "Picked",
    "Quit",
    "Records",
    "Session",
    "Shown",
    "Skipped",
    "Undone",
    "keys_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A record to label, and how many records it stands for; None where it was simply drawn."""

    ordinal: int
    weight: float | None = None


Pick = Callable[[Mapping[int, str], frozenset[int]], Picked | None]
"""Chooses the next record: labels by ordinal, ordinals to leave alone -> record, None: no more."""

SKIP: Final = "s"
UNDO: Final = "u"
QUIT: Final = "q"
_RESERVED: Final = frozenset({SKIP, UNDO, QUIT})
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
    """Keys in, actions out; `current` is what to show, None when there is nothing left.

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
        self._past: list[Picked] = []
        self.current = self._next()

    @property
    def path(self) -> Path:
        """Where labels are saved."""
        return self._file.path

    @property
    def shown(self) -> Shown | None:
        """The record to show now; None when the goal is reached or no record is left."""
        return None if self.current is None else self._records(self.current.ordinal)

    def press(self, key: str) -> Action:
        """Take one key and do what it says."""
        if key == QUIT:
            return Quit()
        if key == UNDO:
            return self._undo()
        if self.current is None:
            return Ignored(why="nothing is left to label")
        if key == SKIP:
            return self._skip(self.current)
        if key in self.keys:
            return self._label(self.current, self.keys[key])
        return Ignored(why=f"no such key: {plain(key, 12)}")

    def _label(self, picked: Picked, label: str) -> Action:
        id_ = self._records(picked.ordinal).id
        self.made.append(self._file.add(id_, label, weight=picked.weight))
        self.labels[picked.ordinal] = label
        self._go_on(picked)
        return Labelled(id=id_, label=label)

    def _skip(self, picked: Picked) -> Action:
        self._skipped.add(picked.ordinal)
        self._go_on(picked)
        return Skipped(id=self._records(picked.ordinal).id)

    def _undo(self) -> Action:
        if not self._past:
            return Ignored(why="nothing to undo in this session")
        picked = self._past.pop()
        id_ = self._records(picked.ordinal).id
        if picked.ordinal in self._skipped:
            self._skipped.remove(picked.ordinal)
        else:
            self._file.withdraw(id_)
            self.made.pop()
            del self.labels[picked.ordinal]
        self.current = picked
        return Undone(id=id_)

    def _go_on(self, picked: Picked) -> None:
        self._past.append(picked)
        self.current = self._next()

    def _next(self) -> Picked | None:
        if len(self.labels) >= self.goal:
            return None
        return self._pick(self.labels, frozenset(self._skipped))
