"""The coordinator of a count on a cluster is killed, or told to stop, as a process of its own."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from rlm import load_result
from rlm.runs.manifest import Manifest
from rlm.testing import FakeServer
from tests.rlm.clusters import paid_twice, workers
from tests.support.killing import Asked, counting, kill_group, resuming, wait_for, write_corpus

pytestmark = pytest.mark.slow

RECORDS, CAP = 6_000, 8
ENGINE = ("--engine", "dask:2", "--concurrency", str(CAP))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "reports.jsonl", RECORDS)
    return tmp_path / "reports.jsonl"


def gone(pids: list[int]) -> bool:
    """Wait until processes have ended by themselves."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        left = [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]
        if not left:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def whole(corpus: Path, tmp_path: Path) -> Path:
    """A run that nothing disturbed, in one process."""
    with FakeServer(Asked()) as server:
        counting(corpus, tmp_path / "whole", server.base_url).communicate()
    return tmp_path / "whole"


@pytest.mark.parametrize("engine", ["dask:2", "local"])
def test_a_coordinator_that_is_killed_is_resumed(
    engine: str, corpus: Path, whole: Path, tmp_path: Path
) -> None:
    """Its workers end with it, and what they paid for is found, on a cluster and without one."""
    run, asked = tmp_path / "run", Asked(after=0.01)
    with FakeServer(asked) as server:
        process = counting(corpus, run, server.base_url, *ENGINE)
        wait_for(lambda: server.requests > 500, process)
        crew = workers(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert len(crew) == 2
        assert gone(crew)
        out, _ = resuming(run, "--engine", engine).communicate()
        assert server.peak <= CAP
    assert json.loads(out)["outcome"] == "completed"
    assert list(load_result(run).matched_ids) == list(load_result(whole).matched_ids)
    assert Manifest.load(run).content_root == Manifest.load(whole).content_root
    assert asked.repeats <= CAP
    assert paid_twice(run) == 0


@pytest.mark.case("S56")
def test_ctrl_c_in_a_terminal_ends_a_cluster_in_order(corpus: Path, tmp_path: Path) -> None:
    """The terminal tells all processes of the group; the coordinator alone decides."""
    run, asked = tmp_path / "run", Asked(after=0.01)
    with FakeServer(asked) as server:
        process = counting(corpus, run, server.base_url, *ENGINE)
        wait_for(lambda: server.requests > 300, process)
        crew = workers(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 4
        assert gone(crew)
        ended = json.loads(out)
        assert ended["blocker"] == "interrupted"
        assert ended["spend"]["calls"] == server.requests == sum(asked.prompts.values())
        again, _ = resuming(run, "--engine", "local").communicate()
    assert json.loads(again)["outcome"] == "completed"
    assert asked.repeats == 0


def test_a_second_ctrl_c_ends_a_cluster_at_once(corpus: Path, tmp_path: Path) -> None:
    """Calls are in flight that would take a minute."""
    with FakeServer(Asked(after=60.0)) as server:
        process = counting(corpus, tmp_path / "run", server.base_url, *ENGINE)
        wait_for(lambda: server.requests >= CAP, process)
        crew = workers(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)
        begun = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert time.monotonic() - begun < 10
        assert gone(crew)
        kill_group(process)
