"""The judging of a count: what is left to judge, here or on a cluster, and the tally of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from corpus.agenda import Agenda, Ordinals
from corpus.codes import FIRST_LABEL, MATCHED, NOT
from corpus.criterion import Criterion
from corpus.events import ScanStarted
from corpus.filing import Filing
from corpus.judges.base import Judge
from corpus.judges.encoder import EncoderJudge
from corpus.ledger import Ledger
from corpus.questions import OneOf, Question
from corpus.results import Tally, tally
from corpus.scan import Scan, distinct, scan
from corpus.spool import Spool
from corpus.windows import Cut
from executors.errors import Halted, ReplayMiss
from executors.gate.allowance import Growing
from executors.ids import NodeId
from executors.journal.records import Journal
from executors.models.prices import price_list
from executors.replies import JsonValue
from rlm.counts.replaying import explain
from rlm.forecasts.foresight import calls_needed, too_few_calls
from rlm.judging import Asking, JudgePlan, cut_for
from rlm.labels import Taught
from rlm.options.options import LOCAL, CountOptions
from rlm.runs.log import RunLog
from rlm.runs.manifest import Judging
from rlm.runs.session import Session

if TYPE_CHECKING:
    from executors.engine.dask import DaskEngine

__all__ = ["Stage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """All that judging a corpus needs; judges once.

    Args:
        allowance: what calls may spend; None where no model is asked.
        data: what the run's gate says of where texts may go; None where there is no gate.
        notes: what is known of the judge's teaching, for the reader of the tally.
        begun: called once all that judges has started, before the first call.
    """

    session: Session
    log: RunLog
    options: CountOptions
    question: Question
    criterion: Criterion
    plan: JudgePlan
    judge: Judge
    spool: Spool
    taught: Taught
    journal: Journal
    allowance: Growing | None
    node: NodeId
    notes: tuple[str, ...]
    begun: Callable[[], object]
    data: Mapping[str, JsonValue] | None = None

    def ledger(self) -> Ledger:
        """Return an empty ledger for it."""
        labels = self.question.labels if isinstance(self.question, OneOf) else ()
        return Ledger(len(self.spool), passes=self._passes, labels=labels)

    async def run(self, ledger: Ledger) -> Halted | None:
        """Judge what has no verdict yet and fill the ledger; return what stopped it, if anything.

        Raises:
            ReplayMiss: the recorded run knows nothing of a call.
            UsageError: the rule of a rule judge cannot work.
        """
        info, options = self.judge.info, self.options
        cut = cut_for(options, self.plan, info)
        todo = distinct(self.spool)
        filing: Filing | None = None
        agenda = Agenda.whole(todo, self._passes)
        if isinstance(self.plan, Asking):
            filing, agenda = await self._agenda(ledger, todo, cut)
            self._foresee(agenda, filing, cut)
        cap = 1 if info.kind in {"encoder", "rule"} else options.concurrency
        plan = Scan(cut=cut, agenda=agenda, cap=cap)
        halted: Halted | None = None
        # Heeded between two passes too, where nothing is pulled.
        heeding = nullcontext() if options.stop is None else options.stop.heeding()
        async with AsyncExitStack() as stack:
            engine = await self._engine(stack, filing, agenda)
            self.begun()
            stack.enter_context(heeding)
            said = stack.enter_context(self.log.node(self.node, f"judge by {info.name}"))
            self.log.emit(
                ScanStarted(
                    node=self.node,
                    at=options.clock.now(),
                    judge=info.name,
                    items=len(todo),
                    passes=plan.passes,
                    window=cut.items,
                    cap=cap,
                    asks=isinstance(self.plan, Asking),
                    priced=self._is_priced(),
                    restored=0 if filing is None else int(filing.done.sum()),
                    restored_in=() if filing is None else tuple(filing.done.sum(axis=1).tolist()),
                    server=self.plan.model.info.server if isinstance(self.plan, Asking) else "",
                )
            )
            try:
                if engine is not None and filing is not None:
                    await self._spread(engine, ledger, plan, filing)
                else:
                    await self._scan(ledger, plan, filing)
            except ReplayMiss as miss:
                explain(miss, Path(options.replay or self.session.directory))
                raise
            except Halted as error:
                halted = error
            said.append(f"{len(todo):,} distinct texts in {plan.passes} pass(es)")
        return halted

    def _is_priced(self) -> bool:
        if not isinstance(self.plan, Asking):
            return True
        return price_list(self.options.prices).price(self.plan.model.info) is not None

    def tally(self, ledger: Ledger) -> Tally:
        """Count what was judged so far."""
        judge, taught = self.judge, self.taught
        return tally(
            self.spool,
            ledger,
            votes=self.options.votes,
            judge=judge.info.name,
            person={
                ordinal: (_code(name, ledger.labels), taught.by[ordinal])
                for ordinal, name in taught.classes.items()
            },
            notes=(*self.notes, *(judge.notes if isinstance(judge, EncoderJudge) else ())),
        )

    @property
    def _passes(self) -> int:
        return 1 if self.judge.info.deterministic else self.options.passes

    async def _agenda(self, ledger: Ledger, todo: Ordinals, cut: Cut) -> tuple[Filing, Agenda]:
        """Bring back what earlier sessions judged, and say what is left."""
        criterion, identity = self.criterion.key, self.judge.info.identity
        filing = Filing(self.journal, self.spool, ledger, todo, criterion=criterion, judge=identity)
        restored = await anyio.to_thread.run_sync(filing.restore)
        if filing.damaged:
            said = f"{filing.damaged:,} verdict(s) in the journal are none, and are made anew"
            tell = self.log.warn
            tell(self.node, "journal", said)
        judging = Judging.of(criterion=criterion, judge=identity, passes=ledger.passes, cut=cut)
        agenda = self.session.agenda(filing, judging, todo)
        self.session.note(restored=restored)
        return filing, agenda

    def _foresee(self, agenda: Agenda, filing: Filing, cut: Cut) -> None:
        """Warn of a bound that cannot suffice; a replay spends nothing."""
        opened, options = self.session.opened, self.options
        if opened is None:
            return
        each = 1 if self.judge.info.kind == "logprob" else cut.items
        needed = calls_needed(agenda, filing.done, items=each)
        spent, number = opened.spent.calls, self.session.number
        told = too_few_calls(needed, bound=options.caps.calls, spent=spent, session=number)
        if told is not None:
            tell = self.log.warn
            tell(self.node, "bounds", told)

    async def _scan(self, ledger: Ledger, plan: Scan, filing: Filing | None) -> None:
        await scan(
            self.spool,
            self.judge,
            ledger,
            plan,
            node=self.node,
            emit=self.log.emit,
            clock=self.options.clock,
            span=self.log.node,
            filing=filing,
            stop=self.options.stop,
        )

    async def _engine(
        self, stack: AsyncExitStack, filing: Filing | None, agenda: Agenda
    ) -> DaskEngine | None:
        """Start what other processes judge with; None where this one does it, or nothing is left."""
        if self.options.engine == LOCAL or filing is None or filing.covers(agenda):
            return None
        from rlm.cluster import engine_for  # for those who leave this process

        return await stack.enter_async_context(engine_for(self.options))

    async def _spread(self, engine: DaskEngine, ledger: Ledger, plan: Scan, filing: Filing) -> None:
        from rlm.cluster import Judged, judge_on_cluster

        journal = self.session.opened
        assert isinstance(self.plan, Asking)
        assert journal is not None
        assert self.allowance is not None
        await judge_on_cluster(
            engine,
            Judged(
                spool=self.spool,
                ledger=ledger,
                filing=filing,
                agenda=plan.agenda,
                agenda_name=self.session.manifest.last.agenda,
                cut=plan.cut,
                node=self.node,
                emit=self.log.emit,
                clock=self.options.clock,
                span=self.log.node,
                journal=journal,
                resumed=journal.spent.calls > 0,
            ),
            plan=self.plan,
            options=self.options,
            criterion=self.criterion,
            session=self.session,
            log=self.log,
            journal=journal,
            allowance=self.allowance,
            data=self.data,
        )


def _code(name: str, labels: tuple[str, ...]) -> int:
    if labels:
        return FIRST_LABEL + labels.index(name)
    return MATCHED if name == "yes" else NOT
