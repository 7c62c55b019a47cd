"""One run of a count, from its directory to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from corpus.criterion import Criterion
from corpus.events import ScanStarted, SourceRead, WindowFinished
from corpus.judges.base import Judge
from corpus.judges.encoder import rank
from corpus.questions import OneOf, Question
from corpus.results import Ranking, Tally
from corpus.scan import distinct
from corpus.sources import SourceLike
from corpus.spool import Spool
from executors.calls.calls import Calls
from executors.errors import (
    DiskFault,
    Halted,
    LabelsError,
    ReplayMiss,
    RunDirError,
    UsageError,
)
from executors.gate.allowance import CapsAllowance, Drawn, Growing
from executors.ids import RunId, child_of, new_run_id
from executors.journal.records import Journal, NoJournal, Spent
from executors.models.prices import price_list
from rlm.corpora import Corpus, open_corpus
from rlm.counts.ending import CountOutcome, Ending
from rlm.counts.stage import Stage
from rlm.gating import GateWanted, RunGate, open_gate
from rlm.judging import Asking, Encoding, JudgePlan, Ruling, let_go, plan_judge
from rlm.labels import Label, Taught, teach
from rlm.options.options import LOCAL, CountOptions
from rlm.options.other_model import dropped
from rlm.runs.foreign import refuse_links
from rlm.runs.home import how_to_go_on, write_atomically
from rlm.runs.keeping import KEEP_DAYS
from rlm.runs.log import ROOT, ModelWarnings, RunLog
from rlm.runs.session import Session, Wanted
from rlm.teaching import Lesson, gather_labels, taught_judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


__all__ = ["CountRun"]

_READ, _TEACH, _JUDGE = (child_of(ROOT, i) for i in range(3))
# Seconds that the disk gets to take it all when a run ends.
_CLOSING: Final = 30


class CountRun:
    """Counts once, in one session of a run.

    Raises:
        UsageError: from the constructor, when the judge that is asked for cannot work.
    """

    def __init__(self, question: Question, options: CountOptions) -> None:
        self._question = question
        self._options = options
        self._clock = options.clock
        self._warnings = ModelWarnings()
        asks = options.replay is None
        self._plan: JudgePlan = plan_judge(options, question, warn=self._warnings, asks=asks)
        if options.engine != LOCAL:
            from rlm.cluster import require_units  # for those who leave this process

            require_units(options, self._plan)
        self._notes: list[str] = []
        self._spent = False
        self._journal: Journal = NoJournal()
        self._allowance: Growing | None = None
        self._gate: RunGate | None = None
        self._calls: Calls | None = None
        self._partial: Callable[[], Tally] | None = None

    async def outcome(self, corpus: SourceLike | Corpus | None) -> CountOutcome:
        """Run to the one outcome. Whatever happens, the receipt of what was done is written.

        Args:
            corpus: None takes the records that an earlier session of the run read.
        """
        self._session = session = await self._begin()
        try:
            with RunLog(
                session.directory, clock=self._clock, on_event=self._options.on_event
            ) as self._log:
                self._log.start(
                    RunId(session.manifest.run),
                    session=session.number,
                    name="count",
                    task=self._question.text,
                    options=self._options.shown,
                )
                if session.expired:
                    said = f"{len(session.expired)} old run(s) were deleted, as {KEEP_DAYS} asks"
                    self._log.warn(ROOT, "retention", said)
                if told := dropped(session.before, self._options):
                    self._log.warn(ROOT, "price", told)
                self._warnings.go_to(self._log)
                self._ending = Ending(session, self._log, self._criterion, self._clock)
                return await self._whole(corpus)
        except (UsageError, ReplayMiss):
            if self._is_void:
                session.discard()
            raise
        finally:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSING):
                await session.close()
                with suppress(DiskFault):  # it is Incomplete already, or an error of its own
                    self._close_gate()

    def _close_gate(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()

    @property
    def _is_void(self) -> bool:
        """Whether an error of the caller's now leaves no session: nothing was, or could be, paid."""
        return not self._spent or self._options.replay is not None

    def _begun(self) -> None:
        self._spent = not isinstance(self._plan, Ruling)  # a rule costs nothing

    async def _begin(self) -> Session:
        options, now = self._options, self._clock.now()
        values, objects = options.recorded()
        wanted = Wanted(
            directory=options.run,
            question=self._question,
            options=values,
            objects=objects,
        )
        begin = partial(Session.begin, wanted, run=new_run_id(now), now=now)
        return await anyio.to_thread.run_sync(begin)

    async def _whole(self, corpus: SourceLike | Corpus | None) -> CountOutcome:
        try:
            return await self._count(None if corpus is None else self._open(corpus))
        except (UsageError, ReplayMiss):
            if not self._is_void:
                self._ending.finish("failed", self._so_far())
            raise
        except Halted as halted:
            # The caller's own source or callback said stop before anything was judged.
            return self._ending.halted(halted)
        except Exception:
            self._ending.finish("failed", self._so_far())
            raise
        except BaseException as error:
            # Cancelled or interrupted: what was done stands in the receipt all the same.
            error.add_note(how_to_go_on(self._log.directory))
            self._ending.finish("cancelled", self._so_far())
            raise
        finally:
            await let_go(self._plan)

    def _open(self, corpus: SourceLike | Corpus) -> Corpus:
        opened = open_corpus(corpus)
        self._session.read_from(opened.spec)
        return opened

    def _so_far(self) -> Tally | None:
        """Count and save what was judged until something ended the session."""
        if self._partial is None:
            return None
        result = self._partial()
        self._ending.save(result)
        return result

    async def _count(self, corpus: Corpus | None) -> CountOutcome:
        if isinstance(self._plan, Asking):
            await self._open_journal(self._plan)
        judge = self._judge_before_reading()
        spool = await self._read(corpus)
        if len(spool) == 0:
            return self._ending.incomplete(None, "empty-corpus", ("the corpus holds no record",))
        taught = await self._labels(corpus, spool)
        if isinstance(self._plan, Encoding):
            if not taught.classes:
                if isinstance(self._question, OneOf):
                    raise LabelsError(
                        "without labels nothing can be said about which of several labels fits",
                        hint="label some with --label 40, or give labels=… (--labels FILE)",
                    )
                return await self._rank(spool, self._plan)
            judge = await self._teach(spool, self._plan, taught)
        assert judge is not None
        return await self._judge(spool, judge, taught)

    def _judge_before_reading(self) -> Judge | None:
        """Return the judge that needs no corpus; None where labels have to teach it first."""
        match self._plan:
            case Encoding():
                return None
            case Ruling():
                return self._plan.judge(self._question, _JUDGE, self._log.emit)
            case Asking():
                return self._asking(self._plan)

    async def _open_journal(self, plan: Asking) -> None:
        if self._options.replay is not None:
            from executors.journal.replay import Replay  # SQLite is for those who need it

            recorded = Path(self._options.replay)
            refuse_links(recorded)
            self._journal = await anyio.to_thread.run_sync(Replay, recorded)
            return
        self._journal = journal = await self._session.open_journal()
        for warning in journal.warnings:
            self._log.warn(_JUDGE, "journal", warning)
        self._log.recover(journal, node=_JUDGE, model=plan.model.info.spec)

    async def _read(self, corpus: Corpus | None) -> Spool:
        if corpus is None:
            return self._kept()
        source = corpus.source
        with self._log.node(_READ, f"read {source.info.name}") as said:
            spool = await self._session.build_spool(source, self._options.on_duplicate)
            info = source.info
            self._log.emit(
                SourceRead(
                    node=_READ,
                    at=self._clock.now(),
                    source=info.name,
                    records=len(spool),
                    empty=int(spool.is_empty.sum()),
                    identical=spool.identical,
                    said=info.said,
                    fingerprint=spool.fingerprint,
                )
            )
            said.extend((f"{len(spool):,} records", *info.said))
            for warning in source.warnings:
                self._log.warn(_READ, warning.code, warning.sentence, warning.count)
            return spool

    def _kept(self) -> Spool:
        """Return what an earlier session read."""
        spool = self._session.kept_spool()
        if spool is None:
            raise RunDirError(
                f"the run in {str(self._session.directory)!r} ended before its corpus was read",
                hint="give the corpus again: rlm count SOURCE QUESTION --run DIR, or corpus=…",
            )
        return spool

    async def _labels(self, corpus: Corpus | None, spool: Spool) -> Taught:
        encoder = self._plan.encoder if isinstance(self._plan, Encoding) else None
        labels: tuple[Label, ...]
        if corpus is None and self._options.labels is None:
            labels = self._session.kept_labels()
        else:
            labels = await gather_labels(self._options, corpus, spool, self._question, encoder)
        taught = teach(labels, spool, self._question, positive=self._options.positive)
        self._session.keep_labels(labels)  # those that fit: the next session takes them over
        for note in taught.notes:
            self._log.warn(_READ, "labels", note)
        return taught

    async def _teach(self, spool: Spool, plan: Encoding, taught: Taught) -> Judge:
        with self._log.node(_TEACH, "teach the encoder's head") as said:
            # A head from elsewhere decides nothing here.
            path = self._log.directory / "head.json"
            kept = None if self._session.manifest.foreign else path
            fit = partial(taught_judge, plan.encoder, spool, self._question, taught, kept=kept)
            lesson: Lesson = await anyio.to_thread.run_sync(fit)
            write_atomically(path, lesson.head_json)
            said.extend(lesson.said)
            self._notes += lesson.said
            for warning in lesson.warnings:
                self._log.warn(_TEACH, "labels", warning)
                self._notes.append(f"warning: {warning}")
            return lesson.judge

    def _asking(self, plan: Asking) -> Judge:
        allowance, gate = self._bounded()
        self._allowance = allowance
        if gate is not None:  # before anything is read, or spent
            if (engine := self._options.engine) != LOCAL:
                from rlm.cluster import require_place  # for those who leave this process

                require_place(engine, gate.data)
            self._plan = plan = replace(plan, model=gate.outlet.model(plan.model))
        self._calls = calls = Calls(
            allowance=allowance,
            emit=self._log.emit,
            clock=self._clock,
            journal=self._journal,
            prices=price_list(self._options.prices),
            retry=self._options.retry,
            concurrency=self._options.concurrency,
            limits=self._options.limits,
            outlet=None if gate is None else gate.outlet,
        )
        return plan.judge(calls, self._criterion, self._options, _JUDGE, self._log.emit)

    def _bounded(self) -> tuple[Growing, RunGate | None]:
        """Return what calls may spend, and the gate that says so, where there is one."""
        opened, options = self._session.opened, self._options
        spent = Spent() if opened is None else opened.spent
        drawn = Drawn(calls=spent.calls, tokens=spent.tokens, usd=spent.usd)
        if opened is not None:  # a replay spends nothing
            wanted = GateWanted(
                gate=options.gate, human=options.human, top_up=options.top_up, caps=options.caps
            )
            self._gate = gate = open_gate(self._session, wanted, self._clock, drawn)
            if gate is not None:
                opened.before_commits(gate.flush)
                return gate.allowance, gate
        own = CapsAllowance(
            options.caps, self._clock, calls=drawn.calls, tokens=drawn.tokens, usd=drawn.usd
        )
        return own, None

    async def _rank(self, spool: Spool, plan: Encoding) -> CountOutcome:
        # numpy is loaded by now; the import stands here because `import rlm` must not load it.
        import numpy as np

        encoder = plan.encoder
        name = f"encoder {encoder.name}, without labels"
        with self._log.node(_JUDGE, f"rank by {name}"):
            todo = distinct(spool)
            self._log.emit(
                ScanStarted(
                    node=_JUDGE,
                    at=self._clock.now(),
                    judge=name,
                    items=len(todo),
                    passes=1,
                    window=64,
                    cap=1,
                    asks=False,
                )
            )
            scores, notes = await rank(
                spool,
                todo,
                encoder,
                self._options.description or self._question.text,
                on_batch=self._ranked,
            )
            every: NDArray[np.float32] = np.full(len(spool), np.nan, dtype=np.float32)
            every[todo] = scores
        best = Ranking(
            records=len(spool),
            judge=name,
            notes=notes,
            spool=spool,
            scores=every[spool.representative],
        )
        self._ending.save(best)
        missing = (
            "no record is labelled, so the scores order the records and state no number",
            "label some with --label 40, or give labels with --labels FILE or --labels COLUMN",
        )
        return self._ending.incomplete(best, "uncalibrated-judge", missing)

    @property
    def _criterion(self) -> Criterion:
        return Criterion(question=self._question, description=self._options.description)

    def _ranked(self, count: int) -> None:
        self._log.emit(
            WindowFinished(
                node=_JUDGE,
                at=self._clock.now(),
                window=0,
                pass_index=0,
                items=count,
                unresolved=0,
            )
        )

    async def _judge(self, spool: Spool, judge: Judge, taught: Taught) -> CountOutcome:
        stage = Stage(
            session=self._session,
            log=self._log,
            options=self._options,
            question=self._question,
            criterion=self._criterion,
            plan=self._plan,
            judge=judge,
            spool=spool,
            taught=taught,
            journal=self._journal,
            allowance=self._allowance,
            node=_JUDGE,
            notes=tuple(self._notes),
            begun=self._begun,
            data=None if self._gate is None else self._gate.data,
        )
        ledger = stage.ledger()
        self._partial = partial(stage.tally, ledger)
        halted = await stage.run(ledger)
        if self._calls is not None:
            self._calls.tell_pace()
        try:
            await self._session.end_journal()
            self._close_gate()  # what it could not write down is no Completed
        except DiskFault as fault:
            halted = halted or fault
        result = stage.tally(ledger)
        self._ending.save(result)
        return self._ending.of_tally(result, judge.info, halted)
