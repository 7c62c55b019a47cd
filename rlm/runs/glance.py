"""A look at a run: what it has judged and paid, and a place to read records to. Nothing is asked."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from corpus.agenda import Agenda
from corpus.questions import Question
from executors.errors import RunDirError
from executors.ids import new_run_id
from executors.journal.lock import RunLock
from executors.journal.records import Journal, NoJournal, Spent
from rlm.corpora import Corpus
from rlm.runs.foreign import refuse_links
from rlm.runs.home import MANIFEST
from rlm.runs.manifest import Judging, Manifest, question_of, same_judging
from rlm.runs.session import Session, Wanted

if TYPE_CHECKING:
    from corpus.spool import OnDuplicate, Spool

__all__ = ["Glance", "glance"]

_SPOOL = "spool"
_CLOSING = 10.0


def _order_of(spool: Spool) -> str:
    """Return the hash over the texts of a corpus in their order, as manifests hold it."""
    return blake2b(spool.digests.tobytes(), digest_size=16).hexdigest()


class Glance:
    """What somebody who only looks needs of a run, whether there is one or not."""

    manifest: Manifest | None = None
    """Of a run that has judged something, or tried to."""
    journal: Journal = NoJournal()
    spent = Spent()
    kept: Path | None = None
    """The directory that the records stay in afterwards."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def read(self, corpus: Corpus, on_duplicate: OnDuplicate) -> Spool:
        """Read the records of a corpus.

        Raises:
            SourceError: it cannot be read as asked.
        """
        from corpus.spool import build_spool  # numpy

        return await build_spool(corpus.source, self.directory / _SPOOL, on_duplicate=on_duplicate)

    def kept_spool(self) -> Spool:
        """Return the records that the run has.

        Raises:
            RunDirError: there are none.
        """
        from corpus.spool import Spool  # numpy

        if self.kept is None or not (self.kept / _SPOOL / "meta.json").exists():
            raise RunDirError(
                "there are no records to look at",
                hint="name a source, or the directory of a run that has read one",
            )
        return Spool.open(self.kept / _SPOOL)

    def agenda(self, left: Agenda, whole: Agenda, judging: Judging, spool: Spool) -> Agenda:
        """Return what the next session would judge.

        Args:
            left: what has no verdict yet.
            whole: everything.
        """
        sessions = () if self.manifest is None else self.manifest.sessions
        earlier = same_judging(sessions, judging, _order_of(spool))
        if earlier is None or self.kept is None:
            return left
        return whole if earlier.agenda is None else Agenda.load(self.kept / earlier.agenda)


class _First(Glance):
    """A run that has not begun: what is read for the look is kept for it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.directory)
        self._session = session
        self.kept = session.directory

    async def read(self, corpus: Corpus, on_duplicate: OnDuplicate) -> Spool:
        self._session.read_from(corpus.spec)
        return await self._session.build_spool(corpus.source, on_duplicate)


@asynccontextmanager
async def glance(wanted: Wanted, *, now: datetime) -> AsyncGenerator[Glance]:
    """Look at the run that is named, or at none. What is there stays as it is.

    Records are read into a temporary place, that is gone afterwards; into the run where it is named
    and has not begun.

    Raises:
        RunDirError: it is about something else, in use, or no run.
    """
    named = None if wanted.directory is None else Path(wanted.directory)
    if named is not None and not _begun(named):
        async with _first(wanted, now) as first:
            yield first
        return
    async with _temporary() as place:
        if named is None:
            yield Glance(place)
            return
        async with _existing(named, wanted.question, place) as existing:
            yield existing


def _begun(directory: Path) -> bool:
    return (directory / MANIFEST).exists() and bool(Manifest.load(directory).sessions)


@asynccontextmanager
async def _temporary() -> AsyncGenerator[Path]:
    made = Path(tempfile.mkdtemp(prefix="rlm-dry-run-"))
    try:
        yield made
    finally:
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSING):
            await anyio.to_thread.run_sync(shutil.rmtree, made, True)


@asynccontextmanager
async def _first(wanted: Wanted, now: datetime) -> AsyncGenerator[Glance]:
    begin = partial(Session.begin, wanted, run=new_run_id(now), now=now)
    session = await anyio.to_thread.run_sync(begin)
    try:
        yield _First(session)
    except BaseException:
        session.discard()
        raise
    else:
        # A look is no session: the first one is still to come.
        session.manifest.model_copy(update={"sessions": ()}).save(session.directory)
    finally:
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSING):
            await session.close()


@asynccontextmanager
async def _existing(directory: Path, question: Question, place: Path) -> AsyncGenerator[Glance]:
    # SQLite is for those who need it.
    from executors.journal.index import drop_index
    from executors.journal.journal import RunJournal

    refuse_links(directory)
    lock = RunLock(directory)
    lock.take()
    try:
        manifest = Manifest.load(directory)
        if question_of(manifest) != question:
            raise RunDirError(
                f"the run in {str(directory)!r} asks {manifest.question!r}",
                where=f"and this count asks {question.text!r}",
                hint="name another directory with --run",
            )
        if manifest.foreign:  # what was made elsewhere is read again, never opened
            drop_index(directory / "index.sqlite")
        journal = await anyio.to_thread.run_sync(RunJournal.open, directory)
        try:
            found = Glance(place)
            found.manifest, found.kept = manifest, directory
            found.journal, found.spent = journal, journal.spent
            yield found
        finally:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSING):
                await journal.aclose()
    finally:
        lock.release()
