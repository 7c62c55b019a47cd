"""A count in a process of its own, killed with SIGKILL, and a server that remembers what it was asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from rlm.testing import Act, Completion, Received, judge_server

__all__ = [
    "Asked",
    "counting",
    "fire",
    "kill_group",
    "resuming",
    "settled",
    "wait_for",
    "write_corpus",
]


def fire(text: str) -> bool:
    return "fire" in text


def write_corpus(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for n in range(size):
            text = f"report {n}: {'a fire' if n % 7 == 0 else 'nothing'} near gate {n % 13}"
            file.write(json.dumps({"id": f"r{n}", "text": text}) + "\n")


class Asked:
    """A script for FakeServer that judges by `fire` and counts how often each prompt came."""

    def __init__(self, after: float = 0.0) -> None:
        self._judge = judge_server(fire)
        self._after = after
        self._lock = Lock()
        self.prompts: Counter[str] = Counter()

    def __call__(self, received: Received) -> Act:
        with self._lock:
            self.prompts[json.dumps(received.json["messages"])] += 1
        act = self._judge(received)
        assert isinstance(act, Completion)
        return Completion(text=act.text, finish=act.finish, after=self._after)

    @property
    def repeats(self) -> int:
        """Requests beyond the first of each prompt."""
        with self._lock:
            return sum(self.prompts.values()) - len(self.prompts)


def counting(corpus: Path, run: Path, base_url: str, *options: str) -> subprocess.Popen[bytes]:
    """Start `rlm count` in a process group of its own."""
    model = f"openai+{base_url}:fake"
    return _start(["count", str(corpus), "fire?", "--model", model, "--run", str(run), *options])


def resuming(run: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start `rlm resume` in a process group of its own."""
    return _start(["resume", str(run), *options])


def _start(args: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rlm", *args, "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a process and all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def wait_for(reached: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until something is so, or the process has ended."""
    end = time.monotonic() + 60
    while not reached() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.001)


def settled(count: Callable[[], int]) -> int:
    """Return a count once it stands still: what a killed process has sent is still on its way."""
    before, since = count(), time.monotonic()
    while time.monotonic() - since < 0.2:
        time.sleep(0.01)
        if (now := count()) != before:
            before, since = now, time.monotonic()
    return before
