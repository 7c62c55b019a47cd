"""The front for `plan_recursion`: what a recursion would take, without taking it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corpus.sources import SourceLike
from executors.models.base import Model
from executors.tools.base import Tool
from planner.families import WORKER_BUDGET, Mode
from planner.routes import Retrieval
from rlm.checks.evaluator import Evaluate
from rlm.checks.refinement import RefineLeaf
from rlm.corpora import Corpus
from rlm.recursions.foreseen import RecursionPlan
from rlm.recursions.options import OnDuplicate, RecurseOptions
from rlm.recursions.planning import Planning
from rlm.recursions.wiring import Wiring
from rlm.sync import sync_twin
from rlm.synthesis import Synthesize

__all__ = ["RecursionPlan", "plan_recursion", "plan_recursion_sync"]


async def plan_recursion(
    task: str,
    ctx: Wiring | str | Model | None = None,
    *,
    corpus: SourceLike | Corpus | None = None,
    mode: Mode | None = None,
    count: int | None = None,
    retrieval: Retrieval | None = None,
    contract: str | None = None,
    evaluate: Evaluate | None = None,
    refine_leaf: RefineLeaf | None = None,
    synthesize: Synthesize | None = None,
    persona: str | None = None,
    context: str | None = None,
    tools: Sequence[Tool] | Callable[[], Sequence[Tool]] = (),
    max_depth: int = 3,
    max_nodes: int = 256,
    rounds: int = 100,
    worker_budget: int = WORKER_BUDGET,
    window: int = 8,
    passes: int = 2,
    max_tokens: int = 4_096,
    planner_rules: bool = False,
    on_duplicate: OnDuplicate = "refuse",
) -> RecursionPlan:
    """Return what `recurse` with the same options would take: its tree, its calls, its worst cost.

    No model is asked and no key is needed. The corpus is read into a temporary place. Where rules and
    sizes decide, the tree is the one that would run, and its prompts are built and counted; where a
    model decides, the bounds are said. A judge's reply that cannot be used, and a call that fails,
    cost more.

    Raises:
        UsageError: an option, the corpus or the model is wrong.
    """
    options = RecurseOptions(
        corpus=corpus,
        mode=mode,
        count=count,
        retrieval=retrieval,
        contract=contract,
        evaluate=evaluate,
        refine_leaf=refine_leaf,
        synthesize=synthesize,
        persona=persona,
        context=context,
        tools=tools,
        max_depth=max_depth,
        max_nodes=max_nodes,
        rounds=rounds,
        worker_budget=worker_budget,
        window=window,
        passes=passes,
        max_tokens=max_tokens,
        planner_rules=planner_rules,
        on_duplicate=on_duplicate,
    )
    return await Planning(task, Wiring.of(ctx), options).plan()


plan_recursion_sync = sync_twin(plan_recursion)
"""`plan_recursion` for code that is not async; also in notebooks."""
