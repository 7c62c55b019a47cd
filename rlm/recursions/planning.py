"""A recursion planned and not done: what is decided before any work, and what bounds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from corpus.questions import YesNo
from corpus.scan import distinct
from corpus.spool import Spool
from planner.complexity import assess
from rlm.corpora import open_corpus
from rlm.forecasts.forecast import Bound, Range, bound_of
from rlm.recursions.casting import cast_models
from rlm.recursions.costing import Costing
from rlm.recursions.drafting import Drafting
from rlm.recursions.foreseen import RecursionPlan, RoleLoad, Span, spanned
from rlm.recursions.looking import route_of
from rlm.recursions.options import Kept, RecurseOptions
from rlm.recursions.wiring import Wiring
from rlm.runs.glance import glance
from rlm.runs.session import Wanted

__all__ = ["Planning"]


class Planning:
    """Goes through a recursion without its calls: no model is asked, no key needed.

    Raises:
        UsageError: from the constructor, when a model that is named cannot work.
    """

    def __init__(self, task: str, wiring: Wiring, options: RecurseOptions) -> None:
        self._task = task
        self._wiring = wiring
        self._options = options
        self._costing = Costing(options, wiring.prices)
        self._notes: list[str] = []
        self._cast = cast_models(wiring, warn=self._notes.append, asks=False)

    async def plan(self) -> RecursionPlan:
        """Return what it would take. The corpus is read into a temporary place, which goes again.

        Raises:
            UsageError: the corpus or an option is wrong, as for the recursion itself.
        """
        try:
            corpus = self._options.corpus
            if corpus is None or isinstance(corpus, Kept):
                return await self._planned(None)
            wanted = Wanted(directory=None, question=YesNo(text=self._task), options={}, objects={})
            async with glance(wanted, now=self._wiring.clock.now()) as place:
                spool = await place.read(open_corpus(corpus), self._options.on_duplicate)
                try:
                    return await self._planned(spool)
                finally:
                    spool.close()
        finally:
            await self._cast.let_go()

    async def _planned(self, spool: Spool | None) -> RecursionPlan:
        options, models, complexity = self._options, self._cast.models, assess(self._task)
        route = route_of(
            self._task,
            options,
            has_corpus=spool is not None,
            can_plan=models.planner is not None,
        )
        drafting = Drafting(self._task, self._wiring, options, models=models, costing=self._costing)
        draft = await drafting.draft(spool, complexity, route)
        draft.notes += [*self._notes, *self._cast.notes]
        loads = tuple(
            self._costing.priced(role, model, load)
            for role, (model, load) in sorted(draft.loads.items())
        )
        return RecursionPlan(
            task=self._task,
            complexity=complexity,
            shape=draft.shape,
            why=draft.why,
            route=None if spool is None else draft.route or route,
            records=None if spool is None else len(spool),
            distinct=None if spool is None else len(distinct(spool)),
            exact=draft.exact,
            parts=tuple(draft.parts),
            nodes=draft.nodes,
            loads=loads,
            bounds=self._bounds(loads),
            max_depth=options.max_depth,
            max_nodes=options.max_nodes,
            rounds=options.rounds,
            ends=tuple(draft.ends),
            notes=tuple(draft.notes),
        )

    def _bounds(self, loads: Sequence[RoleLoad]) -> tuple[Bound, ...]:
        caps = self._wiring.caps
        calls = spanned([load.calls for load in loads])
        tokens = spanned([load.input + load.output for load in loads])
        usd = [load.usd for load in loads]
        spent: Range[Decimal] | None = None
        if all(one is not None for one in usd):
            known = [one for one in usd if one is not None]
            low = Decimal(sum(one.low for one in known))
            open_ = any(load.open_usd for load in loads)
            high = Decimal(sum(one.high for one in known))
            spent = Range(low=low, high=max(caps.usd + 1, high) if open_ else high)
        return (
            bound_of("calls", caps.calls, 0, _capped(calls, caps.calls)),
            bound_of("tokens", caps.tokens, 0, _capped(tokens, caps.tokens)),
            bound_of("usd", caps.usd, Decimal(0), spent),
        )


def _capped(span: Span, limit: int) -> Range[int]:
    """Return a span as a range; one without an end ends past the limit."""
    high = max(limit, span.low) + 1 if span.high is None else span.high
    return Range(low=span.low, high=high)
