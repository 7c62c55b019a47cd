"""One run of a count, from its directory to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.to_thread

from corpus.agenda import Agenda, Ordinals
from corpus.criterion import Criterion
from corpus.events import ScanStarted, SourceRead, WindowFinished
from corpus.filing import Filing
from corpus.judges.base import Judge
from corpus.judges.encoder import EncoderJudge, rank
from corpus.ledger import FIRST_LABEL, MATCHED, NOT, Ledger
from corpus.questions import OneOf, Question
from corpus.results import Ranking, Tally, ranked_by_probability, tally
from corpus.scan import Scan, distinct, scan
from corpus.sources import SourceLike
from corpus.spool import Spool
from corpus.tally_file import save_ranking, save_tally
from corpus.windows import Cut
from executors.calls import Calls
from executors.errors import (
    DiskFault,
    Halted,
    Interrupted,
    LabelsError,
    ModelUnusable,
    OutOfQuota,
    ReplayMiss,
    RunDirError,
    UsageError,
)
from executors.gate.allowance import CapsAllowance
from executors.ids import RunId, child_of, new_run_id
from executors.journal.records import Journal, NoJournal, Spent
from executors.models.prices import price_list
from rlm.corpora import Corpus, open_corpus
from rlm.judging import Asking, Encoding, JudgePlan, Ruling, cut_for, plan_judge
from rlm.labels import Label, Taught, teach
from rlm.options import LOCAL, CountOptions
from rlm.outcome import Blocker, Completed, Incomplete
from rlm.receipts import Receipts
from rlm.runs.home import write_atomically
from rlm.runs.log import ROOT, ModelWarnings, RunLog
from rlm.runs.manifest import Judging
from rlm.runs.roots import result_root
from rlm.runs.session import Session, Wanted
from rlm.summary import missing_lines, summarise
from rlm.teaching import Lesson, gather_labels, taught_judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from executors.engine.dask import DaskEngine

__all__ = ["CountRun"]

_Outcome: TypeAlias = Completed[Tally] | Incomplete[Tally | Ranking]

_READ, _TEACH, _JUDGE = (child_of(ROOT, i) for i in range(3))
# Seconds that a model gets to let go of its sockets when a run ends, and the disk to take it all.
_GRACE: Final = 5
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
        self._partial: Callable[[], Tally] | None = None

    async def outcome(self, corpus: SourceLike | Corpus | None) -> _Outcome:
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
                self._warnings.go_to(self._log)
                return await self._whole(corpus)
        except (UsageError, ReplayMiss):
            if not self._spent or self._options.replay is not None:
                session.discard(remove=self._options.run is None)
            raise
        finally:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSING):
                await session.close()

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

    async def _whole(self, corpus: SourceLike | Corpus | None) -> _Outcome:
        try:
            return await self._count(None if corpus is None else self._open(corpus))
        except (UsageError, ReplayMiss):
            raise
        except Halted as halted:
            # The caller's own source or callback said stop before anything was judged.
            return self._incomplete(None, _blocker(halted), (halted.what,))
        except Exception:
            self._finish("failed", self._so_far())
            raise
        except BaseException:
            # Cancelled or interrupted: what was done stands in the receipt all the same.
            self._finish("cancelled", self._so_far())
            raise
        finally:
            await self._close()

    def _open(self, corpus: SourceLike | Corpus) -> Corpus:
        opened = open_corpus(corpus)
        self._session.read_from(opened.spec)
        return opened

    def _finish(self, blocker: Blocker | None, result: Tally | Ranking | None) -> Receipts:
        """End the session in its receipt and in the manifest."""
        root = None if result is None else result_root(result, self._criterion)
        receipts = self._log.finish(blocker, summarise(result), content_root=root)
        self._session.end(self._clock.now(), blocker=blocker, content_root=root)
        return receipts

    def _so_far(self) -> Tally | None:
        return self._partial() if self._partial else None

    async def _count(self, corpus: Corpus | None) -> _Outcome:
        if isinstance(self._plan, Asking):
            await self._open_journal(self._plan)
        judge = self._judge_before_reading()
        spool = await self._read(corpus)
        if len(spool) == 0:
            return self._incomplete(None, "empty-corpus", ("the corpus holds no record",))
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

            self._journal = await anyio.to_thread.run_sync(Replay, Path(self._options.replay))
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
            self._session.keep_labels(labels)
        taught = teach(labels, spool, self._question, positive=self._options.positive)
        for note in taught.notes:
            self._log.warn(_READ, "labels", note)
        return taught

    async def _teach(self, spool: Spool, plan: Encoding, taught: Taught) -> Judge:
        with self._log.node(_TEACH, "teach the encoder's head") as said:
            lesson: Lesson = await anyio.to_thread.run_sync(
                taught_judge, plan.encoder, spool, self._question, taught
            )
            write_atomically(self._log.directory / "head.json", lesson.head_json)
            said.extend(lesson.said)
            self._notes += lesson.said
            for warning in lesson.warnings:
                self._log.warn(_TEACH, "labels", warning)
                self._notes.append(f"warning: {warning}")
            return lesson.judge

    def _asking(self, plan: Asking) -> Judge:
        spent = self._session.opened.spent if self._session.opened else Spent()
        self._allowance = allowance = CapsAllowance(
            self._options.caps,
            self._clock,
            calls=spent.calls,
            tokens=spent.tokens,
            usd=spent.usd,
        )
        calls = Calls(
            allowance=allowance,
            emit=self._log.emit,
            clock=self._clock,
            journal=self._journal,
            prices=price_list(self._options.prices),
            retry=self._options.retry,
            concurrency=self._options.concurrency,
            limits=self._options.limits,
        )
        return plan.judge(calls, self._criterion, self._options, _JUDGE, self._log.emit)

    async def _rank(self, spool: Spool, plan: Encoding) -> _Outcome:
        # numpy is loaded by now; the import stands here because `import rlm` must not load it.
        import numpy as np

        encoder = plan.encoder
        name = f"encoder {encoder.name}, without labels"
        with self._log.node(_JUDGE, f"rank by {name}"):
            todo = distinct(spool)
            self._started(name, len(todo), 1, 64, 1)
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
        save_ranking(best, self._log.directory / "verdicts")
        missing = (
            "no record is labelled, so the scores order the records and state no number",
            "label some with --label 40, or give labels with --labels FILE or --labels COLUMN",
        )
        return self._incomplete(best, "uncalibrated-judge", missing)

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

    def _started(
        self,
        judge: str,
        items: int,
        passes: int,
        window: int,
        cap: int,
        *,
        filing: Filing | None = None,
    ) -> None:
        self._log.emit(
            ScanStarted(
                node=_JUDGE,
                at=self._clock.now(),
                judge=judge,
                items=items,
                passes=passes,
                window=window,
                cap=cap,
                asks=isinstance(self._plan, Asking),
                restored=0 if filing is None else int(filing.done.sum()),
            )
        )

    async def _judge(self, spool: Spool, judge: Judge, taught: Taught) -> _Outcome:
        options, info = self._options, judge.info
        labels = self._question.labels if isinstance(self._question, OneOf) else ()
        cut = cut_for(options, self._plan, info)
        passes = 1 if info.deterministic else options.passes
        ledger = Ledger(len(spool), passes=passes, labels=labels)
        todo = distinct(spool)
        filing: Filing | None = None
        agenda = Agenda.whole(todo, passes)
        if isinstance(self._plan, Asking):
            filing, agenda = await self._agenda(spool, ledger, todo, judge, cut)
        plan = Scan(
            cut=cut,
            agenda=agenda,
            cap=1 if info.kind in {"encoder", "rule"} else options.concurrency,
        )
        self._partial = partial(self._tally, spool, ledger, judge, taught)
        halted: Halted | None = None
        # Heeded between two passes too, where nothing is pulled.
        heeding = nullcontext() if options.stop is None else options.stop.heeding()
        async with AsyncExitStack() as stack:
            engine = await self._engine(stack, filing, agenda)
            stack.enter_context(heeding)
            said = stack.enter_context(self._log.node(_JUDGE, f"judge by {info.name}"))
            self._spent = not isinstance(self._plan, Ruling)  # a rule costs nothing
            self._started(
                info.name, agenda.items, plan.passes, plan.cut.items, plan.cap, filing=filing
            )
            try:
                if engine is not None and filing is not None:
                    await self._spread(engine, spool, ledger, plan, filing)
                else:
                    await scan(
                        spool,
                        judge,
                        ledger,
                        plan,
                        node=_JUDGE,
                        emit=self._log.emit,
                        clock=self._clock,
                        span=self._log.node,
                        filing=filing,
                        stop=options.stop,
                    )
            except ReplayMiss:
                raise
            except Halted as error:
                halted = error
            said.append(f"{len(todo):,} distinct texts in {plan.passes} pass(es)")
        return self._conclude(self._tally(spool, ledger, judge, taught), judge, halted)

    async def _engine(
        self, stack: AsyncExitStack, filing: Filing | None, agenda: Agenda
    ) -> DaskEngine | None:
        """Start what other processes judge with; None where this one does it, or nothing is left."""
        if self._options.engine == LOCAL or filing is None or filing.covers(agenda):
            return None
        from rlm.cluster import engine_for

        return await stack.enter_async_context(engine_for(self._options))

    async def _spread(
        self, engine: DaskEngine, spool: Spool, ledger: Ledger, plan: Scan, filing: Filing
    ) -> None:
        from rlm.cluster import Judged, judge_on_cluster

        session, journal = self._session, self._session.opened
        assert isinstance(self._plan, Asking)
        assert journal is not None
        await judge_on_cluster(
            engine,
            Judged(
                spool=spool,
                ledger=ledger,
                filing=filing,
                agenda=plan.agenda,
                agenda_name=session.manifest.last.agenda,
                cut=plan.cut,
                node=_JUDGE,
                emit=self._log.emit,
                clock=self._clock,
                span=self._log.node,
                journal=journal,
                resumed=journal.spent.calls > 0,
            ),
            plan=self._plan,
            options=self._options,
            criterion=self._criterion,
            session=session,
            log=self._log,
            journal=journal,
            allowance=self._allowance,
        )

    async def _agenda(
        self, spool: Spool, ledger: Ledger, todo: Ordinals, judge: Judge, cut: Cut
    ) -> tuple[Filing, Agenda]:
        """Bring back what earlier sessions judged, and say what is left."""
        criterion, identity = self._criterion.key, judge.info.identity
        filing = Filing(self._journal, spool, ledger, todo, criterion=criterion, judge=identity)
        restored = await anyio.to_thread.run_sync(filing.restore)
        judging = Judging.of(criterion=criterion, judge=identity, passes=ledger.passes, cut=cut)
        agenda = self._session.agenda(filing, judging, todo)
        self._session.note(restored=restored)
        return filing, agenda

    def _tally(self, spool: Spool, ledger: Ledger, judge: Judge, taught: Taught) -> Tally:
        """Count what was judged so far, and save it."""
        result = tally(
            spool,
            ledger,
            votes=self._options.votes,
            judge=judge.info.name,
            person={
                ordinal: (_code(name, ledger.labels), taught.by[ordinal])
                for ordinal, name in taught.classes.items()
            },
            notes=(*self._notes, *(judge.notes if isinstance(judge, EncoderJudge) else ())),
        )
        save_tally(result, self._log.directory / "verdicts")
        return result

    def _conclude(self, result: Tally, judge: Judge, halted: Halted | None) -> _Outcome:
        if halted is not None:
            blocker = _blocker(halted)
            lines = [line for line in (halted.what, halted.where, halted.hint) if line]
            return self._incomplete(result, blocker, (*lines, *missing_lines(result)))
        if judge.info.scoring and judge.info.kind != "encoder":
            why = "token probabilities without calibration by labels order, and state no number"
            best = ranked_by_probability(result)
            return self._incomplete(best, "uncalibrated-judge", (why, *missing_lines(result)))
        if not result.complete:
            return self._incomplete(result, "unresolved-records", missing_lines(result))
        return Completed(result=result, receipts=self._finish(None, result))

    def _incomplete(
        self, best: Tally | Ranking | None, blocker: Blocker, missing: tuple[str, ...]
    ) -> Incomplete[Tally | Ranking]:
        receipts = self._finish(blocker, best)
        return Incomplete(best=best, missing=missing, blocker=blocker, receipts=receipts)

    async def _close(self) -> None:
        match self._plan:
            case Asking(owned=True):
                with anyio.move_on_after(_GRACE, shield=True):
                    await self._plan.model.aclose()
            case Encoding(owned=True):
                await anyio.to_thread.run_sync(self._plan.encoder.close)
            case _:
                pass


def _blocker(halted: Halted) -> Blocker:
    match halted:
        case ModelUnusable():
            return "model-unusable"
        case OutOfQuota():
            return "out-of-quota"
        case Interrupted():
            return "interrupted"
        case DiskFault():
            return "disk"
        case _:
            return "halted"


def _code(name: str, labels: tuple[str, ...]) -> int:
    if labels:
        return FIRST_LABEL + labels.index(name)
    return MATCHED if name == "yes" else NOT
