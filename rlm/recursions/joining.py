"""The answers of children put together, as the caller asked for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Final, cast

from executors.characters import sound
from executors.errors import Halted, ModelError
from executors.messages import Message, ModelRequest
from executors.secrets import scrub
from rlm.checks.arbiters import Broken, run_arbiter
from rlm.checks.verdict import Failed, NeedsRevision, Unusable, Verdict, shape_of
from rlm.recursions.forest import Forest
from rlm.recursions.prompts import MERGE, child_note
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of, shown
from rlm.recursions.spec import Spec
from rlm.synthesis import SynthesisInput, Synthesize, concat

__all__ = ["join", "partial_of", "turned_down"]

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
            return _halted(forest, spec, halted)
        if isinstance(found, Broken):
            return Blocked(
                blocker="broken-synthesis", detail=found.detail, node=spec.node, task=spec.task
            )
        return found[0]
    if how == "merge":
        return await _merged(forest, spec, children, values)
    return concat(values, shown)


def partial_of(children: Sequence[tuple[Spec, NodeResult]]) -> object | None:
    """Return what children have, joined; None where they have nothing."""
    values = [_value(result) for _, result in children]
    return concat(values, shown) if any(value is not None for value in values) else None


def turned_down(children: Sequence[tuple[Spec, NodeResult]]) -> Verdict | None:
    """Return what the checks of parts say of the whole; None where none of them was turned down.

    A whole is no better than its parts: what one of them did not pass, the whole has not passed.
    """
    down = [
        (child, result.verdict)
        for child, result in children
        if isinstance(result, Answered) and isinstance(result.verdict, NeedsRevision | Failed)
    ]
    if not down:
        return None
    child, first = down[0]
    said = f"{len(down):,} of {len(children):,} part(s) did not pass their check; {child.node}: "
    kind = Failed if any(isinstance(verdict, Failed) for _, verdict in down) else NeedsRevision
    return kind(critique=said + (scrub(first.critique) or child.title), extra={"by": "the parts"})


def _halted(forest: Forest, spec: Spec, halted: Halted) -> Blocked:
    forest.halt(halted)
    return Blocked(blocker=blocker_of(halted), detail=halted.what, node=spec.node, task=spec.task)


def _as_it_is(value: object) -> tuple[object] | Unusable:
    """Keep a value in a box, so that none of them is mistaken for a fault.

    None is what a function gives that forgot to return, and a generator what it forgot to run.
    """
    if value is None or isinstance(value, Generator | AsyncGenerator):
        return Unusable(what=f"it is {shape_of(cast('object', value))}")
    return (value,)


def _value(result: NodeResult) -> object | None:
    return result.value if isinstance(result, Answered) else result.best


async def _merged(
    forest: Forest,
    spec: Spec,
    children: Sequence[tuple[Spec, NodeResult]],
    values: Sequence[object],
) -> object | Blocked:
    """Let a model merge the parts; what it cannot merge is joined."""
    if forest.halted is not None:
        return _halted(forest, spec, forest.halted)
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
        return _halted(forest, spec, halted)
    except ModelError as error:
        tell(spec.node, "merge", f"the parts were joined, not merged: {error.what}")
        return concat(values, shown)
    if not answer.reply.whole or not answer.reply.text.strip():
        tell(spec.node, "merge", "the parts were joined, not merged: no whole answer")
        return concat(values, shown)
    return sound(answer.reply.text)
