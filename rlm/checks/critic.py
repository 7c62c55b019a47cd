"""A grader with tools: a worker that tries a result out before it judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from executors.calls.calls import Calls
from executors.errors import Halted
from executors.loop import Ended, Finished, Guards, Policy, Tools, Worker, work
from executors.messages import Message
from executors.models.base import Model, require_model
from executors.replies import JsonValue
from rlm.checks.arbiters import Broken, require_deadline
from rlm.checks.evaluator import DEFAULT_RUBRIC, Agentic, EvaluationContext
from rlm.lone_calls import governed, lone_calls

__all__ = ["critic"]

# What a node's tools did is filed under its ordinal: a critic of the node is never its worker.
_APART: Final = 1_000_000
_DEADLINE: Final = 1_800.0


def critic(
    model: Model,
    tools: Tools,
    *,
    rubric: str = DEFAULT_RUBRIC,
    calls: Calls | None = None,
    policy: Policy | None = None,
    data: Mapping[str, JsonValue] | None = None,
    guards: Guards | None = None,
    max_tokens: int = 4_096,
    deadline: float = _DEADLINE,
) -> Agentic:
    """Return a criterion for an Evaluator: a worker that has tools to try the result out with.

    Its calls are a verifier's. It sees what a grader sees: task, criteria and result, as data.

    Args:
        calls: the pipeline to ask through; where there is none that of the run, if that is governed
            by a gate, and else one of its own.
        policy: decides about each call of a tool, before the gate of a governed run does; None allows
            them all.
        data: the caller's own, handed to the policy.
        deadline: seconds for all of its rounds.

    Raises:
        ValidationError: what stands among the tools is none, `model` is none, or `deadline` no time.
    """
    require_model(model, where="rlm.critic")
    require_deadline(deadline)
    lone = lone_calls()

    async def tries(messages: tuple[Message, ...], context: EvaluationContext) -> str | Broken:
        system, user = messages
        run = governed()
        worker = Worker(
            calls=calls or (lone if run is None else run.calls),
            model=model,
            node=context.node,
            depth=0,
            role="verifier",
            ordinal=_APART + context.ordinal,
            system=system.content,
            tools=tools,
            policy=policy,
            governor=None if run is None else run.governor,
            context=data or {},
            temperature=0.0,
            max_tokens=max_tokens,
            guards=guards or Guards(),
        )
        match await work(worker, (user,)):
            case Finished(text=text):
                return text
            case Ended(error=Halted() as halted):
                raise halted
            case Ended(reason=reason, detail=detail):
                why = f"the critic came to no verdict: {reason} ({detail})"
                return Broken(kind="verifier-unavailable", detail=why[:200])

    return Agentic(work=tries, rubric=rubric, deadline=deadline)
