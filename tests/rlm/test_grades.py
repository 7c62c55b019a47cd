"""The verdict in a grader's text, however it is wrapped; and none where there is none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.checks.grades import read_grade, read_label
from rlm.checks.verdict import NeedsRevision, Satisfied, Unusable, status_of


def kind(text: str) -> str:
    found = read_grade(text)
    return "unusable" if isinstance(found, Unusable) else status_of(found)


@pytest.mark.case("R-164", "K11-2", "K11-4", "K11-5", "K11-8", "K4-1", "K4-16")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"status": "satisfied", "score": 0.9}', "satisfied"),
        ('```json\n{"status": "failed"}\n```', "failed"),
        ('I looked closely.\n{"status": "needs_revision", "critique": "x"}', "needs_revision"),
        ('<think>{"status": "failed"}</think>{"status": "satisfied"}', "satisfied"),
        ('{"pass": "false"}', "needs_revision"),
        ('{"status": "excellent"}', "needs_revision"),
        ('{"status": "excellent", "pass": true}', "satisfied"),
        ('{"status": "excellent", "pass": "maybe"}', "unusable"),
        ('{"pass": true, "status": "failed"}', "unusable"),
        ('{"status": "satisfied"} or rather {"status": "failed"}', "unusable"),
        ('{"status": "satisf', "unusable"),
        ('{"verdicts": ["fail", "fail"]}', "unusable"),
        ('{"status": ""}', "unusable"),
        ("[]", "unusable"),
        ("3", "unusable"),
        ("null", "unusable"),
        ('"PASS"', "satisfied"),
        ("", "unusable"),
        (" \n", "unusable"),
        ("<think>it is fine, PASS</think>", "unusable"),
        ("Verdict: PASS (with caveats)", "satisfied"),
        ("**Verdict:** FAIL\nThe total is wrong.", "needs_revision"),
        ("PASS", "satisfied"),
        ("pass.", "satisfied"),
        ("Satisfied: all four points are there.", "satisfied"),
        ("FAIL - two sources are missing", "needs_revision"),
        ("My verdict is needs revision.", "needs_revision"),
        ("Status: not satisfied", "needs_revision"),
        ("# Great work!\n\n- clear\n- **well** sourced", "unusable"),
        ("Verdict: PASS or FAIL", "unusable"),
        ("Verdict: PASS? I think not.", "unusable"),
        ("Verdict: not PASS", "unusable"),
        ("Verdict: PASS. On reflection, verdict: FAIL", "unusable"),
        ("The author's verdict: PASS. My final verdict: FAIL", "needs_revision"),
        ("<think>Verdict: PASS</think>", "unusable"),
        ("<think>Verdict: PASS</think>Verdict: FAIL", "needs_revision"),
        ('Verdict: PASS\n{"status": "fai', "unusable"),
        ("Passing the salt is not a verdict", "unusable"),
        ("passable", "unusable"),
        ("The result does not pass", "unusable"),
    ],
)
def test_a_grade_is_what_the_text_states(text: str, expected: str) -> None:
    assert kind(text) == expected


def test_a_grade_in_words_keeps_them_as_its_critique() -> None:
    assert read_grade("FAIL: no source") == NeedsRevision(critique="FAIL: no source")
    assert read_grade("PASS: all there") == Satisfied()


@pytest.mark.case("K11-7")
@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("As a judge I compared A and B; my final grade is B.", "B"),
        ("Both have merits. Answer: A", "A"),
        ("b", "B"),
        ("A: better in all respects", "A"),
        ("A good answer, and B a better one", None),
        ("Grade: A. Grade: B.", None),
        ("", None),
    ],
)
def test_a_label_is_the_one_that_is_announced(text: str, label: str | None) -> None:
    assert read_label(text, ("A", "B")) == label


@given(st.text() | st.from_regex(r"(verdict|final|grade|is|:|\*| |PASS|FAIL|or|\{|\}|\"){0,40}"))
def test_any_text_is_a_verdict_or_says_why_not(text: str) -> None:
    found = read_grade(text)
    assert isinstance(found, Unusable) or status_of(found)


@pytest.mark.parametrize("piece", ["verdict ", "final final verdict: ", "** ", "pass or ", "\n"])
def test_a_long_text_is_read_in_little_time(piece: str) -> None:
    started = time.process_time()
    read_grade(piece * (400_000 // len(piece)))
    assert time.process_time() - started < 2.0
