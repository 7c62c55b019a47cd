"""One run of a count, from its directory to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread

from corpus.agenda import Agenda
from corpus.criterion import Criterion
from corpus.events import ScanStarted, SourceRead, WindowFinished
from corpus.judges.base import Judge
from corpus.judges.encoder import EncoderJudge, rank
from corpus.ledger import FIRST_LABEL, MATCHED, NOT, Ledger
from corpus.questions import OneOf, Question
from corpus.results import Ranking, Tally, ranked_by_probability, tally
from corpus.scan import Scan, distinct, scan
from corpus.sources import SourceLike
from corpus.spool import Spool, build_spool
from corpus.tally_file import save_tally
from corpus.windows import Cut
from executors.calls import Calls
from executors.errors import Halted, LabelsError, ModelUnusable, UsageError
from executors.gate.allowance import CapsAllowance
from executors.ids import child_of, new_run_id
from rlm.corpora import Corpus, open_corpus
from rlm.judging import Asking, Encoding, JudgePlan, Ruling, plan_judge
from rlm.labels import Label, Taught, teach
from rlm.options import CountOptions
from rlm.outcome import Blocker, Completed, Incomplete
from rlm.runs.home import new_run_directory, write_atomically
from rlm.runs.log import ROOT, ModelWarnings, RunLog
from rlm.summary import missing_lines, summarise
from rlm.teaching import Lesson, gather_labels, taught_judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CountRun"]

_Outcome: TypeAlias = Completed[Tally] | Incomplete[Tally | Ranking]

_READ, _TEACH, _JUDGE = (child_of(ROOT, i) for i in range(3))
# Seconds that a model gets to let go of its sockets when a run ends.
_GRACE = 5


class CountRun:
    """Counts once.

    Raises:
        UsageError: from the constructor, when the judge that is asked for cannot work.
    """

    def __init__(self, question: Question, options: CountOptions) -> None:
        self._question = question
        self._options = options
        self._clock = options.clock
        self._warnings = ModelWarnings()
        self._plan: JudgePlan = plan_judge(options, question, warn=self._warnings)
        self._notes: list[str] = []
        self._spent = False
        self._partial: Callable[[], Tally] | None = None

    async def outcome(self, corpus: SourceLike | Corpus) -> _Outcome:
        """Run to the one outcome. Whatever happens, the receipt of what was done is written."""
        options = self._options
        run = new_run_id(self._clock.now())
        directory = new_run_directory(run, options.run)
        try:
            with RunLog(directory, clock=self._clock, on_event=options.on_event) as self._log:
                self._log.start(run, name="count", task=self._question.text, options=options.shown)
                self._warnings.go_to(self._log)
                return await self._whole(corpus)
        except UsageError:
            if not self._spent:
                self._log.discard(remove=options.run is None)
            raise

    async def _whole(self, corpus: SourceLike | Corpus) -> _Outcome:
        try:
            return await self._count(open_corpus(corpus))
        except UsageError:
            raise
        except Halted as halted:
            # The caller's own source or callback said stop before anything was judged.
            return self._incomplete(None, "halted", (halted.what,))
        except Exception:
            self._log.finish("failed", self._so_far())
            raise
        except BaseException:
            # Cancelled or interrupted: what was done stands in the receipt all the same.
            self._log.finish("cancelled", self._so_far())
            raise
        finally:
            await self._close()

    def _so_far(self) -> dict[str, object]:
        return summarise(self._partial() if self._partial else None)

    async def _count(self, corpus: Corpus) -> _Outcome:
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

    async def _read(self, corpus: Corpus) -> Spool:
        source = corpus.source
        with self._log.node(_READ, f"read {source.info.name}") as said:
            spool = await build_spool(
                source,
                self._log.directory / "spool",
                on_duplicate=self._options.on_duplicate,
            )
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

    async def _labels(self, corpus: Corpus, spool: Spool) -> Taught:
        encoder = self._plan.encoder if isinstance(self._plan, Encoding) else None
        labels: tuple[Label, ...] = await gather_labels(
            self._options, corpus, spool, self._question, encoder
        )
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
        allowance = CapsAllowance(self._options.caps, self._clock)
        calls = Calls(
            allowance=allowance,
            emit=self._log.emit,
            clock=self._clock,
            prices=self._options.prices,
            retry=self._options.retry,
            concurrency=self._options.concurrency,
        )
        criterion = Criterion(question=self._question, description=self._options.description)
        return plan.judge(calls, criterion, self._options, _JUDGE, self._log.emit)

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
        missing = (
            "no record is labelled, so the scores order the records and state no number",
            "label some with --label 40, or give labels with --labels FILE or --labels COLUMN",
        )
        return self._incomplete(best, "uncalibrated-judge", missing)

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

    def _started(self, judge: str, items: int, passes: int, window: int, cap: int) -> None:
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
            )
        )

    async def _judge(self, spool: Spool, judge: Judge, taught: Taught) -> _Outcome:
        options, info = self._options, judge.info
        labels = self._question.labels if isinstance(self._question, OneOf) else ()
        tokens = _window_tokens(options.window_tokens, self._plan)
        plan = Scan(
            cut=Cut(
                items=options.window or info.window,
                tokens=tokens,
                overlap=min(60, tokens // 4),
                whole=info.pools,
            ),
            agenda=Agenda.whole(distinct(spool), 1 if info.deterministic else options.passes),
            cap=1 if info.kind in {"encoder", "rule"} else options.concurrency,
        )
        ledger = Ledger(len(spool), passes=plan.passes, labels=labels)
        self._partial = partial(self._tally, spool, ledger, judge, taught)
        halted: Halted | None = None
        with self._log.node(_JUDGE, f"judge by {info.name}") as said:
            self._spent = not isinstance(self._plan, Ruling)  # a rule costs nothing
            todo = len(distinct(spool))
            self._started(info.name, todo, plan.passes, plan.cut.items, plan.cap)
            try:
                await scan(
                    spool,
                    judge,
                    ledger,
                    plan,
                    node=_JUDGE,
                    emit=self._log.emit,
                    clock=self._clock,
                    span=self._log.node,
                )
            except Halted as error:
                halted = error
            said.append(f"{todo:,} distinct texts in {plan.passes} pass(es)")
        return self._conclude(self._tally(spool, ledger, judge, taught), judge, halted)

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
            blocker: Blocker = "model-unusable" if isinstance(halted, ModelUnusable) else "halted"
            lines = [line for line in (halted.what, halted.where, halted.hint) if line]
            return self._incomplete(result, blocker, (*lines, *missing_lines(result)))
        if judge.info.scoring and judge.info.kind != "encoder":
            why = "token probabilities without calibration by labels order, and state no number"
            best = ranked_by_probability(result)
            return self._incomplete(best, "uncalibrated-judge", (why, *missing_lines(result)))
        if not result.complete:
            return self._incomplete(result, "unresolved-records", missing_lines(result))
        return Completed(result=result, receipts=self._log.finish(None, summarise(result)))

    def _incomplete(
        self, best: Tally | Ranking | None, blocker: Blocker, missing: tuple[str, ...]
    ) -> Incomplete[Tally | Ranking]:
        receipts = self._log.finish(blocker, summarise(best))
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


def _window_tokens(wanted: int, plan: JudgePlan) -> int:
    """Leave half of a known window to instructions, aliases and the answer."""
    known = plan.model.info.context_window if isinstance(plan, Asking) else None
    return wanted if known is None else max(16, min(wanted, known // 2))


def _code(name: str, labels: tuple[str, ...]) -> int:
    if labels:
        return FIRST_LABEL + labels.index(name)
    return MATCHED if name == "yes" else NOT
