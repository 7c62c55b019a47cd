"""Which values are verdicts: by a table that is written out, and by nothing else."""

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.checks.verdict import (
    Failed,
    NeedsRevision,
    Satisfied,
    Unusable,
    Verdict,
    read_boolean,
    read_verdict,
    status_of,
)


def kind(value: object) -> str:
    found = read_verdict(value)
    return "unusable" if isinstance(found, Unusable) else status_of(found)


NOTHING: list[object] = []
TABLE: list[tuple[object, str]] = [
    # booleans and numbers, by value
    ({"pass": True}, "satisfied"),
    ({"pass": False}, "needs_revision"),
    ({"pass": 1}, "satisfied"),
    ({"pass": 1.0}, "satisfied"),
    ({"pass": 0}, "needs_revision"),
    ({"pass": np.bool_(True)}, "satisfied"),
    ({"pass": np.int64(0)}, "needs_revision"),
    ({"pass": 0.5}, "unusable"),
    ({"pass": 2}, "unusable"),
    ({"pass": -1}, "unusable"),
    ({"pass": float("nan")}, "unusable"),
    # texts, by the table
    *(({"pass": word}, "satisfied") for word in ("true", "YES", " pass\n", "Passed", "1", "y")),
    *(({"pass": word}, "needs_revision") for word in ("false", "no", "FAIL", "failed", "0", "N")),
    *(({"pass": word}, "unusable") for word in ("", "maybe", "ok", "not true", "truefalse")),
    # neither
    *(({"pass": odd}, "unusable") for odd in (NOTHING, object(), b"true", (True,))),
    ({"pass": None}, "unusable"),
    ({}, "unusable"),
    ({"ok": True}, "unusable"),
    ({"verdicts": ["fail", "fail"]}, "unusable"),
    ([], "unusable"),
    ([{"pass": True}], "unusable"),
    # by status
    ({"status": "satisfied"}, "satisfied"),
    ({"status": "needs_revision"}, "needs_revision"),
    ({"status": " Needs-Revision "}, "needs_revision"),
    ({"status": "failed"}, "failed"),
    ({"status": "great"}, "unusable"),
    ({"status": True}, "unusable"),
    ({"pass": None, "status": "failed"}, "failed"),
    # by both
    ({"pass": True, "status": "satisfied"}, "satisfied"),
    ({"pass": False, "status": "failed"}, "failed"),
    ({"pass": False, "status": "needs_revision"}, "needs_revision"),
    ({"pass": True, "status": "failed"}, "unusable"),
    ({"pass": False, "status": "satisfied"}, "unusable"),
    ({"pass": True, "passed": False}, "unusable"),
    ({"pass": True, "status": "great"}, "satisfied"),
    # no fields at all
    (True, "unusable"),
    ("pass", "unusable"),
    (1, "unusable"),
    (None, "unusable"),
    (object(), "unusable"),
]


@pytest.mark.case("R-121", "R-122", "K11-1", "K11-2", "K11-8")
@pytest.mark.parametrize(("value", "expected"), TABLE)
def test_only_what_says_so_passes(value: object, expected: str) -> None:
    """D1: neither the truthiness of the reference nor any other guess."""
    assert kind(value) == expected


def test_the_rest_of_a_verdict_is_kept_where_it_is_what_it_should_be() -> None:
    value = {
        "pass": False,
        "score": 7,
        "critique": "too short",
        "suggestions": ["longer", 3, None],
        "line": 12,
    }
    assert read_verdict(value) == NeedsRevision(
        score=7.0, critique="too short", suggestions=("longer",), extra={"line": 12}
    )


@pytest.mark.parametrize("score", [True, "9", None, float("inf"), float("nan"), [1], 10**400])
def test_a_score_that_is_no_finite_number_is_unknown(score: object) -> None:
    found = read_verdict({"pass": True, "score": score, "critique": 3, "suggestions": "one"})
    assert found == Satisfied(suggestions=("one",))


class WithProperties:
    """A verdict whose fields are computed."""

    def __init__(self) -> None:
        self.exit_code = 1
        self._private = "not told"

    @property
    def passed(self) -> bool:
        return False

    @property
    def critique(self) -> str:
        return "exit code 1"


class Named(NamedTuple):
    status: str
    rows: int


@dataclass(frozen=True, slots=True)
class WithSlots:
    passed: bool
    seed: int


@pytest.mark.case("R-121")
def test_an_object_with_fields_is_a_verdict_and_keeps_what_else_it_holds() -> None:
    assert read_verdict(WithProperties()) == NeedsRevision(
        critique="exit code 1", extra={"exit_code": 1}
    )
    assert read_verdict(WithSlots(passed=True, seed=4)) == Satisfied(extra={"seed": 4})
    assert read_verdict(Named("failed", 3)) == Failed(extra={"rows": 3})


def test_a_verdict_of_ours_is_itself() -> None:
    verdict = Failed(critique="impossible")
    assert read_verdict(verdict) is verdict


@pytest.mark.case("R-125")
def test_why_a_value_is_no_verdict_is_told_by_keys_and_types_alone() -> None:
    secret = "hunter2"
    for value in ({"ok": secret}, secret, {"pass": [secret]}, {"status": secret}, [secret]):
        found = read_verdict(value)
        assert isinstance(found, Unusable)
        assert secret not in found.what
    assert read_verdict({"ok": True}) == Unusable(
        what="it has neither a `pass` nor a `status` of ours: its keys are ['ok']"
    )
    assert read_verdict("pass") == Unusable(
        what="it is of type str, where a verdict has `pass` or `status`"
    )


@pytest.mark.case("R-161")
@pytest.mark.parametrize("value", [{"pass": True}, "true", 1, 0, None, [], np.int64(1)])
def test_a_boolean_is_a_boolean(value: object) -> None:
    assert isinstance(read_boolean(value), Unusable)
    assert read_boolean(True) is True
    assert read_boolean(np.bool_(False)) is False


nested = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["pass", "passed", "status", "score", "suggestions"]) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(nested)
def test_no_value_is_satisfied_unless_it_says_so(value: object) -> None:
    """And none raises."""
    found = read_verdict(value)
    if isinstance(found, Satisfied):
        fields = cast("dict[str, object]", value)
        said = [fields.get(key) for key in ("pass", "passed", "status")]
        assert any(
            one is True or one == 1 or str(one).strip().casefold() in PASSING for one in said
        )
    else:
        assert isinstance(found, Verdict | Unusable)


PASSING = {"true", "yes", "y", "pass", "passed", "1", "satisfied"}
