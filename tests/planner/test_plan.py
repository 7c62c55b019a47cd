"""A plan is checked once, when it is made; what is wrong with it is said by name."""

import time
from typing import Any, cast

import pytest

from executors.errors import RlmError, ValidationError
from planner.plan import Plan, PlanError, PlannerFault, Step


def steps(**waits: str) -> list[Step]:
    """Return steps by id with what each waits for, as words."""
    return [
        Step(id=id_, action=f"do {id_}", depends_on=tuple(on.split())) for id_, on in waits.items()
    ]


def fault_of(given: list[Step]) -> PlanError:
    with pytest.raises(PlanError) as caught:
        Plan(steps=tuple(given))
    return caught.value


def test_a_plan_holds_its_steps_as_given() -> None:
    made = steps(a="", b="a", c="a b")
    plan = Plan(steps=tuple(made))
    assert (list(plan.steps), len(plan), plan.independent) == (made, 3, False)


@pytest.mark.case("R-149")
@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ([], "empty", "no steps"),
        ([*steps(a=""), *steps(a="", b="")], "duplicate-ids", "'a'"),
        (steps(a="", b="z"), "unknown-dependency", "'b' waits for 'z'"),
        (steps(a="b", b="a"), "cycle", "a -> b -> a"),
        (steps(a="a"), "cycle", "a -> a"),
        (steps(x="", a="x c", b="a", c="b", d="c"), "cycle", "a -> c -> b -> a"),
    ],
)
def test_what_is_no_plan_is_refused_by_kind(given: list[Step], kind: str, says: str) -> None:
    fault = fault_of(given)
    assert (fault.kind, list(fault.steps)) == (kind, given)
    assert says in fault.what


def test_a_long_circle_is_named_in_short_and_found_without_recursion() -> None:
    ring = [
        Step(id=f"s{n}", action="x", depends_on=(f"s{(n + 1) % 20_000}",)) for n in range(20_000)
    ]
    fault = fault_of(ring)
    assert "20000 steps" in fault.what
    assert len(fault.what) < 500


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": "", "action": "x"}, "id=''"),
        ({"id": "a", "action": "  "}, "action='  '"),
        ({"id": "a", "action": None}, "action=None"),
        ({"id": "a", "action": "x", "depends_on": "ab"}, "no list of ids"),
        ({"id": "a", "action": "x", "depends_on": [1]}, "no list of ids"),
    ],
)
def test_a_step_is_two_texts_and_ids(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Step(**fields)


def test_a_chain_of_fifty_thousand_is_checked_in_linear_time() -> None:
    chain = [
        Step(id=f"s{n}", action="x", depends_on=(f"s{n - 1}",) if n else ()) for n in range(50_000)
    ]
    started = time.process_time()
    Plan(steps=tuple(chain))
    assert time.process_time() - started < 2


def test_a_models_plan_is_the_worlds_fault_and_a_callers_is_yours() -> None:
    assert (PlanError.fault, PlannerFault.fault) == ("yours", "world")
    assert issubclass(PlannerFault, PlanError)
    assert issubclass(PlanError, RlmError)


@pytest.mark.case("R-149")
@pytest.mark.parametrize("given", [None, "ab", 42, [1], [None], [{"id": "a", "action": "x"}], {}])
def test_what_is_no_list_of_steps_makes_no_plan(given: object) -> None:
    with pytest.raises(ValidationError, match=r"no list of steps|is no Step") as caught:
        Plan(steps=cast("tuple[Step, ...]", given))
    assert "Step" in str(caught.value.hint)
