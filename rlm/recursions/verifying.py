"""Who checks what a node came to: the caller's judge, a grader apart from the work, or code."""

from __future__ import annotations

from typing import Final

from corpus.results import Tally
from executors.errors import Halted
from rlm.checks.evaluator import DEFAULT_RUBRIC, Broken, EvaluationContext, Evaluator, run_evaluate
from rlm.checks.verdict import Failed, NeedsRevision, Satisfied, Verdict
from rlm.recursions.forest import Forest
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of
from rlm.recursions.spec import Spec

__all__ = ["verified"]

_COVERED: Final = "code counted every record, and the coverage proves it"


async def verified(forest: Forest, spec: Spec, result: NodeResult, *, critical: bool) -> NodeResult:
    """Return what a node came to with its verdict, where something has to look at it.

    Who gave a contract or an `evaluate` gets it checked. Without these a task that is critical has
    its result checked too, wherever that is a model's own text: a check in code that has looked at it
    satisfies that. A verdict that fails stands beside the result.
    """
    if isinstance(result, Short):
        return result
    options = spec.options
    asked = options.evaluate is not None or options.contract is not None
    if not asked and (not critical or isinstance(result.verdict, NeedsRevision | Failed)):
        return result
    if not asked and result.checked:
        if isinstance(result.value, Tally) and result.verdict is None:
            verdict = Satisfied(critique="", extra={"by": _COVERED})
            return Answered(value=result.value, verdict=verdict, checked=True)
        return result
    try:
        said = await _said(forest, spec, result.value)
    except Halted as halted:
        forest.halt(halted)
        blocked = Blocked(
            blocker=blocker_of(halted), detail=halted.what, node=spec.node, task=spec.task
        )
        return Short(best=result.value, blocked=blocked, missing=(spec.title,))
    if isinstance(said, Broken):
        blocked = Blocked(blocker=said.kind, detail=said.detail, node=spec.node, task=spec.task)
        return Short(best=result.value, blocked=blocked, missing=(spec.title,))
    return Answered(value=result.value, verdict=said, checked=True)


async def _said(forest: Forest, spec: Spec, value: object) -> Verdict | Broken:
    options = spec.options
    context = EvaluationContext(
        task=spec.task,
        contract=options.contract,
        context=options.context,
        node=spec.node,
        ordinal=spec.index,
    )
    if options.evaluate is not None:
        return await run_evaluate(options.evaluate, value, context)
    grader = forest.models.verifier
    if grader is None:
        detail = (
            "no model here can grade: a small one says yes and no at chance. Give a predicate as "
            "evaluate=, a sensor that checks in code, or a larger model as verifier"
        )
        return Broken(kind="verifier-unavailable", detail=detail)
    evaluator = Evaluator(rubric=DEFAULT_RUBRIC, calls=forest.calls, model=grader)
    return await evaluator.evaluate(value, context)
