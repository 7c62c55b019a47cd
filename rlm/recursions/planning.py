"""A recursion planned and not done: what is decided before any work, and what bounds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np

from corpus.agenda import Agenda, Ordinals
from corpus.criterion import Criterion
from corpus.judges.chat import ChatJudge
from corpus.questions import YesNo
from corpus.scan import distinct
from corpus.spool import Spool
from executors.calls.calls import Calls
from executors.gate.allowance import CapsAllowance
from executors.messages import CallRole
from executors.models.base import Model
from planner.complexity import Complexity, assess
from planner.families import FanOut, ModelDriven, Partition, chunks, family_of, partition_widths
from planner.plan import PlanError
from planner.routes import Route
from planner.rules import plan_task
from rlm.corpora import open_corpus
from rlm.forecast import Bound, Range, bound_of
from rlm.recursions.casting import cast_models
from rlm.recursions.costing import Costing, Load
from rlm.recursions.foreseen import (
    ONE,
    PlannedPart,
    RecursionPlan,
    RoleLoad,
    Shape,
    Span,
    spanned,
)
from rlm.recursions.forest import Models
from rlm.recursions.looking import route_of
from rlm.recursions.options import Kept, RecurseOptions
from rlm.recursions.reading import (
    Slice,
    equal_slices,
    named,
    room_for_answer,
    room_to_read,
    slices,
)
from rlm.recursions.scanning import cut_of, tokens_for
from rlm.recursions.wiring import Wiring
from rlm.rehearsal import RequestReader, Script
from rlm.runs.glance import glance
from rlm.runs.log import ROOT
from rlm.runs.session import Wanted

__all__ = ["Planning"]


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A plan as it is being made."""

    shape: Shape
    why: str
    exact: bool = True
    parts: list[PlannedPart] = field(default_factory=list[PlannedPart])
    nodes: Span = ONE
    loads: dict[CallRole, tuple[Model, Load]] = field(
        default_factory=dict[CallRole, tuple[Model, Load]]
    )
    ends: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    checked: bool = False
    """Code looks at the result."""
    route: Route | None = None
    """How parts read the corpus, where that is decided by what they are."""

    def add(self, role: CallRole, model: Model, load: Load) -> None:
        """Count calls of a role."""
        known = self.loads.get(role)
        self.loads[role] = model, load if known is None else known[1] + load


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

    @property
    def _models(self) -> Models:
        return self._cast.models

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
        options, complexity = self._options, assess(self._task)
        route = route_of(
            self._task,
            options,
            has_corpus=spool is not None,
            can_plan=self._models.planner is not None,
        )
        draft = await self._shaped(spool, complexity, route)
        self._verified(draft, complexity)
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

    async def _shaped(self, spool: Spool | None, complexity: Complexity, route: Route) -> _Draft:
        options = self._options
        if spool is not None and len(spool) == 0:
            return _Draft(shape="scan", why="there is nothing to read", ends=["empty-corpus"])
        family = family_of(
            complexity,
            mode=options.mode,
            count=options.count,
            worker_budget=options.worker_budget,
        )
        match family:
            case Partition():
                assert spool is not None
                return await self._partition(spool)
            case FanOut(count=count, derived=derived):
                tier = f"a task that looks {complexity.level} has {count} part(s)"
                why = tier if derived else f"{count:,} part(s) were asked for"
                if spool is None:
                    return self._planned_parts(count, why)
                return self._over_slices(spool, count, why)
            case ModelDriven():
                return await self._driven(spool, complexity, route)

    # ---------------------------------------------------------------- the corpus in parts

    async def _partition(self, spool: Spool) -> _Draft:
        options, size = self._options, len(spool)
        widths = partition_widths(size, floor=options.count or 1, budget=options.worker_budget)
        width = widths.width
        why = (
            f"{size:,} records at {options.worker_budget:,} a worker ask for {widths.data:,} "
            f"part(s), at least {widths.floor:,} were asked for"
        )
        if options.retrieval == "read":
            cut = slices(spool, items=max(1, -(-size // width)), tokens=self._room())
            return self._leaves(_Draft(shape="partition", why=why), cut)
        draft = _Draft(shape="partition", why=why, checked=True)
        draft.route = Route(retrieval="scan", upgraded=False, reason="each part is judged")
        parts = chunks(size, width)
        draft.nodes = Span(low=1 + len(parts), high=1 + len(parts))
        todo = distinct(spool)
        of_parts = [todo[(todo >= part.start) & (todo < part.stop)] for part in parts]
        await self._judged(draft, spool, of_parts)
        return draft

    def _over_slices(self, spool: Spool, count: int, why: str) -> _Draft:
        cut = equal_slices(spool, count, tokens=self._room())
        return self._leaves(_Draft(shape="fan-out", why=why), cut)

    def _leaves(self, draft: _Draft, cut: Sequence[Slice]) -> _Draft:
        draft.route = Route(retrieval="read", upgraded=False, reason="each part reads its slice")
        for one in cut:
            load = self._leaf(self._task, depth=1, shown=one.shown)
            draft.add("worker", self._models.worker, load)
            name = f"{one.index + 1} of {len(cut)}: {named(one.ids)}"
            draft.parts.append(
                PlannedPart(
                    name=name, records=len(one.ids), tokens=load.input.low, calls=load.calls
                )
            )
        draft.nodes = Span(low=1 + len(cut), high=1 + len(cut))
        draft.checked = self._options.refine_leaf is not None
        self._merged(draft, len(cut))
        return draft

    # ---------------------------------------------------------------- parts of the task

    def _planned_parts(self, count: int, why: str) -> _Draft:
        planner = self._models.planner
        if planner is None or self._options.planner_rules:
            return self._ruled(count, why)
        draft = _Draft(shape="fan-out", why=f"{why}, which a model plans", exact=False)
        draft.add("planner", planner, self._costing.planner(planner, self._task, count))
        draft.add("worker", self._models.worker, self._leaf("x", depth=1, shown=None) * count)
        spawned = self._may_spawn(draft, count) if self._options.max_depth > 1 else 0
        draft.nodes = Span(low=1 + count, high=1 + count + spawned)
        draft.checked = self._options.refine_leaf is not None
        self._merged(draft, count)
        return draft

    def _ruled(self, count: int, why: str) -> _Draft:
        draft = _Draft(shape="fan-out", why=f"{why}, as the task is written")
        try:
            plan = plan_task(self._task, count=count)
        except PlanError as fault:
            draft.ends.append(f"plan-{fault.kind}: {fault.what}")
            return draft
        spawning = 0
        for step in plan.steps:
            complexity = assess(step.action)
            load = self._leaf(step.action, depth=1, shown=None)
            spawning += self._spawns(complexity, depth=1)
            draft.add("worker", self._models.worker, load)
            title = " ".join(step.action.split())[:80]
            draft.parts.append(
                PlannedPart(name=title, records=None, tokens=load.input.low, calls=load.calls)
            )
            self._critical(draft, step.action, complexity)
        spawned = self._may_spawn(draft, spawning) if spawning else 0
        draft.exact = not spawned
        draft.nodes = Span(low=1 + len(plan.steps), high=1 + len(plan.steps) + spawned)
        draft.checked = self._options.refine_leaf is not None
        self._merged(draft, len(plan.steps))
        return draft

    def _may_spawn(self, draft: _Draft, workers: int) -> int:
        """Count what workers of parts may hand on; return how many nodes that is at most."""
        nodes = self._options.max_nodes
        worker = self._models.worker
        load = self._costing.spawning(worker, "x", workers=workers, nodes=nodes, shown=None)
        draft.add("worker", worker, load.maybe)
        return nodes

    # ---------------------------------------------------------------- the worker decides

    async def _driven(self, spool: Spool | None, complexity: Complexity, route: Route) -> _Draft:
        options, models = self._options, self._models
        if spool is not None and route.retrieval == "scan":
            draft = _Draft(
                shape="scan", why=f"every record is judged: {route.reason}", checked=True
            )
            await self._judged(draft, spool, [distinct(spool)])
            return draft
        alone = spool is not None and models.planner is None
        if alone and route.retrieval == "exact" and route.terms:
            return _Draft(shape="terms", why=f"code counts: {route.reason}", checked=True)
        shown = None
        if spool is not None and route.retrieval == "read":
            shown = equal_slices(spool, 1, tokens=self._room())[0].shown
        tools = self._has_tools or (
            spool is not None
            and models.planner is not None
            and route.retrieval in ("search", "exact", "tools")
        )
        spawns = self._spawns(complexity, depth=0)
        why = f"the task looks {complexity.level}: its worker " + (
            "may hand parts on" if spawns else "hands nothing on"
        )
        draft = _Draft(shape="worker", why=why, exact=not (spawns or tools))
        draft.checked = options.refine_leaf is not None and not spawns
        if spawns:
            load = self._costing.spawning(
                models.worker, self._task, workers=1, nodes=options.max_nodes, shown=shown
            )
            draft.nodes = Span(low=1, high=1 + options.max_nodes)
        else:
            load = self._leaf(self._task, depth=0, shown=shown, tools=tools)
        if alone and route.retrieval in ("search", "exact", "tools"):
            draft.notes.append("what a search finds is shown to the worker, and comes on top")
            load = replace(load, input=replace(load.input, high=None))
        draft.add("worker", models.worker, load)
        if spool is not None and route.retrieval == "tools" and models.judge is not None:
            draft.notes.append("its worker may have all records judged, once a question it asks")
            open_ = Span(low=0, high=None)
            draft.add("judge", models.judge, Load(calls=open_, input=open_, output=open_))
        return draft

    def _spawns(self, complexity: Complexity, *, depth: int) -> bool:
        return (
            complexity.needs_planning
            and depth < self._options.max_depth
            and self._models.planner is not None
        )

    # ---------------------------------------------------------------- single loads

    @property
    def _has_tools(self) -> bool:
        return callable(self._options.tools) or bool(len(self._options.tools))

    def _room(self) -> int:
        worker = self._models.worker
        return room_to_read(worker, room_for_answer(worker, self._options.max_tokens))

    def _leaf(self, task: str, *, depth: int, shown: str | None, tools: bool = False) -> Load:
        return self._costing.leaf(
            self._models.worker, task, depth=depth, shown=shown, tools=tools or self._has_tools
        )

    def _merged(self, draft: _Draft, parts: int) -> None:
        if self._options.synthesize == "merge":
            merger = self._models.merger
            draft.add("merge", merger, self._costing.merge(merger, self._task, parts))

    def _verified(self, draft: _Draft, complexity: Complexity) -> None:
        """Count who grades the result, or say that nobody can."""
        options = self._options
        if options.evaluate is not None:
            draft.notes.append("your own evaluate judges the result; what that costs is not known")
        elif options.contract is not None or (complexity.level == "critical" and not draft.checked):
            self._grade(draft, self._task)
        more = draft.nodes.high
        if self._models.verifier is not None and not draft.exact and more is not None:
            each = self._costing.grade(self._models.verifier, self._task).maybe
            draft.add("verifier", self._models.verifier, each * (more - 1))

    def _critical(self, draft: _Draft, task: str, complexity: Complexity) -> None:
        """Count the grader of a child whose task is critical."""
        if complexity.level == "critical" and self._options.refine_leaf is None:
            self._grade(draft, task)

    def _grade(self, draft: _Draft, task: str) -> None:
        verifier = self._models.verifier
        if verifier is None:
            said = "verifier-unavailable: the result has to be graded, and no model here can"
            if said not in draft.ends:
                draft.ends.append(said)
            return
        draft.add("verifier", verifier, self._costing.grade(verifier, task))

    async def _judged(self, draft: _Draft, spool: Spool, parts: list[Ordinals]) -> None:
        """Build the requests of a judge, part by part, and count them."""
        judge = self._models.judge
        if judge is None:
            draft.ends.append("uncalibrated-judge: no model here can judge records")
            return
        options = self._options
        calls = Calls(
            allowance=CapsAllowance(self._wiring.caps, self._wiring.clock),
            emit=lambda _: None,
            clock=self._wiring.clock,
            retry=self._wiring.retry,
            concurrency=self._wiring.concurrency,
            limits=self._wiring.limits,
        )
        asking = ChatJudge(calls, judge, Criterion(question=YesNo(text=self._task)), node=ROOT)
        reader = RequestReader(
            spool, asking, calls, judge, cut_of(options.window, tokens_for(judge))
        )
        done = np.zeros((options.passes, len(spool)), dtype=np.bool_)
        for number, todo in enumerate(parts, 1):
            script = Script(agenda=Agenda.whole(todo, options.passes), done=done, restored=0)
            loads = [await reader.load(script, one) for one in range(options.passes)]
            load = Load(
                calls=_same(sum(one.calls for one in loads)),
                input=_same(sum(one.prompt for one in loads)),
                output=Span(
                    low=sum(one.shortest for one in loads), high=sum(one.longest for one in loads)
                ),
            )
            draft.add("judge", judge, load)
            if len(parts) > 1:
                name = f"partition {number} of {len(parts)}"
                draft.parts.append(
                    PlannedPart(
                        name=name, records=len(todo), tokens=load.input.low, calls=load.calls
                    )
                )
        draft.notes.append("replies of a judge that cannot be used cost more")

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


def _same(number: int) -> Span:
    return Span(low=number, high=number)


def _capped(span: Span, limit: int) -> Range[int]:
    """Return a span as a range; one without an end ends past the limit."""
    high = max(limit, span.low) + 1 if span.high is None else span.high
    return Range(low=span.low, high=high)
