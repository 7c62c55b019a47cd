"""A planner that asks a model for steps, and believes none of it unchecked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal

from executors.calls.calls import Answer, Calls, call_key
from executors.errors import ValidationError
from executors.events import Warned
from executors.fences import clipped
from executors.ids import ContentKey, NodeId
from executors.journal.records import Paid
from executors.messages import Message, ModelReply, ModelRequest
from executors.models.base import Model
from planner.plan import Plan, PlannerFault
from planner.plan_cache import PlanCache
from planner.plan_text import PLAN_SCHEMA, PlanText, read_plan
from planner.prompts import again_message, goal_message, planner_system
from planner.results import is_count

__all__ = ["MOST_STEPS", "ModelPlanner", "Planned"]

MOST_STEPS: Final = 100
"""Steps of a plan that names no count: a bound on what a model may make of a goal."""
_FINAL: Final = frozenset({"refused", "truncated"})  # asked again, it would go the same way
_SHOWN: Final = 8_000  # characters of an unusable reply that its model is shown again


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan and where it comes from."""

    plan: Plan
    source: Literal["model", "cache"]
    asked: int
    """Calls that it took, those included that the journal answered: 2 after an unusable reply."""
    dropped: tuple[tuple[str, str], ...] = ()
    """Dependencies on steps that are not there, as (step, what it was to wait for): left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlanner:
    """Splits goals into steps by a model: at temperature 0, held to a schema where that can be.

    A reply that is no plan, or has not the steps that were asked for, is asked for once more with
    its fault named. Where a cache is given, the journal is looked at before it, and what it answers
    is written into the journal: a run that is resumed gets its own plan again. Replies that came to
    nothing are taken back: another session asks anew.
    """

    calls: Calls
    model: Model
    cache: PlanCache | None = None
    max_tokens: int = 4_096
    most: int = MOST_STEPS
    """Steps that a plan may have where no count is named."""
    again: int = 1
    """How often an unusable reply is asked for once more."""

    async def plan(
        self,
        goal: str,
        *,
        node: NodeId,
        info: str | None = None,
        count: int | None = None,
        ordinal: int = 0,
    ) -> Planned:
        """Return a plan for a goal.

        Args:
            goal: what is to be done; shown as data.
            node: who plans.
            info: what is known, such as a working context; shown as data.
            count: independent steps wanted, exactly; None lets the model choose, up to `most`.
            ordinal: which sample it is; another one may get another plan.

        Raises:
            PlannerFault: the model gave no plan that can be carried out, also when asked again.
            ModelError: the call failed.
            Halted: a bound left no room.
            ValidationError: a blank goal, what is known is no text, or a count that is no whole number
                from 1 on.
        """
        _check(goal, info, count)
        request = self._request(goal, info, count)
        key = call_key(self.model.info, request, ordinal)
        cached = None if self.cache is None else await self._cached(key, count, node)
        return cached or await self._asked(request, key, count, node=node, ordinal=ordinal)

    def _request(self, goal: str, info: str | None, count: int | None) -> ModelRequest:
        return ModelRequest(
            messages=(
                Message(role="system", content=planner_system(count)),
                Message(role="user", content=goal_message(goal, info)),
            ),
            max_tokens=self.max_tokens,
            temperature=0.0,
            schema=PLAN_SCHEMA if self.model.info.structured_output else None,
        )

    async def _asked(
        self,
        request: ModelRequest,
        key: ContentKey,
        count: int | None,
        *,
        node: NodeId,
        ordinal: int,
    ) -> Planned:
        """Ask, and once more where the reply is of no use."""
        answers: list[Answer] = []
        while True:
            answer = await self.calls.ask(
                self.model, request, role="planner", node=node, ordinal=ordinal
            )
            answers.append(answer)
            try:
                read = read_plan(answer.reply, count=count, most=self.most)
            except PlannerFault as fault:
                if len(answers) > self.again or fault.kind in _FINAL:
                    for useless in answers:  # another session may get a better one
                        self.calls.void(useless, fault.what)
                    raise
                request = _again(request, answer.reply, fault, count)
                continue
            if self.cache is not None:
                self.cache.keep(key, answer.reply)
            return self._planned(read, node, source="model", asked=len(answers))

    async def _cached(self, key: ContentKey, count: int | None, node: NodeId) -> Planned | None:
        """Return the plan that the cache holds, unless the journal knows better."""
        assert self.cache is not None
        reply, journal = self.cache.find(key), self.calls.journal
        if reply is None or journal.find(key) is not None:
            return None
        read = read_plan(reply, count=count, most=self.most)
        await journal.answer(key, reply, Paid(tokens=0, usd=Decimal(0), attempts=0))
        return self._planned(read, node, source="cache", asked=0)

    def _planned(
        self, read: PlanText, node: NodeId, *, source: Literal["model", "cache"], asked: int
    ) -> Planned:
        if read.dropped:
            named = ", ".join(f"{step!r} for {gone!r}" for step, gone in read.dropped[:10])
            self.calls.emit(
                Warned(
                    node=node,
                    at=self.calls.clock.now(),
                    code="plan-dependency",
                    message=f"steps do not wait for steps that the plan does not have: {named}",
                    count=len(read.dropped),
                )
            )
        return Planned(plan=read.plan, source=source, asked=asked, dropped=read.dropped)


def _again(
    request: ModelRequest, reply: ModelReply, fault: PlannerFault, count: int | None
) -> ModelRequest:
    shown = clipped(reply.text, _SHOWN) or "(nothing)"
    return replace(
        request,
        messages=(
            *request.messages,
            Message(role="assistant", content=shown),
            Message(role="user", content=again_message(fault.what, count)),
        ),
    )


def _check(goal: object, info: object, count: object) -> None:
    if not isinstance(goal, str) or not goal.strip():
        raise ValidationError(f"goal={goal!r} is no text"[:200], hint="say what is to be done")
    if not isinstance(info, str | None):
        raise ValidationError(f"info={info!r} is no text"[:200], hint="give text, or None")
    if count is not None and not is_count(count):
        raise ValidationError(
            f"count={count!r}",
            hint="give a whole number from 1 on, or None for as many as it takes",
        )
