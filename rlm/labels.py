"""A person's labels of records: the shape, and how they meet a question's classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from corpus.questions import NO, YES, OneOf, Question, YesNo, classes_of
from corpus.spool import Spool
from executors.errors import LabelsError
from executors.models.encoders.load import Encoder

__all__ = ["AskLabels", "Label", "LabelSetting", "Taught", "teach"]

_YES: Final = frozenset({"yes", "y", "true", "t", "1", "1.0"})
_NO: Final = frozenset({"no", "n", "false", "f", "0", "0.0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One record's label, by whom and when (ISO 8601, UTC; "" when unknown)."""

    id: str
    label: str
    by: str = ""
    at: str = ""
    weight: float | None = None
    """How many records this one stands for, where it was chosen and not drawn; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSetting:
    """What somebody who is asked for labels needs."""

    spool: Spool
    question: Question
    encoder: Encoder
    known: tuple[Label, ...]


AskLabels = Callable[[LabelSetting], Sequence[Label]]
"""Asks a person; blocking, called in a worker thread. Returns all labels, the known ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """Labels that met the corpus, by ordinal."""

    classes: dict[int, str]
    """Ordinal -> class of the question."""
    by: dict[int, str]
    """Ordinal -> who said so."""
    weights: dict[int, float]
    """Ordinal -> how many records it stands for; empty where none was chosen with a weight."""
    notes: tuple[str, ...]


def teach(
    labels: Sequence[Label], spool: Spool, question: Question, *, positive: str | None = None
) -> Taught:
    """Match labels with the records of a corpus and with the classes of a question.

    Args:
        positive: for a YesNo, the label that means yes; every other one then means no.

    Raises:
        LabelsError: a label is none of the classes, one record has two different ones, or none
            names a record of the corpus.
    """
    _require_positive(labels, question, positive)
    classes: dict[int, str] = {}
    by: dict[int, str] = {}
    weights: dict[int, float] = {}
    unknown = empty = 0
    for label in labels:
        ordinal = spool.find(label.id)
        if ordinal is None:
            unknown += 1
            continue
        if bool(spool.is_empty[ordinal]):
            empty += 1
            continue
        name = _class_of(label, question, positive)
        if classes.setdefault(ordinal, name) != name:
            raise LabelsError(
                f"record {label.id!r} is labelled both {classes[ordinal]!r} and {name!r}",
                hint="keep one of the two",
            )
        by[ordinal] = label.by or "a person"
        if label.weight is not None:
            weights[ordinal] = label.weight
    if labels and not classes and not empty:
        raise LabelsError(
            f"{len(labels)} label(s) were given, and none names a record of this corpus",
            where=f"a label is for {labels[0].id!r}, a record is called {spool.id(0)!r}",
            hint="name the column with those ids: id='…' (--id)",
        )
    notes: list[str] = []
    if unknown:
        notes.append(f"{unknown} label(s) name no record of this corpus and were not used")
    if empty:
        notes.append(f"{empty} label(s) are for records without text, which stay empty")
    return Taught(classes=classes, by=by, weights=weights, notes=tuple(notes))


def _require_positive(labels: Sequence[Label], question: Question, positive: str | None) -> None:
    """Refuse a label that would mean yes and that nobody gave: a typo would turn all into no."""
    if positive is None or not labels or isinstance(question, OneOf):
        return
    seen = {label.label.strip().casefold(): label.label for label in labels}
    if positive.strip().casefold() not in seen:
        raise LabelsError(
            f"no record is labelled {positive!r}, which is to mean yes",
            where=f"the labels are {', '.join(map(repr, list(seen.values())[:20]))}",
            hint="name one of them with positive='…' (--positive)",
        )


def _class_of(label: Label, question: Question, positive: str | None) -> str:
    folded = label.label.strip().casefold()
    match question:
        case YesNo():
            if positive is not None:
                return YES if folded == positive.strip().casefold() else NO
            if folded in _YES:
                return YES
            if folded in _NO:
                return NO
        case OneOf():
            for name in question.labels:
                if folded == name.strip().casefold():
                    return name
        case _:
            assert_never(question)
    raise LabelsError(
        f"record {label.id!r} is labelled {label.label!r}",
        where=f"the classes are {', '.join(map(repr, classes_of(question)))}",
        hint="name the label that means yes with positive='…' (--positive), or correct it",
    )
