"""Ctrl-C while a tree grows: what is in flight ends, what was answered is kept, and it goes on."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from executors.models.fakes.acts import Act, Completion, Reply
from executors.models.fakes.received import Received
from executors.models.fakes.server import FakeServer
from rlm.cli.stopping import STOPPING
from rlm.fakes.tree import spawning, tree_server

TASK = "Design and implement the whole system."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)


def slowly(received: Received) -> Act:
    """Answer the root at once, and its children after a while."""
    act = tree_server(spawning(3, depth=1))(received)
    assert isinstance(act, Completion)
    child = "[part" in received.request.messages[1].content
    return replace(act, after=0.6 if child else 0.0)


def late(received: Received) -> Act:
    return Reply(after=30)


def started(server: FakeServer, *args: str, wait: int) -> "subprocess.Popen[str]":
    """Start a recursion, and wait for so many requests."""
    command = [sys.executable, "-m", "rlm", "recurse", TASK, "--run", "run", *args]
    process = subprocess.Popen(
        [*command, "--model", f"openai+{server.base_url}:m"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 40
    while server.requests < wait and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


@pytest.mark.case("D14", "K13-14")
def test_the_first_ctrl_c_lets_what_is_in_flight_end_and_a_resume_pays_nothing_twice() -> None:
    with FakeServer(slowly) as server:
        process = started(server, "--concurrency", "2", wait=2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 4
        assert f"{STOPPING}\n" in err
        assert "incomplete: interrupted" in err
        assert "go on with: rlm resume run\n" in err
        assert "Traceback" not in err
        paid = server.requests
        done = subprocess.run(
            [sys.executable, "-m", "rlm", "resume", "run"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0
        assert done.stdout == "root: answer of 0; answer of 1; answer of 2\n"
        assert server.requests == 5
        assert 0 < paid < 5
    receipt = json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))
    assert receipt["totals"]["calls"] == 5
    assert "answer of 0" in out


@pytest.mark.case("D14")
def test_a_second_ctrl_c_ends_it_at_once_and_says_how_to_go_on() -> None:
    with FakeServer(late) as server:
        process = started(server, wait=1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "go on with: rlm resume run" in err
    assert "Traceback" not in err
    receipt = json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))
    assert receipt["blocker"] == "cancelled"
