"""A worker: one model with its tools, in a context of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from executors.errors import Halted
from executors.loop.loop import work
from executors.loop.worked import Ended, EndedBy, Worked
from executors.loop.worker import Guards, Worker
from executors.messages import Message
from executors.tools.base import Tool
from rlm.outcome import Blocker
from rlm.recursions.forest import Forest
from rlm.recursions.prompts import system, task_message
from rlm.recursions.results import Blocked, blocker_of
from rlm.recursions.spec import Spec

__all__ = ["blocked_of", "run_worker"]

_BLOCKERS: Final[dict[EndedBy, Blocker]] = {
    "broken-tool": "broken-tool",
    "denied": "governance-deny",
    "stuck": "stuck-tool",
    "truncated": "truncated",
    "refused": "refused",
    "context-exceeded": "context-exceeded",
    "empty": "empty-answer",
    "malformed": "malformed-calls",
    "rounds": "round-limit",
    "halted": "halted",
    "failed": "model-failed",
    "stopped": "interrupted",
}


async def run_worker(
    forest: Forest,
    spec: Spec,
    *,
    tools: Sequence[Tool] | Callable[[], Sequence[Tool]],
    spawns: bool,
    shown: str | None = None,
    more: str = "",
    attempt: int = 0,
    temperature: float | None = None,
) -> Worked:
    """Let one worker do a task to the end, whatever end that is.

    Args:
        shown: records for it to read, fenced.
        more: what a former attempt got wrong.
        attempt: of the leaf's refinement, from 0: another sample of the same task.
    """
    options = spec.options
    text = task_message(spec.task, context=options.context, shown=shown) + more
    worker = Worker(
        calls=forest.calls,
        model=forest.models.worker,
        node=spec.node,
        depth=spec.depth,
        ordinal=spec.index * 1_000 + attempt,
        system=system(
            spawns=spawns,
            depth=spec.depth,
            max_depth=options.max_depth,
            persona=options.persona,
        ),
        tools=tools,
        policy=forest.wiring.policy,
        ask=forest.wiring.ask,
        governor=forest.governor,
        context=forest.wiring.data,
        temperature=options.temperature if temperature is None else temperature,
        max_tokens=forest.room_for_answer(options.max_tokens),
        guards=Guards(rounds=options.rounds),
        on_text=None
        if forest.wiring.on_text is None
        else partial(forest.wiring.on_text, spec.node),
        stop=forest.stop,
    )
    worked = await work(worker, (Message(role="user", content=text),))
    forest.called[spec.node].update(worked.log.tool_calls)
    if isinstance(worked, Ended) and isinstance(worked.error, Halted):
        forest.halt(worked.error)
    return worked


def blocked_of(forest: Forest, spec: Spec, ended: Ended) -> Blocked:
    """Return what ended a worker early, as its node says it."""
    match ended.reason:
        case "halted" | "stopped":
            halted = ended.error if isinstance(ended.error, Halted) else forest.halted
            blocker = "interrupted" if halted is None else blocker_of(halted)
            detail = ended.detail if halted is None else halted.what
        case "failed" if ended.error is not None:
            blocker, detail = "model-failed", ended.error.what
        case "truncated":
            blocker, detail = "truncated", f"the answer was cut at its limit ({ended.detail})"
        case reason:
            blocker, detail = _BLOCKERS[reason], ended.detail
    return Blocked(blocker=blocker, detail=detail, node=spec.node, task=spec.task)
