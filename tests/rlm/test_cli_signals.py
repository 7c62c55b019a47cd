"""Ctrl-C and its like, sent to real processes at every stage of a count."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

import rlm
from executors.models.fakes.acts import Act, Completion, Received, Reply
from executors.models.fakes.server import FakeServer
from rlm.cli.stopping import STOPPING

OURS = f'File "{Path(rlm.__file__).parent}/'
ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},text {n}\n" for n in range(12))
    Path("t.csv").write_text(f"id,text\n{rows}", encoding="utf-8")


def receipt() -> dict[str, object]:
    loaded: dict[str, object] = json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))
    return loaded


def says(process: "subprocess.Popen[str]", line: str) -> bool:
    """Read what a process tells until it tells this; whether it still runs then."""
    assert process.stderr is not None
    return f"{line}\n" in process.stderr and process.poll() is None


# ---------------------------------------------------------------- a count that asks a server


def counting(
    server: FakeServer, *args: str, out: int | IO[str] = subprocess.PIPE, wait: int = 2
) -> "subprocess.Popen[str]":
    """Start a count of one record a call, two at once, and wait for its first requests."""
    model = f"openai+{server.base_url}:m"
    command = [sys.executable, "-m", "rlm", "count", "t.csv", "is it?", "--model", model]
    bounds = ["--run", "run", "--window", "1", "--passes", "1", "--concurrency", "2"]
    process = subprocess.Popen(
        [*command, *bounds, *args], stdout=out, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while server.requests < wait and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


def soon(received: Received) -> Act:
    return Completion(text='{"1": "yes"}', after=0.5)


def late(received: Received) -> Act:
    return Reply(after=30)


@pytest.mark.case("D14", "K13-14")
@pytest.mark.parametrize("number", ENDINGS)
def test_the_first_signal_lets_what_is_in_flight_end_and_tells_how_to_go_on(
    number: signal.Signals,
) -> None:
    with FakeServer(soon) as server:
        process = counting(server)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert server.requests == 2
    name = "Ctrl-C" if number is signal.SIGINT else number.name
    assert process.returncode == 4
    assert f"incomplete: interrupted\n    stopped by {name}\n" in out
    assert "\n    go on with: rlm resume run\n" in out
    assert f"{STOPPING}\n" in err
    assert "Traceback" not in err
    assert "2 of 12 records match" in out
    assert receipt()["blocker"] == "interrupted"
    for file in Path("run").rglob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            json.loads(line)


def test_an_interrupted_count_goes_on_and_pays_nothing_twice() -> None:
    with FakeServer(soon) as server:
        process = counting(server)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        done = subprocess.run(
            [sys.executable, "-m", "rlm", "resume", "run"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert server.requests == 12
    assert done.returncode == 0
    assert done.stdout.startswith("12 of 12 records match")


@pytest.mark.case("D14")
@pytest.mark.parametrize("number", ENDINGS)
def test_the_second_signal_ends_at_once_with_a_receipt(number: signal.Signals) -> None:
    with FakeServer(late) as server:
        process = counting(server)
        process.send_signal(number)
        assert says(process, STOPPING)
        process.send_signal(number)
        begun = time.monotonic()
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - begun < 5
    assert process.returncode == 128 + number
    name = "Ctrl-C" if number is signal.SIGINT else number.name
    assert f"incomplete: cancelled\n    stopped by {name}\n" in out
    assert "go on with: rlm resume run" in out
    assert err.endswith("\nstopped\n" if number is signal.SIGINT else f"\nstopped by {name}\n")
    assert "Traceback" not in err
    assert receipt()["blocker"] == "cancelled"


def test_a_terminal_that_hung_up_costs_no_receipt() -> None:
    with FakeServer(soon) as server, Path("/dev/full").open("w", encoding="utf-8") as nobody:
        process = counting(server, out=nobody)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert process.returncode == 4
    assert receipt()["blocker"] == "interrupted"


@pytest.mark.parametrize("within", [0.1, 1.5])
def test_a_signal_at_any_moment_is_no_traceback_and_no_torn_file(within: float) -> None:
    dice = random.Random(within)
    with FakeServer(soon) as server:
        for n in range(3 if within > 1 else 8):
            process = counting(server, "--run", f"run-{n}", wait=0)
            time.sleep(dice.uniform(0, within))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            # What Python itself says while it starts is not ours, up to our own first line.
            assert OURS not in err or "from rlm import _early" in err
            assert process.returncode in {4, 130} or "judge" not in err
            for file in Path(f"run-{n}").rglob("*.json*"):
                for line in file.read_text(encoding="utf-8").splitlines():
                    assert file.suffix == ".json" or json.loads(line)


def test_ctrl_c_while_the_program_loads_is_no_traceback() -> None:
    code = (
        "import os, signal, sys\n"
        "class Stops:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == sys.argv[1]: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stops())\n"
        "wanted, sys.argv[0] = sys.argv[1], '/usr/bin/rlm'\n"
        "from rlm.__main__ import main\n"
        "sys.exit(main())\n"
    )
    for module in ("rlm._siblings", "rlm._version", "rlm.__main__", "rlm.cli", "rlm.cli.app"):
        done = subprocess.run(
            [sys.executable, "-c", code, module],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (130, "", ""), module


def test_ctrl_c_between_the_package_and_its_program_is_no_traceback(tmp_path: Path) -> None:
    # `signal` is the first that the program's own module loads: there a signal comes by itself.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "del sys.modules['signal']\n"
        "class Stops:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'signal' and sys._getframe(1).f_back: self.look(sys._getframe())\n"
        "    def look(self, frame):\n"
        "        while frame is not None:\n"
        "            if frame.f_code.co_filename.endswith('rlm/__main__.py'):\n"
        "                os.kill(os.getpid(), 2)\n"
        "            frame = frame.f_back\n"
        "sys.meta_path.insert(0, Stops())\n",
        encoding="utf-8",
    )
    path = os.pathsep.join((str(tmp_path), str(Path(rlm.__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-m", "rlm", "--help"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_library_that_loads_leaves_ctrl_c_to_its_program() -> None:
    code = (
        "import signal, sys\n"
        "sys.argv[0] = sys.argv[1]\n"
        "import rlm\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    for program in ("/usr/bin/rlm", "/usr/bin/jupyter"):
        subprocess.run([sys.executable, "-c", code, program], check=True, timeout=60)


# ---------------------------------------------------------------- what takes its time

WAITING = """
import functools, sys, threading, time
import anyio, anyio.to_thread
import rlm
from executors.engine.stop import Stop
from rlm.cli import app, main, run, stoppable
from rlm.corpora import open_corpus
from rlm.options.options import CountOptions
from rlm.testing import ScriptedModel

how = sys.argv[1]
del sys.argv[1:]

def begun():
    print("begun", flush=True)

def waits(text):
    try:
        begun()
        sys.stdin.read()
    except KeyboardInterrupt:
        if how != "stubborn":
            raise
        print("no", flush=True)
        sys.stdin.read()
    return True

class Stuck(ScriptedModel):
    async def generate(self, request):
        begun()
        await anyio.to_thread.run_sync(time.sleep, 20)
        raise AssertionError("nobody waits so long")

def reads():
    begun()
    while True:
        time.sleep(0.002)
        yield str(time.monotonic_ns()), "a"

corpus, options = ["a"], CountOptions(judge=waits, run="run")
if how == "stuck":
    stoppable.Stop = functools.partial(Stop, grace=0.5)
    options = CountOptions(model=Stuck(), run="run")
if how == "reading":
    corpus = reads()

def go(args):
    question = rlm.YesNo(text="?")
    return run.run_count(question, open_corpus(corpus), options, None, as_json=False)

app._run = go
sys.exit(main())
"""


@pytest.fixture
def waiting(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    """A count that waits for something that does not hear that it was cancelled."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, getattr(request, "param", "waits")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()


@pytest.mark.case("K13-11", "K13-14", "D14")
def test_ctrl_c_is_answered_at_once_while_something_runs_that_does_not_hear_it(
    waiting: "subprocess.Popen[str]",
) -> None:
    waiting.send_signal(signal.SIGINT)
    assert says(waiting, STOPPING)
    out, err = waiting.communicate(timeout=20)  # which ends what it waits for
    assert waiting.returncode == 4
    assert "incomplete: interrupted\n    stopped by Ctrl-C\n" in out
    assert "Traceback" not in err
    assert receipt()["blocker"] == "interrupted"


@pytest.mark.case("S23", "K13-11")
def test_a_second_ctrl_c_ends_a_rule_that_blocks(waiting: "subprocess.Popen[str]") -> None:
    waiting.send_signal(signal.SIGINT)
    assert says(waiting, STOPPING)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=10) == 130
    out, err = waiting.communicate(timeout=20)
    assert err.endswith("stopped\n")
    assert "Traceback" not in err
    assert "stopped by Ctrl-C" in out
    assert receipt()["blocker"] == "cancelled"


@pytest.mark.case("S23")
@pytest.mark.parametrize("waiting", ["stuck"], indirect=True)
def test_a_thread_that_does_not_end_holds_nothing_up_beyond_the_grace(
    waiting: "subprocess.Popen[str]",
) -> None:
    waiting.send_signal(signal.SIGINT)
    begun = time.monotonic()
    _, err = waiting.communicate(timeout=15)
    assert time.monotonic() - begun < 8
    assert waiting.returncode == 130
    assert "Traceback" not in err
    assert Path("run/events.jsonl").exists()


@pytest.mark.parametrize("waiting", ["reading"], indirect=True)
def test_ctrl_c_while_the_source_is_read_cancels_since_nothing_was_paid_for(
    waiting: "subprocess.Popen[str]",
) -> None:
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=10)
    assert waiting.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize("waiting", ["stubborn"], indirect=True)
def test_a_third_ctrl_c_ends_what_does_not_end_otherwise(waiting: "subprocess.Popen[str]") -> None:
    waiting.send_signal(signal.SIGINT)
    assert says(waiting, STOPPING)
    for _ in range(20):  # a signal that comes while another is handled may count as one with it
        waiting.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            waiting.wait(timeout=1)
            break
    assert waiting.returncode == 130


# ---------------------------------------------------------------- groups within groups

NESTED = """
import queue, sys, threading
import anyio
from executors.engine.local import pull
from executors.engine.stop import Stop
from executors.errors import Interrupted
from rlm.cli.stopping import stopping

stop, journal = Stop(grace=0.2), queue.SimpleQueue()

def write():
    with open("journal", "w", encoding="utf-8") as file:
        while (line := journal.get()) is not None:
            file.write(f"{line}\\n")
        file.write("closed\\n")

async def work(n):
    journal.put(f"begun {n}")
    print("begun", flush=True)
    try:
        await anyio.sleep(0.01 if n % 2 else 60)
    finally:
        journal.put(f"ended {n}")

async def nested(depth):
    if depth == 0:
        return await pull(range(8), work, cap=4, settle=lambda _: None, stop=stop)
    async with anyio.create_task_group() as group:
        group.start_soon(nested, depth - 1)
        group.start_soon(anyio.sleep, 0.01)

async def main():
    with stopping(stop, sys.stderr):
        await nested(3)

writer = threading.Thread(target=write)
writer.start()
code = 0
try:
    anyio.run(main)
except* Interrupted:
    code = 4  # what is raised in here would come out in a group
except* KeyboardInterrupt:
    code = 130
finally:
    journal.put(None)
    writer.join()
sys.exit(code)
"""


@pytest.mark.case("S40")
@pytest.mark.parametrize(("presses", "code"), [(1, 4), (2, 130)])
def test_nested_groups_and_a_thread_that_writes_end_in_order(presses: int, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", NESTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(6):  # the four that take long are in flight
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    if presses == 2:
        assert says(process, STOPPING.replace("10 s", "0.2 s"))
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert "Traceback" not in err
    lines = Path("journal").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "closed"
    assert sum("begun" in line for line in lines) == sum("ended" in line for line in lines)
