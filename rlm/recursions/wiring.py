"""Who answers, what bounds them, and who hears of it: the same for the whole tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from executors.clock import Clock, SystemClock
from executors.coroutines import is_async
from executors.endpoint.buckets import Limits
from executors.endpoint.endpoint import RetryPolicy
from executors.engine.stop import Stop
from executors.errors import ValidationError
from executors.events import Event
from executors.gate.allowance import Caps
from executors.ids import NodeId
from executors.loop.worker import AskPerson, Policy
from executors.models.base import Model
from executors.models.prices import Price, PriceList
from executors.replies import JsonValue
from planner.plan_cache import PlanCache
from rlm.options.gates import GateLike, Human, require_gate
from rlm.options.records import holds_secret, is_recordable, record_of, value_of
from rlm.options.top_up import BudgetChange, BudgetLike

__all__ = ["ROLES", "Wiring"]

ROLES: Final = ("model", "planner", "judge", "verifier", "merger")
"""Fields that name a model."""
_RECORDED: Final = (*ROLES, "key_env", "concurrency", "caps", "prices", "limits", "data")
_OBJECTS: Final = ("policy", "ask")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Who answers, what bounds them, and who hears of it.

    Args:
        model: the worker, a spec or a Model; None takes the weights on this machine.
        planner, judge, verifier, merger: other models for these roles; None takes `model`.
        key_env: name of the environment variable that holds the key of a custom URL.
        gate: what every call of a model and of a tool in the tree has to pass, and which keeps the
            books: a Gate, a configuration, or the file of one. It is kept in the run.
        human: asked where the gate wants a person; without one its asks are denials.
        top_up: what a run that goes on may have in all, as "usd=20,calls=5000": your word, which raises
            its bounds and those of its gate, and is written down.
        policy: decides about each call of a tool and each checkpoint before a wave; None allows.
        ask: asks a person where the policy says so; without one an ask is a deny.
        data: the caller's own, handed to the policy; never a secret, since it may be written down.
        on_event: called with each event on the loop's thread; must not block.
        on_text: hears what each worker writes, as it comes, with its node.
        stop: ask it to end, from any thread, so that what is in flight is answered first.
        caps: bounds of the run; finite by default.
        concurrency: nodes at work, and calls in flight, in the whole tree.
        plan_cache: plans of earlier runs, which cost nothing while they are fresh.

    Raises:
        ValidationError: a value of the wrong kind.
    """

    model: str | Model | None = None
    planner: str | Model | None = None
    judge: str | Model | None = None
    verifier: str | Model | None = None
    merger: str | Model | None = None
    key_env: str | None = None
    gate: GateLike | None = None
    human: Human | None = None
    top_up: BudgetChange | BudgetLike | None = None
    policy: Policy | None = None
    ask: AskPerson | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    on_event: Callable[[Event], None] | None = None
    on_text: Callable[[NodeId, str], None] | None = None
    stop: Stop | None = None
    caps: Caps = field(default_factory=Caps)
    prices: Price | PriceList | None = None
    limits: Limits | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    concurrency: int = 16
    plan_cache: PlanCache | None = None
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        for name in ROLES:
            value: object = getattr(self, name)
            if value is not None and (not isinstance(value, str | Model) or value == ""):
                raise ValidationError(
                    f"{name}={value!r}"[:200], hint="give a spec such as 'openai:gpt-x', or a Model"
                )
        cap: object = self.concurrency
        if not isinstance(cap, int) or isinstance(cap, bool) or not 1 <= cap <= 4_096:
            raise ValidationError(f"concurrency={cap!r}", hint="give an integer from 1 to 4,096")
        for name in ("policy", "ask", "on_text"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise ValidationError(f"{name}={value!r}"[:200], hint="give a function")
        require_gate(self.gate, self.human)
        topped = BudgetChange.of(self.top_up)
        if topped is not None:
            object.__setattr__(self, "top_up", topped)
            object.__setattr__(self, "caps", topped.over(self.caps))
        if self.on_event is not None and is_async(self.on_event):
            raise ValidationError(
                f"on_event={self.on_event!r} is asynchronous",
                hint="give a plain function; it may put the event into a queue that others await",
            )
        if not isinstance(self.data, Mapping):
            raise ValidationError(f"data={self.data!r}"[:200], hint="give a mapping")

    @classmethod
    def of(cls, given: Wiring | str | Model | None) -> Self:
        """Return a wiring; a spec or a Model alone stands for the one that has it as its model.

        Raises:
            ValidationError: it is something else.
        """
        if isinstance(given, Wiring):
            values: dict[str, Any] = {one.name: getattr(given, one.name) for one in fields(given)}
            return cls(**values)
        return cls(model=given)

    def recorded(self) -> tuple[dict[str, JsonValue], dict[str, str]]:
        """Return what a later session needs to go on: values by name, and what objects there were.

        Whoever decides about tools is one of them: no session goes on without the policy of another.
        """
        values: dict[str, JsonValue] = {}
        objects: dict[str, str] = {}
        if holds_secret(dict(self.data)):
            objects["data"] = "secrets are in it"
        else:
            values["data"] = dict(self.data)
        for name in (*_RECORDED, *_OBJECTS):
            value: object = getattr(self, name)
            if name == "data" or (name in _OBJECTS and value is None):
                continue
            if is_recordable(value):
                values[name] = record_of(value)
            else:
                objects[name] = _named(value)
        return values, objects

    @classmethod
    def of_record(cls, values: Mapping[str, object], **overrides: object) -> Self:
        """Return the wiring of an earlier session, with changes.

        Raises:
            ValidationError: a value that no longer is one.
        """
        given: dict[str, Any] = {
            name: value_of(name, values[name])
            for name in _RECORDED
            if name in values and name not in overrides
        }
        given.update(overrides)
        return cls(**given)


def _named(value: object) -> str:
    if isinstance(value, Model):
        return value.info.spec
    return str(getattr(value, "__name__", None) or type(value).__name__)
