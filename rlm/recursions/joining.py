"""The answers of children put together, as the caller asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from executors.errors import Halted, ModelError
from executors.messages import Message, ModelRequest
from rlm.arbiters import Broken, run_arbiter
from rlm.recursions.forest import Forest
from rlm.recursions.prompts import MERGE, child_note
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, shown
from rlm.recursions.spec import Spec
from rlm.synthesis import SynthesisInput, Synthesize, concat

__all__ = ["join", "partial_of"]

_TEMPERATURE: Final = 0.0


async def join(
    forest: Forest,
    spec: Spec,
    children: Sequence[tuple[Spec, NodeResult]],
    *,
    how: Synthesize,
    text: str = "",
) -> object | Blocked:
    """Return the one value of several, or what broke on the way.

    Args:
        text: what the parent itself said last.
    """
    values = [_value(result) for _, result in children]
    if callable(how):
        given = SynthesisInput(
            task=spec.task,
            text=text,
            results=values,
            parts=[child.task for child, _ in children],
            missing=[n for n, (_, result) in enumerate(children) if isinstance(result, Short)],
            node=spec.node,
            data=forest.wiring.data,
            records=[child.ids for child, _ in children],
        )
        try:
            found = await run_arbiter(how, given, read=_as_it_is, kind="broken-synthesis")
        except Halted as halted:
            forest.halt(halted)
            return concat(values, shown)
        if isinstance(found, Broken):
            return Blocked(
                blocker="broken-synthesis", detail=found.detail, node=spec.node, task=spec.task
            )
        return found[0]
    if how == "merge" and forest.halted is None:
        return await _merged(forest, spec, children, values)
    return concat(values, shown)


def partial_of(children: Sequence[tuple[Spec, NodeResult]]) -> object | None:
    """Return what children have, joined; None where they have nothing."""
    values = [_value(result) for _, result in children]
    return concat(values, shown) if any(value is not None for value in values) else None


def _as_it_is(value: object) -> tuple[object]:
    """Keep a value in a box, so that none of them is mistaken for a fault."""
    return (value,)


def _value(result: NodeResult) -> object | None:
    return result.value if isinstance(result, Answered) else result.best


async def _merged(
    forest: Forest,
    spec: Spec,
    children: Sequence[tuple[Spec, NodeResult]],
    values: Sequence[object],
) -> object:
    """Let a model merge the parts; what it cannot merge is joined."""
    parts = [
        child_note(child.task, "" if value is None else shown(value))
        for (child, _), value in zip(children, values, strict=True)
    ]
    contract = spec.options.contract
    asked = f"The task: {spec.task}" + (f"\nDone means: {contract}" if contract else "")
    request = ModelRequest(
        messages=(
            Message(role="system", content=MERGE),
            Message(role="user", content="\n\n".join((asked, *parts))),
        ),
        max_tokens=forest.room_for_answer(spec.options.max_tokens),
        temperature=_TEMPERATURE,
    )
    tell = forest.log.warn
    try:
        answer = await forest.calls.ask(
            forest.models.merger, request, role="merge", node=spec.node, ordinal=spec.index
        )
    except Halted as halted:
        forest.halt(halted)
        return concat(values, shown)
    except ModelError as error:
        tell(spec.node, "merge", f"the parts were joined, not merged: {error.what}")
        return concat(values, shown)
    if answer.reply.stop != "end" or not answer.reply.text.strip():
        tell(spec.node, "merge", "the parts were joined, not merged: no whole answer")
        return concat(values, shown)
    return answer.reply.text
