"""How one node looks into the corpus: judged, searched, matched exactly, or shown as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from corpus.exact import terms_predicate
from corpus.judges.rule import RuleJudge
from corpus.questions import YesNo
from corpus.results import Tally
from corpus.search import Searcher
from corpus.tool_texts import ScanFound, search_text
from corpus.tools import (
    build_exact_tool,
    build_read_tool,
    build_scan_tool,
    build_search_tool,
)
from executors.fences import fenced
from executors.ids import NodeId, child_of
from executors.tools.base import Tool
from planner.families import FanOut, Partition
from planner.routes import Route, route, route_by_rules
from rlm.recursions.forest import Forest
from rlm.recursions.offering import offered
from rlm.recursions.options import RecurseOptions
from rlm.recursions.reading import equal_slices, room_to_read
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of, shown
from rlm.recursions.scanning import Scanning
from rlm.recursions.spec import Spec

__all__ = ["Looking", "choose_route", "route_of", "route_of_parts"]

_HITS: Final = 8
Tools = Sequence[Tool] | Callable[[], Sequence[Tool]]


def choose_route(forest: Forest, spec: Spec) -> Route:
    """Return how a node reads the corpus; only the root has one, and partitions hand out parts."""
    has = spec.depth == 0 and forest.spool is not None
    return route_of(spec.task, spec.options, has_corpus=has, can_plan=forest.can_plan)


def route_of(task: str, options: RecurseOptions, *, has_corpus: bool, can_plan: bool) -> Route:
    """Return how a task reads a corpus; rules choose where no model could."""
    if has_corpus and options.retrieval in (None, "exact") and not can_plan:
        ruled = route_by_rules(task, contract=options.contract, tools=False)
        # Who cannot call the tool that matches terms has them matched by code.
        if options.retrieval in (None, ruled.retrieval):
            return ruled
    return route(
        task, has_corpus=has_corpus, retrieval=options.retrieval, contract=options.contract
    )


def route_of_parts(family: FanOut | Partition, options: RecurseOptions) -> Route:
    """Return how parts read the corpus that is cut among them."""
    match family:
        case Partition() if options.retrieval != "read":
            return Route(retrieval="scan", upgraded=False, reason="each part is judged")
        case FanOut() | Partition():
            return Route(retrieval="read", upgraded=False, reason="each part reads its slice")


class Looking:
    """The corpus, as far as one node has a way to it."""

    def __init__(self, forest: Forest, spec: Spec, chosen: Route) -> None:
        self._forest = forest
        self._spec = spec
        self._route = chosen
        self._counted: dict[str, tuple[NodeId, Tally]] = {}
        """What the worker had counted, by its question: the last count of each."""

    async def alone(self) -> NodeResult | None:
        """Return what code and the judge find without a worker; None where one has to work."""
        match self._route.retrieval:
            case "scan":
                return await self._judged()
            case "exact" if not self._forest.can_plan and self._route.terms:
                return await self._matched(self._route.terms)
            case _:
                return None

    async def shown(self) -> str | None:
        """Return what a worker reads of the corpus in its own message; None for nothing."""
        spool, options = self._forest.spool, self._spec.options
        if spool is None:
            return None
        if self._route.retrieval == "read":
            answer = self._forest.room_for_answer(options.max_tokens)
            tokens = room_to_read(self._forest.models.worker, answer)
            return equal_slices(spool, 1, tokens=tokens)[0].shown
        if self._route.retrieval in ("search", "tools", "exact") and not self._forest.can_plan:
            # It cannot call a tool by itself, so the search is made for it.
            searcher = await self._searcher()
            hits = await searcher.search(self._spec.task, limit=_HITS)
            self._forest.note(f"the worker was shown {len(hits)} hit(s) that code had searched for")
            return fenced(search_text(self._spec.task, hits, searcher.records), "search")
        return None

    def with_tools(self, given: Tools) -> Tools:
        """Return the caller's tools, and those that the route calls for."""
        return offered(given, self._tools(), partial(self._forest.log.warn, self._spec.node))

    def _tools(self) -> list[Tool]:
        forest, spool = self._forest, self._forest.spool
        if spool is None or not forest.can_plan:
            return []
        found: list[Tool] = []
        way = self._route.retrieval
        if way == "tools" and forest.models.judge is not None:
            found.append(build_scan_tool(self._count))
        if way in ("tools", "search"):
            found += [build_search_tool(self._searcher), build_read_tool(spool)]
        if way in ("tools", "exact"):
            found.append(build_exact_tool(spool))
        return found

    async def _searcher(self) -> Searcher:
        assert self._forest.searching is not None
        return await self._forest.searching.open()

    # ---------------------------------------------------------------- counting

    async def _judged(self) -> NodeResult:
        forest, spec = self._forest, self._spec
        judge = forest.models.judge
        if judge is None:
            return forest.no_judge(spec.node, spec.task)
        assert forest.spool is not None
        blocked = await forest.checkpoint(
            "recurse_scan",
            {"size": len(forest.spool), "width": spec.options.window},
            node=spec.node,
            depth=spec.depth,
            task=spec.task,
        )
        if blocked is not None:
            return Short(best=None, blocked=blocked, missing=(spec.title,))
        scanning = Scanning.by_model(forest, judge, spec.task, spec.options)
        forest.counting = scanning.tally
        await scanning.run(spec.node, cap=forest.wiring.concurrency)
        return self._result(scanning.tally())

    async def _matched(self, terms: tuple[str, ...]) -> NodeResult:
        """Count by terms; code compares every record, and no model is asked."""
        forest, spec = self._forest, self._spec
        name = f"rule all of {', '.join(map(repr, terms))}"
        rule = terms_predicate(terms, mode="all")
        question = YesNo(text=spec.task)
        scanning = Scanning(
            forest,
            lambda node: RuleJudge(rule, question=question, name=name, node=node),
            spec.options,
            name=name,
            deterministic=True,
        )
        forest.note(f"counted by code: {name}")
        await scanning.run(spec.node, cap=1)
        return self._result(scanning.tally())

    def held_against(self, result: NodeResult) -> NodeResult:
        """Return what a worker came to, held against what it had counted.

        A count that is no whole one makes no whole answer, whatever the worker says of it; and where
        the worker came to nothing, what was counted is the best there is.
        """
        counted = self._counted
        if isinstance(result, Short):
            kept = self._kept() if result.best is None and counted else result.best
            return replace(result, best=kept)
        for question, (place, tally) in counted.items():
            if not tally.complete:
                left = tally.states["unresolved"]
                detail = f"{left:,} record(s) were never judged for {question[:200]!r}"
                blocked = Blocked(
                    blocker="unresolved-records", detail=detail, node=place, task=question
                )
                return Short(best=result.value, blocked=blocked, missing=(self._spec.title,))
        forest = self._forest
        looks = {tool.name for tool in self._tools()}
        if looks and not looks & forest.called[self._spec.node]:
            forest.note("the worker answered without a look into the corpus")
        return result

    def _kept(self) -> object:
        if len(self._counted) == 1:
            return next(tally for _, tally in self._counted.values())
        return "\n".join(f"{asked}: {shown(tally)}" for asked, (_, tally) in self._counted.items())

    def _result(self, result: Tally) -> NodeResult:
        halted = self._forest.halted
        if halted is None and result.complete:
            return Answered(value=result, checked=True)
        spec = self._spec
        blocked = Blocked(
            blocker="unresolved-records" if halted is None else blocker_of(halted),
            detail=f"{result.states['unresolved']:,} record(s) were never judged"
            if halted is None
            else halted.what,
            node=spec.node,
            task=spec.task,
        )
        return Short(best=result, blocked=blocked, missing=(spec.title,))

    async def _count(self, question: str) -> ScanFound:
        """Judge every record, for a worker that asks by its tool; below its node, one place a scan."""
        forest, spec = self._forest, self._spec
        judge = forest.models.judge
        assert judge is not None
        scanning = Scanning.by_model(forest, judge, question, spec.options)
        place = child_of(spec.node, forest.claim(spec.node))
        with forest.log.node(place, f"scan_count: {question[:60]}"):
            halted = await scanning.run(place, cap=forest.wiring.concurrency)
        result = scanning.tally()
        self._counted[question] = place, result
        if halted is not None:
            raise halted
        return ScanFound.of(result, window=spec.options.window)
