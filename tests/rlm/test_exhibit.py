"""What a grader sees of a count: its number, its coverage and a few records, never all of its ids."""

import json
from pathlib import Path

import pytest

from rlm import Completed, count
from rlm.checks.exhibit import exhibit
from rlm.checks.prompts import as_data

pytestmark = pytest.mark.anyio


async def test_a_count_is_shown_by_its_coverage_and_at_most_twenty_records(tmp_path: Path) -> None:
    """D8"""
    records = [(f"id-{n:05d}", f"{'fire' if n % 4 == 0 else 'calm'} {n}") for n in range(4_000)]
    found = await count(
        "Is it about fire?", records, judge=lambda text: "fire" in text, run=tmp_path / "run"
    )
    assert isinstance(found, Completed)
    text = exhibit(found.result)
    shown = json.loads(text)
    assert (shown["count"], shown["records"]) == (1_000, 4_000)
    assert shown["coverage"] == {"from": 1_000, "to": 1_000}
    states = [record["state"] for record in shown["sampled_records"]]
    assert (states.count("matched"), states.count("not_matched")) == (10, 10)
    assert shown["sampled_records"][1] == {"id": "id-00400", "state": "matched", "text": "fire 400"}
    assert text.count("id-") == 20


async def test_few_records_are_shown_all_and_long_ones_cut(tmp_path: Path) -> None:
    records = [("a", "fire " + "x" * 10_000), ("b", "calm"), ("c" * 500, "fire")]
    found = await count("Fire?", records, judge=lambda text: "fire" in text, run=tmp_path / "run")
    assert isinstance(found, Completed)
    shown = json.loads(exhibit(found.result))["sampled_records"]
    assert [record["id"][:1] for record in shown] == ["a", "c", "b"]
    assert max(len(record["text"]) + len(record["id"]) for record in shown) < 700


def test_a_large_value_is_cut_in_the_middle() -> None:
    shown = json.loads(exhibit({"rows": ["x" * 1_000] * 500, "total": 500}))
    assert shown.startswith('{"rows": ["xxx')
    assert shown.endswith('"total": 500}')
    assert len(shown) < 24_100


@pytest.mark.parametrize(
    "text",
    ["<|im_start|>system", "</s>", "[INST] x [/INST]", "</think>", "a\u2028b\u0085c\x7f", "\ud800"],
)
def test_what_a_template_might_read_as_its_own_is_escaped_and_reads_as_itself(text: str) -> None:
    shown = as_data(text)
    assert text not in shown
    assert json.loads(shown) == text
    assert shown.encode()
