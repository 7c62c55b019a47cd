"""One sitting of a run: its directory under lock, its manifest, its spool, its journal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio.to_thread

from corpus.questions import OneOf, Question
from executors.errors import DiskFault, RunDirError
from executors.ids import RunId
from executors.journal.lock import RunLock
from executors.journal.records import Journal, NoJournal
from executors.replies import JsonValue
from rlm._version import __version__
from rlm.corpora import Spec
from rlm.labels import Label
from rlm.runs.foreign import refuse_links
from rlm.runs.former import Former
from rlm.runs.home import MANIFEST, run_directory
from rlm.runs.keeping import RunEntry, expire_runs, kept_days
from rlm.runs.label_file import keep_labels, kept_labels
from rlm.runs.manifest import (
    Judging,
    Kind,
    Manifest,
    SessionNote,
    mark_of,
    question_of,
    same_judging,
)
from rlm.runs.spools import NEXT, SPOOL, erase_ids, settle_spool, swap_spool

if TYPE_CHECKING:
    from corpus.agenda import Agenda, Ordinals
    from corpus.filing import Filing
    from corpus.sources import Source
    from corpus.spool import OnDuplicate, Spool
    from executors.journal.journal import RunJournal

__all__ = ["Session", "Wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a session is to be about; a run that exists has to agree with it."""

    directory: str | os.PathLike[str] | None
    question: Question
    options: Mapping[str, JsonValue]
    objects: Mapping[str, str]
    kind: Kind = "count"
    """What the run does; the text of the question of a recursion is its task."""


class Session:
    """Made by `begin`, used by one coordinator, ended by `close`."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        lock: RunLock,
        *,
        before: Manifest,
        former: Former,
        expired: tuple[RunEntry, ...] = (),
    ) -> None:
        self.directory = directory
        self.expired = expired
        """Runs that were deleted at its beginning, since the user keeps none so old."""
        self.manifest = manifest
        self.before = before
        """The run as it was, which a session that was wrong use leaves behind."""
        self._former = former
        self.journal: Journal = NoJournal()
        self._lock = lock
        self._opened: RunJournal | None = None

    @classmethod
    def begin(cls, wanted: Wanted, *, run: RunId, now: datetime) -> Self:
        """Make a run, or go on with the one that the directory holds. Blocking.

        Raises:
            RunDirError: the directory is no place for it, another process works on it, or it holds
                a run about something else.
        """
        kept = kept_days()
        made = wanted.directory is None or not Path(wanted.directory).exists()
        directory = run_directory(run, wanted.directory)
        refuse_links(directory)
        lock = RunLock(directory)
        lock.take()
        try:
            former = Former.of(directory, made=made)
            expired = expire_runs(now, kept)  # never this one, which is locked by now
            before = manifest = _manifest(directory, wanted, run)
            note = SessionNote(number=len(manifest.sessions) + 1, started=now, version=__version__)
            manifest = manifest.model_copy(
                update={
                    "sessions": (*manifest.sessions, note),
                    "options": dict(wanted.options),
                    "objects": dict(wanted.objects),
                }
            )
            manifest.save(directory)
            settle_spool(directory)
        except BaseException:
            lock.release()
            raise
        return cls(directory, manifest, lock, before=before, former=former, expired=tuple(expired))

    @property
    def number(self) -> int:
        """Which session this is, from 1."""
        return self.manifest.last.number

    @property
    def opened(self) -> RunJournal | None:
        """The journal, where one was opened."""
        return self._opened

    async def open_journal(self) -> RunJournal:
        """Open the journal of the run; needed by whoever asks models.

        Raises:
            RunDirError: it lies where it would not be safe.
        """
        # SQLite is for those who need it.
        from executors.journal.index import drop_index
        from executors.journal.journal import RunJournal

        if self.manifest.foreign:  # what was made elsewhere is read again, never opened
            drop_index(self.directory / "index.sqlite")
        self._opened = await anyio.to_thread.run_sync(RunJournal.open, self.directory)
        self.journal = self._opened
        self.note(segment=self._opened.segment)
        return self._opened

    def note(self, **changes: object) -> None:
        """Write down something about this session."""
        self.manifest = self.manifest.with_last(**changes)
        self.manifest.save(self.directory)

    def end(self, now: datetime, *, blocker: str | None, content_root: str | None) -> None:
        """Write down how this session ended, and what came out."""
        self.manifest = self.manifest.model_copy(update={"content_root": content_root})
        self.note(ended=now, blocker=blocker)

    def govern(self, digest: str) -> None:
        """Write down that a gate of this configuration governs the run from now on."""
        if self.manifest.governed != digest:
            self.manifest = self.manifest.model_copy(update={"governed": digest})
            self.manifest.save(self.directory)

    # ---------------------------------------------------------------- the corpus

    def read_from(self, spec: Spec | None) -> None:
        """Write down where the corpus is read from."""
        self.manifest = self.manifest.model_copy(update={"source": spec})
        self.manifest.save(self.directory)

    async def build_spool(self, source: Source, on_duplicate: OnDuplicate) -> Spool:
        """Read a source into the spool; the one of an earlier session gives way to it at the end.

        Raises:
            SourceError: see `corpus.spool.build_spool`.
        """
        from corpus.spool import Spool, build_spool

        first = not (self.directory / SPOOL).exists()
        target = self.directory / (SPOOL if first else NEXT)
        spool = await build_spool(source, target, on_duplicate=on_duplicate)
        if not first:
            spool.close()
            await anyio.to_thread.run_sync(swap_spool, self.directory)
            spool = Spool.open(self.directory / SPOOL)
        if forgotten := self.manifest.forgotten:
            again = partial(erase_ids, self.directory, forgotten)
            if await anyio.to_thread.run_sync(again):
                spool.close()
                spool = Spool.open(self.directory / SPOOL)
        self.before = self.before.model_copy(update={"source": self.manifest.source})
        self._read(spool)
        return spool

    def kept_spool(self) -> Spool | None:
        """Return the spool that an earlier session built; None where none was finished."""
        from corpus.spool import Spool

        if not (self.directory / SPOOL / "meta.json").exists():
            return None
        spool = Spool.open(self.directory / SPOOL, checked=True)
        self._read(spool)
        return spool

    def _read(self, spool: Spool) -> None:
        order = blake2b(spool.digests.tobytes(), digest_size=16).hexdigest()
        self.note(fingerprint=spool.fingerprint, order=order, records=len(spool))

    # ---------------------------------------------------------------- labels

    def keep_labels(self, labels: Sequence[Label]) -> None:
        """Write down the labels of this session, for those that go on with it."""
        keep_labels(self.directory, labels)

    def kept_labels(self) -> tuple[Label, ...]:
        """Return the labels of an earlier session; none where there were none."""
        return kept_labels(self.directory)

    # ---------------------------------------------------------------- the agenda

    def agenda(self, filing: Filing, judging: Judging, todo: Ordinals) -> Agenda:
        """Return what this session judges, and write it down.

        A session that goes on with the same corpus, judge and windows takes over what the one
        before set out to do, so that each of its calls is found again. Any other one sets out to
        judge what has no verdict yet.
        """
        from corpus.agenda import Agenda

        earlier = same_judging(self.manifest.sessions[:-1], judging, self.manifest.last.order)
        found: Agenda | None = None
        name = None if earlier is None else earlier.agenda
        if name is not None:
            with suppress(RunDirError):  # without it no more is lost than which calls there were
                found = Agenda.load(self.directory / name)
        elif earlier is not None:
            found = Agenda.whole(todo, judging.passes)
        if found is None:
            found, name = filing.agenda(), None
            if any(len(ordinals) != len(todo) for ordinals in found.passes):
                name = f"agenda-{self.number}.npz"
                found.save(self.directory / name)
        self.note(judging=judging, agenda=name)
        return found

    # ---------------------------------------------------------------- the end

    async def end_journal(self) -> None:
        """Make durable what calls left behind; there are none after this.

        Raises:
            DiskFault: it could not be written.
        """
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()

    async def close(self) -> None:
        """Give the directory free, with all that could be made durable."""
        try:
            with suppress(DiskFault):  # whoever asked for answers was told
                await self.end_journal()
        finally:
            self._lock.release()

    def discard(self) -> None:
        """Take back a session that never began to spend; where it is the first one, the run too."""
        if self._former.run:
            (self.directory / f"agenda-{self.number}.npz").unlink(missing_ok=True)
            self.manifest = self.before
            self.manifest.save(self.directory)
        self._former.restore()


def _manifest(directory: Path, wanted: Wanted, run: RunId) -> Manifest:
    question = wanted.question
    labels = question.labels if isinstance(question, OneOf) else ()
    if not (directory / MANIFEST).exists():
        return Manifest(
            run=run,
            mark=mark_of(run),
            kind=wanted.kind,
            question=question.text,
            labels=labels,
            source=None,
            options=dict(wanted.options),
            objects=dict(wanted.objects),
        )
    found = Manifest.load(directory)
    if found.kind != wanted.kind:
        raise RunDirError(
            f"the run in {str(directory)!r} is a {found.kind}, and this is a {wanted.kind}",
            hint="name another directory with --run",
        )
    if question_of(found) != question:
        raise RunDirError(
            f"the run in {str(directory)!r} asks {_spelled(question_of(found))}",
            where=f"and this one asks {_spelled(question)}",
            hint="name another directory with --run",
        )
    return found


def _spelled(question: Question) -> str:
    """Spell a question with the labels that are a part of it, in their order."""
    if isinstance(question, OneOf):
        return f"{question.text!r}, one of {', '.join(map(repr, question.labels))}"
    return repr(question.text)
