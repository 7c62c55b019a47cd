"""A rehearsal of a count: everything but its calls, to say what they would come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from corpus.agenda import Agenda, Block
from corpus.criterion import Criterion
from corpus.events import SourceRead
from corpus.filing import Filing
from corpus.judges.base import Ask, AskingJudge, Window
from corpus.ledger import Ledger
from corpus.questions import OneOf, Question
from corpus.scan import distinct
from corpus.sources import SourceLike
from corpus.spool import Spool
from corpus.windows import Cut, windows
from executors.calls.calls import Calls
from executors.endpoint.buckets import Limits
from executors.errors import ModelError, ValidationError
from executors.events import Event, Warned
from executors.gate.allowance import CapsAllowance
from executors.ids import ContentKey, child_of
from executors.models.base import Model
from executors.models.prices import price_list
from executors.threads import to_its_end
from executors.tokens import estimate
from rlm.corpora import Corpus, open_corpus
from rlm.events import NodeFinished, NodeStarted
from rlm.forecasts.forecast import CountPlan, Load, Pacing, bounds_for, seconds_of, total, usd_of
from rlm.judging import Asking, Encoding, JudgePlan, Ruling, cut_for, let_go, plan_judge
from rlm.options.options import CountOptions
from rlm.options.other_model import dropped
from rlm.runs.glance import Glance, glance
from rlm.runs.log import ROOT
from rlm.runs.manifest import Judging
from rlm.runs.session import Wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Rehearsal", "RequestReader", "Script"]

_READ, _JUDGE = child_of(ROOT, 0), child_of(ROOT, 2)


class Rehearsal:
    """Goes through a count without its calls: no model is asked, no socket opened, no key needed.

    Args:
        latency: seconds a call, for the time: a guess.

    Raises:
        UsageError: from the constructor, when the judge that is asked for cannot work.
    """

    def __init__(self, question: Question, options: CountOptions, *, latency: float) -> None:
        if options.replay is not None:
            raise ValidationError(
                f"there is nothing to foresee: the run replays {str(options.replay)!r}, which asks "
                "no server and costs nothing",
                hint="leave --dry-run out",
            )
        self._question = question
        self._options = options
        self._latency = latency
        self._emit = options.on_event or _unheard
        self._plan: JudgePlan = plan_judge(options, question, warn=self._warned, asks=False)

    async def plan(self, corpus: SourceLike | Corpus | None) -> CountPlan:
        """Return what the count would take; without a corpus, over the records of its run."""
        opened = None if corpus is None else open_corpus(corpus)
        values, objects = self._options.recorded()
        wanted = Wanted(
            directory=self._options.run,
            question=self._question,
            options=values,
            objects=objects,
        )
        try:
            async with glance(wanted, now=self._options.clock.now()) as place:
                spool = await self._read(place, opened)
                try:
                    return await self._planned(place, spool, opened)
                finally:
                    spool.close()
        finally:
            await let_go(self._plan)

    async def _read(self, place: Glance, corpus: Corpus | None) -> Spool:
        if corpus is None:
            return place.kept_spool()
        now, source = self._options.clock.now, corpus.source
        self._emit(NodeStarted(node=_READ, at=now(), name=f"read {source.info.name}"))
        try:
            spool = await place.read(corpus, self._options.on_duplicate)
        finally:
            self._emit(NodeFinished(node=_READ, at=now()))
        info = source.info
        self._emit(
            SourceRead(
                node=_READ,
                at=now(),
                source=info.name,
                records=len(spool),
                empty=int(spool.is_empty.sum()),
                identical=spool.identical,
                said=info.said,
            )
        )
        for warning in source.warnings:
            self._warned(warning.sentence, warning.count)
        return spool

    async def _planned(self, place: Glance, spool: Spool, corpus: Corpus | None) -> CountPlan:
        if place.manifest is not None and (told := dropped(place.manifest, self._options)):
            self._warned(told)
        found = CountPlan(
            question=self._question.text,
            source="the records of the run" if corpus is None else corpus.source.info.name,
            records=len(spool),
            empty=int(spool.is_empty.sum()),
            identical=spool.identical,
            distinct=len(distinct(spool)),
            judge=_name_of(self._plan),
            run=None if place.kept is None else str(place.kept),
            spent=place.spent,
            latency=self._latency,
        )
        return (
            await self._asked(place, spool, self._plan, found)
            if isinstance(self._plan, Asking)
            else found
        )

    async def _asked(
        self, place: Glance, spool: Spool, plan: Asking, found: CountPlan
    ) -> CountPlan:
        """Fill in what a model is asked."""
        options, info = self._options, plan.model.info
        calls = self._calls(place)
        judge = plan.judge(calls, self._criterion, options, _JUDGE, self._emit)
        cut = cut_for(options, plan, judge.info)
        script = await to_its_end(partial(self._script, place, spool, judge, cut))
        reader = RequestReader(spool, judge, calls, plan.model, cut)
        loads = [await reader.load(script, n) for n in range(len(script.agenda.passes))]
        load = total(loads)
        pacing = Pacing(
            cap=min(options.concurrency, info.max_concurrency or options.concurrency),
            latency=self._latency,
            limits=options.limits or Limits(),
        )
        price = price_list(options.prices).price(info)
        usd, seconds = usd_of(load, price), seconds_of(loads, pacing)
        return replace(
            found,
            judge=judge.info.name,
            asks=True,
            restored=script.restored,
            passes=len(loads),
            window=cut.items,
            concurrency=pacing.cap,
            load=load,
            usd=usd,
            seconds=seconds,
            bounds=bounds_for(load, usd, seconds, caps=options.caps, spent=place.spent),
        )

    def _calls(self, place: Glance) -> Calls:
        options = self._options
        return Calls(
            allowance=CapsAllowance(options.caps, options.clock),
            emit=self._emit,
            clock=options.clock,
            journal=place.journal,
            retry=options.retry,
            concurrency=options.concurrency,
            limits=options.limits,
        )

    def _script(self, place: Glance, spool: Spool, judge: AskingJudge, cut: Cut) -> Script:
        """Return what is left to judge, as the session that is to come would find it. Blocking."""
        todo = distinct(spool)
        passes = 1 if judge.info.deterministic else self._options.passes
        labels = self._question.labels if isinstance(self._question, OneOf) else ()
        criterion, identity = self._criterion.key, judge.info.identity
        filing = Filing(
            place.journal,
            spool,
            Ledger(len(spool), passes=passes, labels=labels),
            todo,
            criterion=criterion,
            judge=identity,
        )
        restored = filing.restore()
        judging = Judging.of(criterion=criterion, judge=identity, passes=passes, cut=cut)
        return Script(
            agenda=place.agenda(filing.agenda(), Agenda.whole(todo, passes), judging, spool),
            done=filing.done,
            restored=restored,
        )

    @property
    def _criterion(self) -> Criterion:
        return Criterion(question=self._question, description=self._options.description)

    def _warned(self, message: str, count: int = 1) -> None:
        at = self._options.clock.now()
        self._emit(Warned(node=ROOT, at=at, code="dry-run", message=message, count=count))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Script:
    """What is left to judge."""

    agenda: Agenda
    done: NDArray[np.bool_]
    """By pass and ordinal."""
    restored: int


class RequestReader:
    """Builds the requests of each window, and adds up what they would take."""

    def __init__(
        self, spool: Spool, judge: AskingJudge, calls: Calls, model: Model, cut: Cut
    ) -> None:
        self._spool = spool
        self._judge = judge
        self._calls = calls
        self._model = model
        self._cut = cut
        self._seen: set[ContentKey] = set()

    async def load(self, script: Script, pass_index: int) -> Load:
        """Return what a pass takes; a block at a time in a thread, so that it can be stopped."""
        found: list[Load] = []
        for block in script.agenda.blocks(pass_index, items=self._cut.items):
            read = partial(self._block, block, script.done[pass_index])
            found.append(await to_its_end(read))
        return total(found)

    def _block(self, block: Block, done: NDArray[np.bool_]) -> Load:
        sums = Counter[str]()
        for window in windows(self._spool, block, self._cut, done=done):
            sums["windows"] += 1
            self._window(window, sums)
        return Load(**sums)

    def _window(self, window: Window, sums: Counter[str]) -> None:
        asks = self._judge.asks(window)
        for ask in asks:
            try:
                call = self._calls.foresee(self._model, ask.request, ordinal=ask.ordinal)
            except ModelError:
                if len(asks) < len(window.items):
                    self._in_halves(window, sums)
                else:
                    sums["refused"] += 1
                continue
            if call.key in self._seen:
                sums["shared"] += 1
                continue
            self._seen.add(call.key)
            if call.filed:
                sums["filed"] += 1
            else:
                _add(sums, call.prompt, ask)

    def _in_halves(self, window: Window, sums: Counter[str]) -> None:
        """Take what is too long together as the judge would, about: the order may differ."""
        middle = (len(window.items) + 1) // 2
        for half in (window.items[:middle], window.items[middle:]):
            self._window(replace(window, items=half), sums)


def _add(sums: Counter[str], prompt: int, ask: Ask) -> None:
    longest = ask.request.max_tokens
    sums["calls"] += 1
    sums["prompt"] += prompt
    sums["shortest"] += min(max(1, estimate(ask.shortest)), longest)
    sums["longest"] += longest


def _name_of(plan: JudgePlan) -> str:
    match plan:
        case Asking():
            return plan.kind
        case Ruling():
            return plan.name
        case Encoding():
            return f"encoder {plan.encoder.name}"


def _unheard(_: Event) -> None:
    """Take the place of a listener."""
