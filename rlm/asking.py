"""Asking a person for labels in the terminal, as the labels of a count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TextIO

from corpus.scan import distinct
from executors.clock import Clock
from rlm.label_file import LabelFile
from rlm.labelling import Pick, Session, Shown, label_in_terminal
from rlm.labels import AskLabels, Label, LabelSetting, teach

__all__ = ["ask_in_terminal", "at_random"]


def ask_in_terminal(
    path: Path,
    *,
    goal: int,
    by: str,
    stdin: TextIO,
    out: TextIO,
    positive: str | None = None,
    clock: Clock | None = None,
    picker: Callable[[LabelSetting], Pick] | None = None,
) -> AskLabels:
    """Return what asks a person until `goal` records are labelled, known ones included.

    Args:
        path: where labels are saved key by key; what it holds already counts.
        by: who labels.
        picker: chooses the records to ask about; at random when None.

    The returned function raises LabelsError when the file cannot be appended to, UsageError when
    `stdin` is no terminal, and KeyboardInterrupt on Ctrl-C.
    """

    def ask(setting: LabelSetting) -> Sequence[Label]:
        with LabelFile(path, by=by, clock=clock) as file:
            known = _together(setting.known, file.known)
            taught = teach(known, setting.spool, setting.question, positive=positive)
            session = Session(
                question=setting.question,
                goal=goal,
                known=taught.classes,
                pick=(picker or at_random)(setting),
                records=_Reader(setting),
                file=file,
            )
            label_in_terminal(session, stdin=stdin, out=out)
            return (*known, *session.made)

    return ask


def at_random(setting: LabelSetting) -> Pick:
    """Choose among the distinct, non-empty records at random, the same ones for the same corpus."""
    order = distinct(setting.spool).tolist()
    Random(setting.spool.fingerprint).shuffle(order)

    def pick(labels: Mapping[int, str], skipped: frozenset[int]) -> int | None:
        left = (ordinal for ordinal in order if ordinal not in labels and ordinal not in skipped)
        return next(left, None)

    return pick


class _Reader:
    """Reads records from the spool, as a person is shown them."""

    def __init__(self, setting: LabelSetting) -> None:
        self._spool = setting.spool

    def __call__(self, ordinal: int) -> Shown:
        record = self._spool.record(ordinal)
        return Shown(id=record.id, text=record.text)


def _together(given: tuple[Label, ...], saved: tuple[Label, ...]) -> tuple[Label, ...]:
    """Join both without repeating what stands in both, as when the file was given too."""
    return tuple(dict.fromkeys((*given, *saved)))
