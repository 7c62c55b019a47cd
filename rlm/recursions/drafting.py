"""The tree of a recursion as far as it is decided before any work, with what its calls come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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
from rlm.forecasts.rehearsal import RequestReader, Script
from rlm.recursions.costing import Costing, Load
from rlm.recursions.foreseen import ONE, PlannedPart, Shape, Span
from rlm.recursions.forest import Models
from rlm.recursions.leaves import UNSENSED
from rlm.recursions.looking import route_of_parts
from rlm.recursions.options import RecurseOptions
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
from rlm.runs.log import ROOT

__all__ = ["Draft", "Drafting"]


@dataclass(slots=True, kw_only=True)
class Draft:
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


class Drafting:
    """Drafts the tree of one task, and who takes part in it."""

    def __init__(
        self,
        task: str,
        wiring: Wiring,
        options: RecurseOptions,
        *,
        models: Models,
        costing: Costing,
    ) -> None:
        self._task = task
        self._wiring = wiring
        self._options = options
        self._models = models
        self._costing = costing

    async def draft(self, spool: Spool | None, complexity: Complexity, route: Route) -> Draft:
        """Return the tree with all that is asked in it, the grader of its result included.

        Raises:
            ValidationError: the corpus cannot be cut as it is asked for.
        """
        draft = await self._shaped(spool, complexity, route)
        self._verified(draft, complexity)
        return draft

    async def _shaped(self, spool: Spool | None, complexity: Complexity, route: Route) -> Draft:
        options = self._options
        if spool is not None and len(spool) == 0:
            return Draft(shape="scan", why="there is nothing to read", ends=["empty-corpus"])
        family = family_of(
            complexity,
            mode=options.mode,
            count=options.count,
            worker_budget=options.worker_budget,
        )
        match family:
            case Partition():
                assert spool is not None
                draft = await self._partition(spool)
                draft.route = route_of_parts(family, options)
                return draft
            case FanOut(count=count, derived=derived):
                tier = f"a task that looks {complexity.level} has {count} part(s)"
                why = tier if derived else f"{count:,} part(s) were asked for"
                if spool is None:
                    return self._planned_parts(count, why)
                draft = self._over_slices(spool, count, why)
                draft.route = route_of_parts(family, options)
                return draft
            case ModelDriven():
                return await self._driven(spool, complexity, route)

    # ---------------------------------------------------------------- the corpus in parts

    async def _partition(self, spool: Spool) -> Draft:
        options, size = self._options, len(spool)
        widths = partition_widths(size, floor=options.count or 1, budget=options.worker_budget)
        width = widths.width
        why = (
            f"{size:,} records at {options.worker_budget:,} a worker ask for {widths.data:,} part(s)"
            + ("" if options.count is None else f", at least {widths.floor:,} were asked for")
        )
        if options.retrieval == "read":
            cut = slices(spool, items=max(1, -(-size // width)), tokens=self._room())
            return self._leaves(Draft(shape="partition", why=why), cut)
        draft = Draft(shape="partition", why=why, checked=True)
        parts = chunks(size, width)
        draft.nodes = Span(low=1 + len(parts), high=1 + len(parts))
        todo = distinct(spool)
        of_parts = [todo[(todo >= part.start) & (todo < part.stop)] for part in parts]
        await self._judged(draft, spool, of_parts)
        return draft

    def _over_slices(self, spool: Spool, count: int, why: str) -> Draft:
        cut = equal_slices(spool, count, tokens=self._room())
        return self._leaves(Draft(shape="fan-out", why=why), cut)

    def _leaves(self, draft: Draft, cut: Sequence[Slice]) -> Draft:
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

    def _planned_parts(self, count: int, why: str) -> Draft:
        planner = self._models.planner
        if planner is None or self._options.planner_rules:
            return self._ruled(count, why)
        draft = Draft(shape="fan-out", why=f"{why}, which a model plans", exact=False)
        draft.add("planner", planner, self._costing.planner(planner, self._task, count))
        draft.add("worker", self._models.worker, self._leaf("x", depth=1, shown=None) * count)
        spawned = self._may_spawn(draft, count) if self._options.max_depth > 1 else 0
        draft.nodes = Span(low=1 + count, high=1 + count + spawned)
        draft.checked = self._options.refine_leaf is not None
        self._merged(draft, count)
        return draft

    def _ruled(self, count: int, why: str) -> Draft:
        draft = Draft(shape="fan-out", why=f"{why}, as the task is written")
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

    def _may_spawn(self, draft: Draft, workers: int) -> int:
        """Count what workers of parts may hand on; return how many nodes that is at most."""
        nodes = self._options.max_nodes
        worker = self._models.worker
        load = self._costing.spawning(worker, "x", workers=workers, nodes=nodes, shown=None)
        draft.add("worker", worker, load.maybe)
        return nodes

    # ---------------------------------------------------------------- the worker decides

    async def _driven(self, spool: Spool | None, complexity: Complexity, route: Route) -> Draft:
        options, models = self._options, self._models
        if spool is not None and route.retrieval == "scan":
            draft = Draft(shape="scan", why=f"every record is judged: {route.reason}", checked=True)
            await self._judged(draft, spool, [distinct(spool)])
            return draft
        alone = spool is not None and models.planner is None
        if alone and route.retrieval == "exact" and route.terms:
            return Draft(shape="terms", why=f"code counts: {route.reason}", checked=True)
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
        draft = Draft(shape="worker", why=why, exact=not (spawns or tools))
        draft.checked = options.refine_leaf is not None and not spawns
        if spawns:
            if options.refine_leaf is not None:
                draft.notes.append(UNSENSED)
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

    def _merged(self, draft: Draft, parts: int) -> None:
        if self._options.synthesize == "merge":
            merger = self._models.merger
            draft.add("merge", merger, self._costing.merge(merger, self._task, parts))

    def _verified(self, draft: Draft, complexity: Complexity) -> None:
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

    def _critical(self, draft: Draft, task: str, complexity: Complexity) -> None:
        """Count the grader of a child whose task is critical."""
        if complexity.level == "critical" and self._options.refine_leaf is None:
            self._grade(draft, task)

    def _grade(self, draft: Draft, task: str) -> None:
        verifier = self._models.verifier
        if verifier is None:
            said = "verifier-unavailable: the result has to be graded, and no model here can"
            if said not in draft.ends:
                draft.ends.append(said)
            return
        draft.add("verifier", verifier, self._costing.grade(verifier, task))

    async def _judged(self, draft: Draft, spool: Spool, parts: list[Ordinals]) -> None:
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


def _same(number: int) -> Span:
    return Span(low=number, high=number)
