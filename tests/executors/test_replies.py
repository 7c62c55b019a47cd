import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.replies import Parsed, Unparsed, read_json

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "cases" / "replies.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case['id']}: {case['title']}", marks=pytest.mark.case(case["id"]))
        for case in CASES
    ],
)
def test_a_reply_is_read_or_refused_as_its_case_says(case: dict[str, Any]) -> None:
    found = read_json(case["text"])
    if "value" in case:
        assert found == Parsed(value=case["value"])
        return
    assert isinstance(found, Unparsed)
    assert case["refused"] in found.reason
    assert found.raw == case["text"]
    assert found.position == case.get("position", found.position)


@pytest.mark.case("K4-7", "K4-20")
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 30_000,
        "{" * 100_000,
        "1" * 5_000,
        "x" + "1" * 5_000 + "}",
        '{"n":' + "1" * 5_000 + "}",
        '{"\\"}' * 20_000,
        "'\\" * 50_000,
        "`" * 100_000,
        "```\n" * 20_000,
        "<think></think>[" * 8_000,
        "<think " * 50_000,
        '{"a":1} {"' * 10_000,
    ],
    ids=lambda text: f"{text[:6]!r} x {len(text)}",
)
def test_a_hostile_reply_is_refused_in_time(text: str) -> None:
    """Deep nesting, huge integers and quadratic traps are failures, neither crashes nor hangs."""
    started = time.process_time()
    assert isinstance(read_json(text), Unparsed)
    assert time.process_time() - started < 5


@pytest.mark.case("K4-22")
def test_a_huge_reply_has_to_be_json_as_it_stands() -> None:
    value = ["x" * 300_000]
    assert read_json(json.dumps(value)) == Parsed(value=value)  # type: ignore[arg-type]
    assert isinstance(read_json("see: " + json.dumps({"a": value})), Unparsed)


PIECES = st.sampled_from(
    (
        *'{}[]":,1 \n\\\x00\ud800',
        *("'", "yes", "```", "```json\n", "<think>", "</think>", "True", "NaN", "1e999"),
        '{"1":"yes"}',
    )
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
def test_any_text_is_a_value_or_a_refusal(text: str) -> None:
    found = read_json(text)
    if isinstance(found, Unparsed):
        assert 0 <= found.position <= len(text)
        assert found.reason
    else:
        json.dumps(found.value, allow_nan=False)


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists, max_leaves=8))
def test_what_was_written_as_json_is_read_equal_bare_and_fenced(value: object) -> None:
    text = json.dumps(value)
    assert read_json(text) == Parsed(value=value)  # type: ignore[arg-type]
    assert read_json(f"```json\n{text}\n```") == Parsed(value=value)  # type: ignore[arg-type]
