"""SIGKILL in the middle of a tree: the same tree comes out, nothing is paid twice, no tool runs twice."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import pytest

from executors.journal.answers import answers
from executors.messages import ModelRequest
from executors.models.fakes.scripted import Turn, calls_reply
from rlm.fakes.tree import path_of, role_of, spawning, tree_server
from rlm.testing import Act, Completion, FakeServer, Received
from tests.support.killing import kill_group, settled, wait_for

WIDTH, DEPTH = 3, 3
NODES = sum(WIDTH**level for level in range(DEPTH + 1))
LEAVES = WIDTH**DEPTH
CALLS = (
    2 * (NODES - LEAVES) + 2 * LEAVES
)  # each node has two rounds: one for children, or for its tool

SCRIPT = """
import json, os, sys
import rlm

def note(place: str) -> str:
    "Write a place down."
    with open(sys.argv[2], "a") as file:
        file.write(place + "\\n")
    return "noted " + place

outcome = rlm.recurse_sync(
    "design and implement the whole pipeline across the entire system",
    rlm.Wiring(model=sys.argv[3], concurrency=8),
    tools=[rlm.tool(note)],
    max_depth=3,
    run=sys.argv[1],
)
print(json.dumps({
    "outcome": type(outcome).__name__,
    "result": getattr(outcome, "result", None),
    "missing": getattr(outcome, "missing", None),
    "root": outcome.receipts.content_root,
    "nodes": [[node.id, node.name] for node in outcome.receipts.nodes],
    "calls": outcome.receipts.totals.calls,
}))
"""


class Asked:
    """A server whose workers hand on, note their place at the leaves, and join; it counts prompts."""

    def __init__(self, after: float = 0.0) -> None:
        self._serve = tree_server(_noting, spawning(WIDTH, depth=DEPTH))
        self._after = after
        self._lock = Lock()
        self.prompts: Counter[str] = Counter()

    def __call__(self, received: Received) -> Act:
        with self._lock:
            self.prompts[json.dumps(received.json["messages"])] += 1
        act = self._serve(received)
        assert isinstance(act, Completion)
        return Completion(text=act.text, finish=act.finish, calls=act.calls, after=self._after)


def _noting(request: ModelRequest) -> Turn | None:
    path = path_of(request)
    if role_of(request) != "worker" or len(path) < DEPTH or request.messages[-1].role == "tool":
        return None
    return calls_reply(("note", {"place": ".".join(map(str, path))}))


def start(run: Path, notes: Path, base_url: str) -> subprocess.Popen[bytes]:
    model = f"openai+{base_url}:fake"
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(run), str(notes), model],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def noted(notes: Path) -> Counter[str]:
    return Counter(notes.read_text().split()) if notes.exists() else Counter()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.case("S04", "S06", "K13-13", "K3-13")
def test_a_tree_killed_at_any_point_comes_out_the_same_and_pays_and_does_nothing_twice(
    tmp_path: Path,
) -> None:
    with FakeServer(Asked()) as server:
        whole = ended(start(tmp_path / "whole", tmp_path / "whole-notes", server.base_url))
        assert server.requests == CALLS == whole["calls"]
    assert whole["outcome"] == "Completed"
    assert len(whole["nodes"]) == NODES
    assert noted(tmp_path / "whole-notes").total() == LEAVES

    random = Random(4)
    for point in [0, CALLS - 1, *random.sample(range(1, CALLS - 1), 5)]:
        run, notes, asked = tmp_path / f"run-{point}", tmp_path / f"notes-{point}", Asked(0.02)
        with FakeServer(asked) as server:
            process = start(run, notes, server.base_url)
            wait_for(lambda: server.requests > point, process)  # noqa: B023 - called in this turn
            kill_group(process)
            kept = sum(1 for _ in answers(run)) if (run / "journal").exists() else 0
            before = settled(asked.prompts.total)
            assert before - kept <= 8, point
            found = ended(start(run, notes, server.base_url))
            again = sum(asked.prompts.values()) - before
        assert found["outcome"] == "Completed", (point, found)
        assert found["nodes"] == whole["nodes"], point
        assert again == CALLS - kept, point
        assert max(noted(notes).values()) == 1, (point, noted(notes))
        if found["root"] != whole["root"]:  # a tool that was running is told as interrupted
            assert "unknown" in found["result"] or noted(notes).total() == LEAVES, point
