"""Who takes a task apart, and how wide."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import ValidationError
from planner.complexity import assess
from planner.families import (
    FanOut,
    ModelDriven,
    Partition,
    chunks,
    family_of,
    partition_widths,
)

SIMPLE = assess("list the open files")
COMPLEX = assess("design and implement a notification pipeline across the entire system")


def test_the_worker_decides_where_nobody_asks_for_more() -> None:
    assert family_of(COMPLEX) == ModelDriven(may_spawn=True)
    assert family_of(SIMPLE) == ModelDriven(may_spawn=False)


@pytest.mark.case("R-056")
def test_a_count_is_a_fan_out() -> None:
    assert family_of(SIMPLE, count=3) == FanOut(count=3, derived=False)


@pytest.mark.case("R-057")
@pytest.mark.parametrize(
    ("task", "count"),
    [
        ("list the open files", 1),
        ("convert module to typescript", 2),
        ("design and implement a notification pipeline across the entire system", 4),
        ("investigate the security breach", 6),
    ],
)
def test_a_fan_out_without_a_count_goes_by_the_tier(task: str, count: int) -> None:
    assert family_of(assess(task), mode="fanout") == FanOut(count=count, derived=True)


def test_a_partition_takes_the_count_as_its_floor() -> None:
    assert family_of(SIMPLE, mode="partition", count=4, worker_budget=10) == Partition(
        floor=4, worker_budget=10
    )
    assert family_of(SIMPLE, mode="partition") == Partition(floor=1, worker_budget=100)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "tree"},
        {"count": 0},
        {"count": -2},
        {"count": 2.5},
        {"count": float("nan")},
        {"count": True},
        {"count": "3"},
        {"worker_budget": 0},
    ],
)
def test_what_is_no_choice_is_refused_and_quoted(options: dict[str, Any]) -> None:
    """D13."""
    (name, value), *_ = options.items()
    with pytest.raises(ValidationError, match=f"{name}={value!r}"):
        family_of(SIMPLE, **options)


@pytest.mark.case("R-099", "R-100", "R-101", "R-105")
@pytest.mark.parametrize(
    ("size", "floor", "budget", "data", "width"),
    [(30, 1, 10, 3, 3), (10, 4, 100, 1, 4), (3, 10, 1, 3, 3), (11, 1, 4, 3, 3), (0, 4, 10, 0, 0)],
)
def test_widths(size: int, floor: int, budget: int, data: int, width: int) -> None:
    found = partition_widths(size, floor=floor, budget=budget)
    assert (found.data, found.width) == (data, width)


@pytest.mark.case("R-105")
def test_eleven_records_in_three_parts() -> None:
    assert chunks(11, 3) == (range(4), range(4, 8), range(8, 11))


@given(st.integers(0, 500), st.integers(1, 60), st.integers(1, 60))
def test_parts_are_contiguous_near_equal_and_within_the_budget(
    size: int, floor: int, budget: int
) -> None:
    width = partition_widths(size, floor=floor, budget=budget).width
    parts = chunks(size, width)
    assert [place for part in parts for place in part] == list(range(size))
    sizes = [len(part) for part in parts]
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert max(sizes, default=0) <= budget
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("size", "width"), [(3, 4), (3, 0), (0, 1)])
def test_parts_without_records_are_refused(size: int, width: int) -> None:
    with pytest.raises(ValidationError):
        chunks(size, width)
