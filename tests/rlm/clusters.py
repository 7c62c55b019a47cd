"""What tests of counts on a cluster share: a server that remembers, and workers that die."""

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from corpus.questions import YesNo
from corpus.results import Tally
from executors.journal.lines import Answered, read_line
from executors.journal.reading import segment_files, whole_lines
from rlm.counting import CountOutcome, count_with
from rlm.options.options import CountOptions
from rlm.outcome import Completed
from rlm.testing import Act, Completion, FakeServer, Received, judge_server

QUESTION = YesNo(text="is it about fire?")


def records(count: int) -> list[tuple[str, str]]:
    return [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(count)]


@dataclass
class Server:
    """A judge, how often it was asked the same, and what happens at the n-th request."""

    fake: FakeServer = field(default_factory=FakeServer)
    asked: Counter[bytes] = field(default_factory=Counter[bytes])
    busy: list[int] = field(default_factory=list[int])
    """How many requests were in progress when each came."""
    at: dict[int, Callable[[], object]] = field(default_factory=dict[int, Callable[[], object]])

    @property
    def model(self) -> str:
        return f"openai+{self.fake.base_url}:any"

    @property
    def repeats(self) -> int:
        """How many requests were sent for a second time."""
        return sum(count - 1 for count in self.asked.values())


@contextmanager
def judging(*, latency: float = 0.0) -> Generator[Server]:
    """Serve a judge on loopback."""
    judge = judge_server(lambda text: "fire" in text)
    server = Server()

    def answer(request: Received) -> Act:
        server.asked[request.body] += 1
        server.busy.append(server.fake.in_progress)
        act = server.at.pop(request.index, None)
        if act is not None:
            act()
        said = judge(request)
        return replace(said, after=latency) if isinstance(said, Completion) else said

    with FakeServer(answer) as server.fake:
        yield server


def options(server: Server, run: Path, **more: object) -> CountOptions:
    chosen: dict[str, object] = {"model": server.model, "run": run, **more}
    return CountOptions(**chosen)  # type: ignore[arg-type]


async def counted(corpus: list[tuple[str, str]] | None, chosen: CountOptions) -> CountOutcome:
    return await count_with(QUESTION, corpus, chosen)


def tally(outcome: CountOutcome) -> Tally:
    assert isinstance(outcome, Completed), outcome
    return outcome.result


def workers(parent: int | None = None) -> list[int]:
    """Return the worker processes of a process, ours by default, the oldest first."""
    found: list[int] = []
    for listing in Path(f"/proc/{parent or os.getpid()}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, listing.read_text(encoding="ascii").split())
    return sorted(pid for pid in found if b"spawn_main" in command(pid))


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill_a_worker() -> None:
    os.kill(workers()[0], signal.SIGKILL)


def paid_twice(run: Path) -> int:
    """Return how many calls of a run were answered more than once."""
    answered = Counter(
        line.key
        for segment in segment_files(run / "journal")
        for _, raw in whole_lines(segment.path)
        if isinstance(line := read_line(raw), Answered)
    )
    return sum(count - 1 for count in answered.values())


def no_shared_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers that cannot see the run directory."""
    blind = "import rlm.units.desk\nrlm.units.desk._shares = lambda directory, token: False\n"
    settings: dict[str, Any] = import_module("dask.config").config
    monkeypatch.setitem(settings["distributed"]["worker"], "preload", [blind])


@dataclass
class Cluster:
    """A scheduler and its workers, in processes of their own; nobody starts a dead one anew."""

    engine: str
    crew: list["subprocess.Popen[bytes]"]

    def kill(self) -> None:
        for process in self.crew:
            process.kill()


@contextmanager
def joined(folder: Path, *preloads: str | None) -> Generator[Cluster]:
    """Start a cluster of as many workers as preloads: texts that a worker runs before it begins."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    dask_cli = [sys.executable, "-m", "dask"]
    at = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    command = [*dask_cli, "scheduler", "--port", str(port), *at]
    crew: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        begin(stack, command, folder)
        for preload in preloads:
            more = [] if preload is None else ["--preload", preload]
            command = [*dask_cli, "worker", f"tcp://127.0.0.1:{port}", "--no-nanny", *at, *more]
            command += ["--nthreads", "1", "--memory-limit", "0", "--local-directory", str(folder)]
            crew.append(begin(stack, command, folder))
        wait_for_workers(port, len(preloads))
        yield Cluster(engine=f"dask://127.0.0.1:{port}", crew=crew)


def begin(stack: ExitStack, command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start a process that says nothing and is killed at the end."""
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, cwd=folder)
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def wait_for_workers(port: int, count: int) -> None:
    """Wait until a scheduler is there and knows so many workers."""
    distributed: Any = import_module("distributed")
    with distributed.Client(f"tcp://127.0.0.1:{port}", timeout=30) as client:
        client.wait_for_workers(count, timeout=30)
