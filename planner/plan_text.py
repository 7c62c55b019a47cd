"""A plan out of a model's reply, or the typed account of why there is none. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from executors.errors import ValidationError
from executors.messages import ModelReply, ResponseSchema
from executors.replies import JsonValue, Unparsed, read_json
from planner.plan import Plan, PlanError, PlannerFault, Step

__all__ = ["PLAN_SCHEMA", "PlanText", "read_plan"]

PLAN_SCHEMA: Final = ResponseSchema(
    name="plan",
    schema={
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "action": {"type": "string"},
                        "depends_on": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["id", "action", "depends_on"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["steps"],
        "additionalProperties": False,
    },
)
"""What a reply has to fit, where a model can be held to a schema."""

_LISTS: Final = ("steps", "plan")
_WAITS: Final = ("depends_on", "dependsOn", "dependencies")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanText:
    """A plan as a model wrote it."""

    plan: Plan
    dropped: tuple[tuple[str, str], ...]
    """Dependencies on steps that are not there, as (step, what it was to wait for): left out."""


def read_plan(reply: ModelReply, *, count: int | None, most: int) -> PlanText:
    """Read a plan, whoever wrote it; nothing about it is believed unchecked.

    Args:
        count: steps that were asked for; None takes any number up to `most`.

    Raises:
        PlannerFault: the reply was cut or refused, holds no plan, or holds one that is none.
    """
    if not reply.whole:
        raise _cut(reply)
    found = read_json(reply.text)
    if isinstance(found, Unparsed):
        what = f"the reply holds no JSON: {found.reason} (character {found.position})"
        raise _fault(PlanError(what, kind="unparsable"))
    steps = [_step(number, item) for number, item in enumerate(_listed(found.value), 1)]
    _check_number(steps, count, most)
    known = {step.id for step in steps}
    dropped = tuple((s.id, name) for s in steps for name in s.depends_on if name not in known)
    try:
        plan = Plan(steps=tuple(_kept(step, known) for step in steps))
    except PlanError as error:
        raise _fault(error) from None
    return PlanText(plan=plan, dropped=dropped)


def _cut(reply: ModelReply) -> PlannerFault:
    word = repr(reply.stop_raw or reply.stop)
    if reply.stop == "refusal":
        return _fault(PlanError(f"the planner refused ({word})", kind="refused"))
    what = f"the planner's reply did not end cleanly ({word})"
    return _fault(PlanError(what, kind="truncated"))


def _check_number(steps: Sequence[Step], count: int | None, most: int) -> None:
    if not steps:
        raise _fault(PlanError("the plan has no steps", kind="empty"))
    if count is not None and len(steps) != count:
        what = f"the plan has {len(steps)} step(s), and {count} were asked for"
        raise _fault(PlanError(what, kind="wrong-count", steps=steps))
    if len(steps) > most:
        what = f"the plan has {len(steps)} steps, and {most} are the most"
        raise _fault(PlanError(what, kind="too-many", steps=steps))


def _fault(error: PlanError) -> PlannerFault:
    return PlannerFault(
        error.what,
        kind=error.kind,
        steps=error.steps,
        where="the planner's reply",
        hint="ask again, name another model, or let rules plan",
    )


def _listed(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        lists = [value[name] for name in _LISTS if name in value]
        if not lists and "id" in value and "action" in value:
            return [value]  # one line of JSON lines, or the one step that was asked for
        if len(lists) != 1:
            keys = ", ".join(map(repr, list(value)[:10])) or "none"
            raise _unreadable(f"the reply is an object with the keys {keys[:200]}, not a plan")
        value = lists[0]
    if not isinstance(value, list):
        raise _unreadable(f"the steps of the plan are a {type(value).__name__}, not a list")
    return value


def _unreadable(what: str) -> PlannerFault:
    return _fault(PlanError(what, kind="unparsable"))


def _step(number: int, item: JsonValue) -> Step:
    if not isinstance(item, dict):
        raise _unreadable(f"step {number} of the plan is a {type(item).__name__}, not an object")
    try:
        return Step(id=_id(item), action=cast("str", item.get("action")), depends_on=_waits(item))
    except ValidationError as error:
        raise _unreadable(f"step {number} of the plan: {error.what}") from None


def _id(item: Mapping[str, JsonValue]) -> str:
    """Return the id as text: models number steps as often as they name them."""
    return cast("str", _named(item.get("id")))


def _waits(item: Mapping[str, JsonValue]) -> tuple[str, ...]:
    given: JsonValue = next((item[name] for name in _WAITS if item.get(name) is not None), None)
    if given is None:
        return ()
    if not isinstance(given, list):
        return cast("tuple[str, ...]", given)  # refused by the step
    return tuple(cast("str", _named(name)) for name in given)


def _named(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value.strip()  # or "s1 " would be another step than "s1", and its wait be lost
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _kept(step: Step, known: set[str]) -> Step:
    waits = tuple(name for name in step.depends_on if name in known)
    return Step(id=step.id, action=step.action, depends_on=waits)
