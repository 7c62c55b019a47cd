"""SIGKILL at any point: the same count comes out, and no answer is paid twice."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from executors.journal.answers import answers
from rlm import load_result
from rlm.runs.manifest import Manifest
from rlm.testing import FakeServer
from tests.support.killing import (
    Asked,
    counting,
    kill_group,
    resuming,
    settled,
    wait_for,
    write_corpus,
)

RECORDS, CALLS, CAP = 2_000, 500, 16


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "reports.jsonl", RECORDS)
    return tmp_path / "reports.jsonl"


def ended(out: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.case("S04", "K14-11", "K14-16")
def test_a_count_killed_at_twenty_points_comes_out_the_same_and_pays_no_answer_twice(
    corpus: Path, tmp_path: Path
) -> None:
    with FakeServer(Asked()) as server:
        out, _ = counting(corpus, tmp_path / "whole", server.base_url).communicate()
    whole, root = ended(out), Manifest.load(tmp_path / "whole").content_root
    ids = list(load_result(tmp_path / "whole").matched_ids)
    assert len(ids) == whole["result"]["count"] == len([n for n in range(RECORDS) if n % 7 == 0])

    random = Random(20)
    points = [0, CALLS - 1, *random.sample(range(1, CALLS - 1), 18)]
    for point in points:
        run, asked = tmp_path / f"run-{point}", Asked(after=0.02)
        with FakeServer(asked) as server:
            process = counting(corpus, run, server.base_url)
            wait_for(lambda: server.requests > point, process)  # noqa: B023 - called in this turn
            kill_group(process)
            kept = sum(1 for _ in answers(run))
            before = settled(asked.prompts.total)
            assert before - kept <= CAP
            out, _ = resuming(run).communicate()
            again = sum(asked.prompts.values()) - before
        outcome = ended(out)
        assert outcome["outcome"] == "completed", (point, outcome)
        assert outcome["result"] == whole["result"], point
        assert list(load_result(run).matched_ids) == ids
        assert Manifest.load(run).content_root == root
        assert again == CALLS - kept, point  # what was answered was not asked again
        assert asked.repeats <= CAP
        assert outcome["spend"]["calls"] == CALLS


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.case("S15")
def test_a_resume_that_is_killed_can_be_resumed(corpus: Path, tmp_path: Path) -> None:
    run, asked, random = tmp_path / "run", Asked(after=0.02), Random(3)
    with FakeServer(asked) as server:
        process, kills = counting(corpus, run, server.base_url), 0
        while kills < 4:
            goal = sum(asked.prompts.values()) + random.randrange(20, 110)
            wait_for(lambda: sum(asked.prompts.values()) > goal, process)  # noqa: B023
            kill_group(process)
            kills += 1
            process = resuming(run)
        out, _ = process.communicate()
    outcome = ended(out)
    assert outcome["outcome"] == "completed"
    assert outcome["result"]["count"] == len([n for n in range(RECORDS) if n % 7 == 0])
    assert len(asked.prompts) == CALLS
    assert asked.repeats <= kills * CAP


@pytest.mark.case("S12")
def test_a_run_that_was_killed_before_its_first_answer_goes_on(tmp_path: Path) -> None:
    write_corpus(tmp_path / "few.jsonl", 16)
    run, asked = tmp_path / "run", Asked(after=30.0)
    with FakeServer(asked) as server:
        process = counting(tmp_path / "few.jsonl", run, server.base_url)
        wait_for(lambda: server.requests > 0, process)
        kill_group(process)
    with FakeServer(Asked(), port=int(server.base_url.rpartition(":")[2].split("/")[0])) as again:
        out, _ = resuming(run).communicate()
        assert again.requests == 4
    outcome = ended(out)
    assert outcome["outcome"] == "completed"
    assert outcome["result"]["count"] == 3
