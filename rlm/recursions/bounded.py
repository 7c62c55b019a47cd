"""The boundary of a node: between its two events, and where what it raises becomes a value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from executors.errors import Halted, ModelError, RlmError
from executors.secrets import scrub
from planner.complexity import Complexity
from planner.routes import Route
from rlm.checks.verdict import status_of
from rlm.events import TaskAssessed, TaskEnded
from rlm.outcome import Blocker
from rlm.recursions.forest import Forest
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of, shown
from rlm.recursions.spec import Spec

__all__ = ["bounded", "tell_assessed", "tell_ended"]


async def bounded(
    forest: Forest, spec: Spec, work: Callable[[], Awaitable[NodeResult]]
) -> NodeResult:
    """Do the work of a node between its two events; what it raises becomes a value here.

    A halt stops the whole tree. Cancellation passes through.
    """
    with forest.log.node(spec.node, spec.title):
        forest.tree.update(spec.node, "running")
        try:
            result = await work()
        except Halted as halted:
            forest.halt(halted)
            result = _stopped(spec, blocker_of(halted), halted.what)
        except ModelError as error:
            result = _stopped(spec, "model-failed", error.what)
        except RlmError as error:
            if error.fault == "yours":
                raise
            result = _stopped(spec, "failed", error.what)
        tell_ended(forest, spec, result)
        return result


def _stopped(spec: Spec, blocker: Blocker, detail: str) -> Short:
    blocked = Blocked(blocker=blocker, detail=detail, node=spec.node, task=spec.task)
    return Short(best=None, blocked=blocked, missing=(spec.title,))


def tell_ended(forest: Forest, spec: Spec, result: NodeResult) -> None:
    """Tell what a node came to."""
    blocked = result.blocked if isinstance(result, Short) else None
    verdict = result.verdict if isinstance(result, Answered) else None
    forest.tree.update(spec.node, "done" if blocked is None else "incomplete")
    if (value := _value(result)) is not None:
        forest.values[spec.node] = value
    forest.log.emit(
        TaskEnded(
            node=spec.node,
            at=forest.wiring.clock.now(),
            verdict=None if verdict is None else status_of(verdict),
            critique="" if verdict is None else scrub(verdict.critique[:500]),
            blocker=None if blocked is None else blocked.blocker,
            detail="" if blocked is None else scrub(blocked.detail[:500]),
            blocked_at=None if blocked is None else blocked.node,
            shown="" if value is None else scrub(shown(value)[:200]),
        )
    )


def _value(result: NodeResult) -> object | None:
    return result.value if isinstance(result, Answered) else result.best


def tell_assessed(
    forest: Forest, spec: Spec, complexity: Complexity, family: str, route: Route
) -> None:
    """Tell what the task of a node looks like, and which way it goes."""
    forest.log.emit(
        TaskAssessed(
            node=spec.node,
            at=forest.wiring.clock.now(),
            task=scrub(spec.task[:2_000]),
            depth=spec.depth,
            level=complexity.level,
            score=complexity.score,
            family=family,
            retrieval=route.retrieval,
            upgraded=route.upgraded,
            why=route.reason,
        )
    )
