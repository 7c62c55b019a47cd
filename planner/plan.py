"""A plan: steps that may wait for each other, checked once, when it is made. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, cast

from executors.errors import Fault, RlmError, ValidationError
from executors.order import Circle, Order, order_of

__all__ = ["Plan", "PlanError", "PlanFault", "PlannerFault", "Step"]

PlanFault = Literal[
    "unparsable",
    "empty",
    "duplicate-ids",
    "unknown-dependency",
    "cycle",
    "too-many",
    "wrong-count",
    "truncated",
    "refused",
]
"""What can be wrong with a plan. The last three are faults of planners alone."""

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One piece of work.

    Raises:
        ValidationError: an id or an action that is no text, or blank.
    """

    id: str
    action: str
    """What to do, in words: the task of the worker that does it."""
    depends_on: tuple[str, ...] = ()
    """Ids of the steps that have to be done first."""

    def __post_init__(self) -> None:
        for name, value in (("id", self.id), ("action", self.action)):
            if not _is_text(value) or not value.strip():
                raise ValidationError(
                    f"{name}={value!r} of a step is no text"[:200],
                    where="rlm.Step",
                    hint="a step has an id and an action, both not blank",
                )
        given: object = self.depends_on
        if given == ():
            return
        if not isinstance(given, tuple | list) or not all(
            map(_is_text, cast("list[object]", given))
        ):
            raise ValidationError(
                f"depends_on={given!r} of the step {self.id!r} is no list of ids"[:200],
                where="rlm.Step",
                hint="give a tuple of ids: depends_on=('s1',)",
            )
        object.__setattr__(self, "depends_on", tuple(cast("list[str]", given)))


class PlanError(RlmError):
    """A plan that cannot be carried out.

    Args:
        what: the fault, with the ids that it concerns.
        kind: which fault it is.
        steps: the steps as far as they could be read.
    """

    code = "plan"
    fault: ClassVar[Fault] = "yours"

    def __init__(
        self,
        what: str,
        *,
        kind: PlanFault,
        steps: Sequence[Step] = (),
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.kind: PlanFault = kind
        self.steps = tuple(steps)


class PlannerFault(PlanError):
    """A model wrote a plan that cannot be carried out, or none."""

    code = "planner"
    fault: ClassVar[Fault] = "world"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps with unique ids, known dependencies and no circle: acyclic by construction.

    Raises:
        ValidationError: it is no list of steps.
        PlanError: there is no step, or an id stands twice, or a step waits for one that is not
            there, or steps wait for each other; the message names them.
    """

    steps: tuple[Step, ...]
    order: Order = field(init=False, compare=False, repr=False)
    """Who waits for whom, by id."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.steps))
        if not self.steps:
            raise PlanError("the plan has no steps", kind="empty", hint="give at least one")
        self._check_ids()
        self._check_dependencies()
        found = order_of(
            [step.id for step in self.steps],
            {step.id: step.depends_on for step in self.steps if step.depends_on},
        )
        if isinstance(found, Circle):
            raise PlanError(
                f"steps of the plan wait for each other: {_shown(found)}",
                kind="cycle",
                steps=self.steps,
                hint="take one of these dependencies out",
            )
        object.__setattr__(self, "order", found)

    def _check_ids(self) -> None:
        if len({step.id for step in self.steps}) == len(self.steps):
            return
        counts = Counter(step.id for step in self.steps)
        twice = [id_ for id_, count in counts.items() if count > 1]
        raise PlanError(
            f"{len(twice)} id(s) stand for several steps of the plan: {_listed(twice)}",
            kind="duplicate-ids",
            steps=self.steps,
            hint="give each step an id of its own",
        )

    def _check_dependencies(self) -> None:
        known = {step.id for step in self.steps}
        for step in self.steps:
            for needed in step.depends_on:
                if needed not in known:
                    raise PlanError(
                        f"the step {step.id!r} waits for {needed!r}, which the plan does not have",
                        kind="unknown-dependency",
                        steps=self.steps,
                        hint=f"the plan has {_listed([s.id for s in self.steps])}",
                    )

    @property
    def independent(self) -> bool:
        """No step waits for another."""
        return not any(step.depends_on for step in self.steps)

    def __len__(self) -> int:
        return len(self.steps)


def _steps(given: object) -> tuple[Step, ...]:
    if not isinstance(given, list | tuple):
        raise ValidationError(
            f"steps={given!r} is no list of steps"[:200],
            where="rlm.Plan",
            hint="give a Plan, or a list of Step",
        )
    some = cast("Sequence[object]", given)
    for step in some:
        if not isinstance(step, Step):
            raise ValidationError(
                f"{step!r} is no Step"[:200],
                where="the steps of a plan",
                hint="make it one: Step(id='s1', action='what to do')",
            )
    return tuple(cast("Sequence[Step]", some))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(repr(id_[:80]) for id_ in ids[:_SHOWN]) + more


def _shown(circle: Circle) -> str:
    if len(circle.ids) <= _SHOWN:
        return str(circle)
    ids = [*circle.ids[: _SHOWN - 1], "…", circle.ids[-1], circle.ids[0]]
    return f"{' -> '.join(ids)} ({len(circle.ids)} steps)"
