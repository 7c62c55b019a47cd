"""Planning without a model: slices of a corpus, and the parts that a task is written in."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import ValidationError
from planner.plan import PlanError
from planner.rules import plan_slices, plan_task, slices, text_parts


def sizes(*weights: int, **bounds: int) -> list[int]:
    return [s.stop - s.start for s in slices(len(weights), weights=weights, **bounds)]


def test_slices_are_contiguous_near_equal_and_name_their_records() -> None:
    first, second, third = slices(8, width=3)
    assert [(s.start, s.stop, s.tokens) for s in (first, second, third)] == [
        (0, 3, None),
        (3, 6, None),
        (6, 8, None),
    ]
    assert third.label == "part 3 of 3 (records 7 to 8)"


def test_slices_hold_so_many_records_at_most_and_are_never_empty() -> None:
    assert [s.stop - s.start for s in slices(10, items=4)] == [4, 3, 3]
    assert len(slices(3, width=10)) == 3
    assert slices(0, width=3) == ()


def test_slices_by_weight_are_near_equal_in_weight() -> None:
    assert sizes(1, 1, 1, 1, 1, 5, width=2) == [5, 1]
    assert sizes(5, 1, 1, 1, 1, 1, width=2) == [1, 5]
    assert sizes(2, 2, 2, 2, width=2) == [2, 2]


def test_slices_hold_so_many_tokens_at_most_but_for_a_record_that_has_more() -> None:
    assert sizes(3, 3, 3, 3, tokens=6) == [2, 2]
    assert sizes(3, 50, 3, tokens=6) == [1, 1, 1]


@pytest.mark.parametrize("bounds", [{"width": 0}, {"items": 0}, {"tokens": 0}, {"width": -1}])
def test_a_bound_below_one_is_refused(bounds: dict[str, int]) -> None:
    (name, value), *_ = bounds.items()
    with pytest.raises(ValidationError, match=f"{name}={value}"):
        sizes(1, 2, **bounds)


def test_weights_of_other_records_are_refused() -> None:
    with pytest.raises(ValidationError, match="2 weight"):
        slices(3, weights=[1, 2])
    with pytest.raises(ValidationError, match="without weights"):
        slices(3, tokens=5)


@given(
    st.lists(st.integers(0, 30), max_size=60),
    st.integers(1, 70),
    st.integers(1, 70),
    st.none() | st.integers(1, 60),
)
def test_slices_hold_each_record_once_within_all_bounds(
    weights: list[int], width: int, items: int, tokens: int | None
) -> None:
    found = slices(len(weights), width=width, items=items, tokens=tokens, weights=weights)
    assert [n for s in found for n in range(s.start, s.stop)] == list(range(len(weights)))
    assert len(found) >= min(width, len(weights))
    for one in found:
        assert one.stop - one.start <= items
        weight = sum(weights[one.start : one.stop])
        assert one.tokens == weight
        assert tokens is None or weight <= tokens or one.stop - one.start == 1


def test_a_hundred_thousand_records_are_sliced_at_once() -> None:
    weights = [n % 97 for n in range(100_000)]
    started = time.process_time()
    assert sum(s.stop - s.start for s in slices(100_000, tokens=5_000, weights=weights)) == 100_000
    assert time.process_time() - started < 2


def test_each_slice_gets_the_whole_task() -> None:
    plan = plan_slices("how many?", slices(5, width=2))
    assert [(step.id, step.action) for step in plan.steps] == [
        ("s1", "how many?"),
        ("s2", "how many?"),
    ]
    with pytest.raises(PlanError, match="no steps"):
        plan_slices("how many?", ())


def actions(task: str, count: int | None = None) -> list[str]:
    return [step.action for step in plan_task(task, count=count).steps]


def test_a_list_is_taken_apart_by_its_items_and_each_keeps_what_stands_before() -> None:
    task = "Compare the offers by:\n- price\n- terms,\n  also small print\n* risk\n"
    assert actions(task) == [
        "Compare the offers by:\nprice",
        "Compare the offers by:\nterms,\n  also small print",
        "Compare the offers by:\nrisk",
    ]


@pytest.mark.parametrize(
    "task",
    [
        "1. a\n2. b",
        "(1) a\n(2) b",
        "a) a\nb) b",
        "• a\n• b",
        "① a\n② b",
        "一、a\n二、b",
        "  - a\n  - b",
    ],
)
def test_lists_are_known_in_many_forms(task: str) -> None:
    assert text_parts(task) == ((), ("a", "b"))


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("Read it. Sum it up! Done?", ("Read it.", "Sum it up!", "Done?")),
        ("先读。再写！", ("先读。", "再写！")),
        ("one thing", ("one thing",)),
        ("a\n\nb", ("a", "b")),
        ("version 1.2 of it", ("version 1.2 of it",)),
        ("- one item only", ("- one item only",)),
    ],
)
def test_other_texts_are_taken_apart_by_their_sentences(task: str, parts: tuple[str, ...]) -> None:
    assert text_parts(task) == ((), parts)


def test_neighbours_are_put_together_where_fewer_steps_are_wanted() -> None:
    assert actions("Do:\n- a\n- b\n- c", 2) == ["Do:\na\nb", "Do:\nc"]


def test_a_task_in_fewer_parts_than_wanted_is_a_fault_that_says_so() -> None:
    with pytest.raises(PlanError, match=r"written in 1 part\(s\), and 3 were asked for") as caught:
        plan_task("one thing", count=3)
    assert (caught.value.kind, len(caught.value.steps)) == ("wrong-count", 1)


def test_the_same_task_gives_the_same_plan() -> None:
    task = "Read. Write. Rest."
    assert plan_task(task, count=2) == plan_task(task, count=2)


@pytest.mark.parametrize("piece", ["- a\n", "a. ", "\n", " ", "。", "1)", "- "])
def test_half_a_megabyte_is_taken_apart_at_once(piece: str) -> None:
    started = time.process_time()
    text_parts(piece * (500_000 // len(piece)))
    assert time.process_time() - started < 2
