"""Whether a result is what was asked for, judged apart from whoever made it.

One of three judges: a predicate of the caller's, a grader that reads the result, or a worker that
tries it out. A grader sees the task, the criteria and the result, as data, and never how the result
came about: whoever has read an argument tends to believe it.

A judge that is at fault gives `Broken`, which is neither a pass nor a fail. The result stands as it
is then, unverified.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from executors.calls.calls import Calls
from executors.errors import ModelError, ValidationError
from executors.ids import NodeId
from executors.messages import Message, ModelReply, ModelRequest
from executors.models.base import Model, require_model
from planner.results import is_count
from rlm.checks.arbiters import DEADLINE, Broken, describe_thrown, require_deadline, run_arbiter
from rlm.checks.exhibit import CHARACTERS, exhibit
from rlm.checks.grades import read_grade
from rlm.checks.prompts import DEFAULT_RUBRIC, GRADE, grader_messages
from rlm.checks.verdict import (
    NeedsRevision,
    Satisfied,
    Unusable,
    Verdict,
    read_boolean,
    read_verdict,
    shape_of,
)
from rlm.lone_calls import governed, lone_calls

__all__ = [
    "DEFAULT_RUBRIC",
    "Agentic",
    "Broken",
    "Evaluate",
    "EvaluationContext",
    "Evaluator",
    "run_evaluate",
]

_ROOT: Final = NodeId("root")
_TOKENS: Final = 4_096
_UNCLEAN: Final = {
    "max_tokens": "its reply was cut at the bound of its tokens",
    "refusal": "it refused",
    "context_exceeded": "what it has to read is longer than its window",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """What a judge may know besides the result."""

    task: str
    contract: str | None = None
    """The definition of done, which is judged against where there is one."""
    context: str | None = None
    """Facts of the caller's that the author knew, too."""
    node: NodeId = _ROOT
    ordinal: int = 0
    """Which evaluation of this node it is: another one is another sample."""


Evaluate = Callable[[object, EvaluationContext], object | Awaitable[object]]
"""The caller's own judge, asynchronous or plain: a verdict of ours, a mapping, or an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agentic:
    """A worker that tries a result out, with tools of its own."""

    work: Callable[[tuple[Message, ...], EvaluationContext], Awaitable[str | Broken]]
    """Is given the two messages of a grader and returns what it says in the end."""
    rubric: str = DEFAULT_RUBRIC
    deadline: float = 1_800.0
    """Seconds, for all of its rounds."""


class Evaluator:
    """Judges results by one criterion.

    Args:
        predicate: says True or False of a result; a plain one runs in a thread.
        rubric: what a grader judges against where there is no contract.
        agentic: the same with a worker that tries the result out.
        model: the grader.
        calls: the pipeline that it is asked through; where there is none that of the run, if that is
            governed by a gate, and else one of its own, with the bounds of a run.
        deadline: seconds that a predicate may take.
        max_tokens: of the grader's reply, its thinking included.

    Raises:
        ValidationError: not exactly one criterion, a rubric without a model, or a bound that is none.
    """

    def __init__(
        self,
        *,
        predicate: Callable[[object], object] | None = None,
        rubric: str | None = None,
        agentic: Agentic | None = None,
        calls: Calls | None = None,
        model: Model | None = None,
        deadline: float = DEADLINE,
        max_tokens: int = _TOKENS,
    ) -> None:
        _check_one(predicate=predicate, rubric=rubric, agentic=agentic)
        if rubric is not None and model is None:
            raise ValidationError(
                "a rubric is judged by a model, and there is none",
                where="rlm.Evaluator",
                hint="give model=",
            )
        if model is not None:
            require_model(model, where="rlm.Evaluator")
        require_deadline(deadline)
        if not is_count(max_tokens):
            raise ValidationError(
                f"max_tokens={max_tokens!r}", where="rlm.Evaluator", hint="give 1 or more"
            )
        self._predicate = predicate
        self._rubric = rubric
        self._agentic = agentic
        self._given = calls
        self._lone = lone_calls()
        self._model = model
        self._deadline = deadline
        self._max_tokens = max_tokens

    async def evaluate(self, result: object, context: EvaluationContext) -> Verdict | Broken:
        """Return what the judge says of a result, or how it broke.

        Raises:
            Halted: a bound of the run was reached, or the judge says that the run stops.
        """
        if self._predicate is not None:
            return await self._by_predicate(self._predicate, result, context)
        if self._agentic is not None:
            return await _by_agent(self._agentic, result, context)
        assert self._rubric is not None
        assert self._model is not None
        run = governed()
        calls = self._given or (self._lone if run is None else run.calls)
        return await self._by_grader(calls, self._model, self._rubric, result, context)

    async def __call__(self, result: object, context: EvaluationContext) -> Verdict | Broken:
        """Judge, so that an Evaluator can stand where a function of the caller's does."""
        return await self.evaluate(result, context)

    async def _by_predicate(
        self, predicate: Callable[[object], object], result: object, context: EvaluationContext
    ) -> Verdict | Broken:
        said = await run_arbiter(
            predicate, result, read=read_boolean, kind="broken-verifier", deadline=self._deadline
        )
        if isinstance(said, Broken):
            return said
        return Satisfied() if said else NeedsRevision(critique=context.contract or "")

    async def _by_grader(
        self, calls: Calls, model: Model, rubric: str, result: object, context: EvaluationContext
    ) -> Verdict | Broken:
        request = self._request(model, rubric, result, context)
        try:
            answer = await calls.ask(
                model, request, role="verifier", node=context.node, ordinal=context.ordinal
            )
        except ModelError as error:
            return _unavailable(describe_thrown(error))
        verdict = _read(answer.reply)
        if isinstance(verdict, Broken):
            calls.void(answer, verdict.detail)  # another session may get a better one
            return verdict
        dropped = request.temperature is not None and answer.reply.temperature is None
        return replace(verdict, temperature_dropped=dropped)

    def _request(
        self, model: Model, rubric: str, result: object, context: EvaluationContext
    ) -> ModelRequest:
        window = model.info.context_window
        return ModelRequest(
            messages=_messages(rubric, result, context, window=window),
            max_tokens=self._max_tokens if window is None else min(self._max_tokens, window // 4),
            temperature=0.0,
            schema=GRADE if model.info.structured_output else None,
        )


async def run_evaluate(
    evaluate: Evaluate, result: object, context: EvaluationContext, *, deadline: float = DEADLINE
) -> Verdict | Broken:
    """Return what the caller's own judge says of a result, or how it broke.

    Args:
        deadline: seconds; an Evaluator keeps to its own.

    Raises:
        Halted: it says that the run stops.
    """
    if isinstance(evaluate, Evaluator):
        return await evaluate.evaluate(result, context)
    return await run_arbiter(
        evaluate, result, context, read=read_verdict, kind="broken-verifier", deadline=deadline
    )


async def _by_agent(
    agentic: Agentic, result: object, context: EvaluationContext
) -> Verdict | Broken:
    return await run_arbiter(
        agentic.work,
        _messages(agentic.rubric, result, context, window=None),
        context,
        read=_read_agent,
        kind="verifier-unavailable",
        deadline=agentic.deadline,
    )


def _read_agent(said: object) -> Verdict | Broken | Unusable:
    if isinstance(said, Broken):
        return said
    return read_grade(said) if isinstance(said, str) else Unusable(what=f"it is {shape_of(said)}")


def _messages(
    rubric: str, result: object, context: EvaluationContext, *, window: int | None
) -> tuple[Message, Message]:
    # A character of a token's worth at least: half of a small window for the result, at most.
    most = CHARACTERS if window is None else max(1_000, min(CHARACTERS, window))
    return grader_messages(
        criteria=context.contract or rubric,
        task=context.task,
        result=exhibit(result, most=most),
        context=context.context,
    )


def _read(reply: ModelReply) -> Verdict | Broken:
    if not reply.whole:
        why = _UNCLEAN.get(reply.stop, f"its reply did not end cleanly ({reply.stop_raw!r})")
        return _unavailable(why)
    verdict = read_grade(reply.text)
    return _unavailable(verdict.what) if isinstance(verdict, Unusable) else verdict


def _unavailable(why: str) -> Broken:
    return Broken(kind="verifier-unavailable", detail=f"the grader gave no verdict: {why}"[:200])


def _check_one(**criteria: object) -> None:
    given = [name for name, value in criteria.items() if value is not None]
    if len(given) != 1:
        named = " and ".join(given) or "none"
        raise ValidationError(
            f"a result is judged by exactly one criterion, and {named} is given",
            where="rlm.Evaluator",
            hint=f"give one of {', '.join(criteria)}",
        )
    rubric = criteria["rubric"]
    if not isinstance(rubric, str | None) or (rubric is not None and not rubric.strip()):
        raise ValidationError(
            f"rubric={criteria['rubric']!r}"[:200], where="rlm.Evaluator", hint="give text"
        )
    if criteria["predicate"] is not None and not callable(criteria["predicate"]):
        raise ValidationError(
            f"predicate={criteria['predicate']!r}"[:200],
            where="rlm.Evaluator",
            hint="give a function",
        )
    if not isinstance(criteria["agentic"], Agentic | None):
        raise ValidationError(
            f"agentic={criteria['agentic']!r}"[:200],
            where="rlm.Evaluator",
            hint="give Agentic(work=…)",
        )
