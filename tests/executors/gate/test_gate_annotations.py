"""Facts that others note: kept for a person, and no word on any decision."""

import pytest

from executors.gate.people.annotations import Annotation, Annotations, Malformed, plain_annotation
from executors.replies import JsonValue

SEEN = Annotation(verdict="suspect", reason="odd host", surface=True)


@pytest.mark.parametrize(
    ("fact", "annotation"),
    [
        ({"verdict": "suspect", "surface": True}, Annotation(verdict="suspect", surface=True)),
        ({}, Annotation()),
        ({"reason": "x" * 600}, Annotation(reason="x" * 500)),
        ({"meta": {"n": [1, 2]}}, Annotation(meta={"n": [1, 2]})),
        pytest.param(
            {"meta": "é" * 600},
            Annotation(meta={"_truncated": True, "bytes": 1_202}),
            marks=pytest.mark.case("G-208"),
        ),
    ],
)
def test_a_fact_keeps_bounded_words_and_meta(fact: JsonValue, annotation: Annotation) -> None:
    assert plain_annotation(fact) == annotation


@pytest.mark.parametrize("fact", [None, "a fact", [1], {"surface": 1}, {"verdict": ["x"]}])
def test_what_is_no_fact_is_told_apart(fact: JsonValue) -> None:
    assert isinstance(plain_annotation(fact), Malformed)


def test_what_nobody_need_see_never_rides_and_what_rode_is_gone() -> None:
    waiting = Annotations((), "strict")
    waiting.add(Annotation(verdict="fine"))
    waiting.add(SEEN)
    assert waiting.riding("bash") == (SEEN,)
    assert waiting.riding("bash") == ()


@pytest.mark.case("G-205")
def test_relaxed_facts_wait_past_what_can_be_taken_back() -> None:
    for escalation, riding in [("relaxed", ()), ("strict", (SEEN,))]:
        waiting = Annotations(("draft",), escalation)  # type: ignore[arg-type]
        waiting.add(SEEN)
        assert waiting.riding("draft") == riding
    waiting = Annotations(("draft",), "relaxed")
    waiting.add(SEEN)
    waiting.riding("draft")
    assert waiting.riding("send") == (SEEN,)


def test_the_newest_facts_wait_when_nobody_asks() -> None:
    waiting = Annotations((), "strict")
    for number in range(100):
        waiting.add(Annotation(verdict=str(number), surface=True))
    riding = waiting.riding("bash")
    assert (len(riding), riding[-1].verdict) == (20, "99")
