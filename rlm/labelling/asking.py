"""Asking a person for labels in the terminal, as the labels of a count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from anyio.from_thread import check_cancelled

from executors.clock import Clock
from rlm.labelling.picking import Picker
from rlm.labelling.screen import label_in_terminal
from rlm.labelling.session import Session, Shown
from rlm.labelling.writer import LabelFile
from rlm.labels import AskLabels, Label, LabelSetting, teach
from rlm.render.progress import Progress

__all__ = ["ask_in_terminal"]


def ask_in_terminal(
    path: Path,
    *,
    goal: int,
    by: str,
    stdin: TextIO,
    out: TextIO,
    positive: str | None = None,
    description: str | None = None,
    clock: Clock | None = None,
) -> AskLabels:
    """Return what asks a person until `goal` records are labelled, known ones included.

    Args:
        path: where labels are saved key by key; what it holds already counts.
        by: who labels.

    The returned function raises LabelsError when the file cannot be appended to, UsageError when
    `stdin` is no terminal, ModelError when the encoder fails, and KeyboardInterrupt on Ctrl-C.
    """

    def ask(setting: LabelSetting) -> Sequence[Label]:
        with LabelFile(path, by=by, clock=clock) as file:
            known = _together(setting.known, file.known)
            taught = teach(known, setting.spool, setting.question, positive=positive)
            with _Embedding(out, clock) as on_batch:
                picker = Picker(setting, goal=goal, description=description, on_batch=on_batch)
                # Choosing the first record may embed some thousand others.
                session = Session(
                    question=setting.question,
                    goal=goal,
                    known=taught.classes,
                    pick=picker,
                    records=_Reader(setting),
                    file=file,
                )
            label_in_terminal(session, stdin=stdin, out=out)
            return (*known, *session.made)

    return ask


class _Embedding:
    """Shows how embedding goes on, if it does, and lets a cancelled count end it between batches."""

    def __init__(self, out: TextIO, clock: Clock | None) -> None:
        self._progress = Progress("embed records to choose from", stream=out, clock=clock)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def __call__(self, more: int, total: int) -> None:
        check_cancelled()
        now = self._progress.standing
        if not now.done:
            self._open.enter_context(self._progress)
        self._progress.update(replace(now, done=now.done + more, total=total, unresolved=None))


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
