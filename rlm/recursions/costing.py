"""What single calls of a recursion take: prompts built as they would be sent, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from executors.messages import CallRole, Message, ModelRequest
from executors.models.base import Model
from executors.models.prices import Price, PriceList, cost_of, price_list, worst_cost
from executors.tokens import estimate, estimate_request
from executors.usage import Usage
from planner.prompts import again_message, goal_message, planner_system
from rlm.checks.evaluator import DEFAULT_RUBRIC
from rlm.checks.exhibit import exhibit
from rlm.checks.prompts import critique_note, grader_messages, rejected_note
from rlm.forecasts.forecast import Range
from rlm.recursions.foreseen import NOTHING, RoleLoad, Span
from rlm.recursions.options import RecurseOptions
from rlm.recursions.prompts import MERGE, system, task_message
from rlm.recursions.reading import room_for_answer

__all__ = ["Costing", "Load"]

_DENSE: Final = "\U0001f600"
"""A character of as many tokens as any has."""
_PLAN_TOKENS: Final = 4_096
_STEP_TOKENS: Final = 64
_PLAN_SHOWN: Final = 8_000
_GRADE_TOKENS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls, tokens of their prompts and of their answers."""

    calls: Span = NOTHING
    input: Span = NOTHING
    output: Span = NOTHING

    def __add__(self, other: Load) -> Load:
        return Load(
            calls=self.calls + other.calls,
            input=self.input + other.input,
            output=self.output + other.output,
        )

    def __mul__(self, times: int) -> Load:
        return Load(calls=self.calls * times, input=self.input * times, output=self.output * times)

    @property
    def maybe(self) -> Load:
        """The same where it may not come to it."""
        return Load(
            calls=replace(self.calls, low=0),
            input=replace(self.input, low=0),
            output=replace(self.output, low=0),
        )


class Costing:
    """Prices the roles of a recursion.

    Args:
        prices: as the run has them.
    """

    def __init__(self, options: RecurseOptions, prices: Price | PriceList | None) -> None:
        self._options = options
        self._prices = price_list(prices)

    @property
    def tries(self) -> int:
        """Of a leaf."""
        how = self._options.refine_leaf
        return 1 if how is None else how.iterations

    def leaf(self, model: Model, task: str, *, depth: int, shown: str | None, tools: bool) -> Load:
        """Return what a leaf takes: one answer, or more where it has tools, or a sensor to please."""
        options = self._options
        prompt = self._prompt(task, depth=depth, shown=shown, spawns=False)
        answer = room_for_answer(model, options.max_tokens)
        calls = self.tries * (options.rounds if tools else 1)
        again = self._told_again() if self.tries > 1 else 0
        return Load(
            calls=Span(low=1, high=calls),
            input=Span(low=prompt, high=None if tools else self.tries * (prompt + again)),
            output=Span(low=1, high=calls * answer),
        )

    def spawning(
        self, model: Model, task: str, *, workers: int, nodes: int, shown: str | None
    ) -> Load:
        """Return what workers take that may hand parts on, with all that they may hand on.

        Args:
            workers: how many of them there are.
            nodes: that they may ask for, all together.
        """
        options = self._options
        prompt = self._prompt(task, depth=0, shown=shown, spawns=True)
        calls = (workers + nodes * self.tries) * options.rounds
        answer = room_for_answer(model, options.max_tokens)
        return Load(
            calls=Span(low=workers, high=calls),
            input=Span(low=workers * prompt, high=None),
            output=Span(low=workers, high=calls * answer),
        )

    def planner(self, model: Model, task: str, count: int) -> Load:
        """Return what a plan takes: one call, two where the first is no plan."""
        messages = (
            Message(role="system", content=planner_system(count)),
            Message(role="user", content=goal_message(task, self._options.context)),
        )
        prompt = _tokens(messages)
        again = estimate(_DENSE * _PLAN_SHOWN) + estimate(again_message(_DENSE * 500, count))
        answer = max(_PLAN_TOKENS, count * _STEP_TOKENS)
        return Load(
            calls=Span(low=1, high=2),
            input=Span(low=prompt, high=2 * prompt + again),
            output=Span(low=1, high=2 * answer),
        )

    def grade(self, model: Model, task: str) -> Load:
        """Return what one verdict takes."""
        window = model.info.context_window
        answer = _GRADE_TOKENS if window is None else min(_GRADE_TOKENS, window // 4)
        least, most = (self._graded(task, result) for result in ("x", _DENSE * 100_000))
        return Load(
            calls=Span(low=1, high=1),
            input=Span(low=least, high=most),
            output=Span(low=1, high=answer),
        )

    def merge(self, model: Model, task: str, parts: int) -> Load:
        """Return what it takes to merge so many answers."""
        answer = room_for_answer(model, self._options.max_tokens)
        prompt = _tokens(
            (Message(role="system", content=MERGE), Message(role="user", content=task))
        )
        most = prompt + parts * (answer * 2 + estimate(task) + 64)
        return Load(
            calls=Span(low=1, high=1),
            input=Span(low=prompt, high=most),
            output=Span(low=1, high=answer),
        )

    def priced(self, role: CallRole, model: Model, load: Load) -> RoleLoad:
        """Return a load with what it costs."""
        price = self._prices.price(model.info)
        return RoleLoad(
            role=role,
            model=model.info.spec,
            calls=load.calls,
            input=load.input,
            output=load.output,
            usd=_usd(load, price),
            open_usd=load.input.high is None or load.output.high is None,
        )

    def _prompt(self, task: str, *, depth: int, shown: str | None, spawns: bool) -> int:
        options = self._options
        told = system(
            spawns=spawns, depth=depth, max_depth=options.max_depth, persona=options.persona
        )
        asked = task_message(task, context=options.context, shown=shown)
        return _tokens((Message(role="system", content=told), Message(role="user", content=asked)))

    def _told_again(self) -> int:
        """Return the most that a try is told of those before it."""
        dense = _DENSE * 20_000
        earlier = [(dense, dense)] * (self.tries - 1)
        return estimate(max(critique_note(dense), rejected_note(earlier), key=estimate))

    def _graded(self, task: str, result: str) -> int:
        options = self._options
        messages = grader_messages(
            criteria=options.contract or DEFAULT_RUBRIC,
            task=task,
            result=exhibit(result),
            context=options.context,
        )
        return _tokens(messages)


def _tokens(messages: Sequence[Message]) -> int:
    return estimate_request(ModelRequest(messages=tuple(messages), max_tokens=1))


def _usd(load: Load, price: Price | None) -> Range[Decimal] | None:
    if price is None:
        return None
    least = cost_of(Usage(input=load.input.low, output=load.output.low), price)
    assert least is not None
    input_, output = load.input.high, load.output.high
    known = input_ is not None and output is not None
    return Range(low=least, high=worst_cost(input_ or 0, output or 0, price) if known else least)
