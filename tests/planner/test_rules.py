"""Planning without a model: by the parts that a task is written in."""

import time

import pytest

from planner.plan import PlanError
from planner.rules import plan_task, text_parts


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


def test_what_follows_a_list_is_about_all_of_it() -> None:
    assert actions("Sum up:\n- a\n\n- b\n  more\n\nIn German, please.") == [
        "Sum up:\nIn German, please.\na",
        "Sum up:\nIn German, please.\nb\n  more",
    ]


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("---\n---\nRest.", ("---\n---\nRest.",)),
        ("1.5 is one\n2.5 is two", ("1.5 is one\n2.5 is two",)),
        ("Use tools, e.g. grep. Then stop.", ("Use tools, e.g. grep.", "Then stop.")),
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
