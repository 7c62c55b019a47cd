"""The handle on the child process that runs llama.cpp, with small scripts in its place."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from executors.models.local.backends import EngineRefusal, EngineSetup
from executors.models.local.isolation import can_cut_network, cut_network
from executors.models.local.worker import CHILD, LlamaWorker, Ticket, WorkerDied

SETUP = EngineSetup(backend="xllamacpp", path="/nowhere", window=64, threads=1, chat_template=None)

CHILD_SCRIPT = """
import json, os, signal, sys, time
setup = json.loads(sys.stdin.readline())
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    match question["op"]:
        case "pid": reply = {"pid": os.getpid()}
        case "environment": reply = {"environment": dict(os.environ)}
        case "refuse": reply = {"refusal": "context", "what": "too long"}
        case "crash":
            print("the tail of the log", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang": open(question["sign"], "w").close(); time.sleep(60)
    print(json.dumps(reply), flush=True)
"""


def worker(script: str = CHILD_SCRIPT) -> LlamaWorker:
    return LlamaWorker(SETUP, command=(sys.executable, "-c", script))


def pid(of: LlamaWorker) -> int:
    return int(of.ask({"op": "pid"}, Ticket())["pid"])


def test_the_child_is_started_once_and_ends_on_close() -> None:
    used = worker()
    first = pid(used)
    assert pid(used) == first
    used.close()
    assert not Path(f"/proc/{first}").exists()


def test_a_closed_worker_may_be_used_again() -> None:
    used = worker()
    first = pid(used)
    used.close()
    assert pid(used) != first
    used.close()


def test_a_refusal_leaves_the_child_alive() -> None:
    used = worker()
    first = pid(used)
    with pytest.raises(EngineRefusal, match="too long") as caught:
        used.ask({"op": "refuse"}, Ticket())
    assert caught.value.kind == "context"
    assert pid(used) == first
    used.close()


@pytest.mark.case("K12-8")
def test_a_crash_is_told_with_its_signal_and_log_and_the_next_question_starts_anew() -> None:
    used = worker()
    first = pid(used)
    with pytest.raises(WorkerDied, match=r"SIGSEGV: the tail of the log"):
        used.ask({"op": "crash"}, Ticket())
    assert pid(used) != first
    used.close()


def test_a_child_that_died_while_idle_is_replaced() -> None:
    used = worker()
    first = pid(used)
    os.kill(first, signal.SIGKILL)
    while "\nState:\tZ" not in Path(f"/proc/{first}/status").read_text(encoding="ascii"):
        pass
    assert pid(used) != first
    used.close()


def test_a_child_that_never_gets_ready_is_told_with_its_log() -> None:
    with pytest.raises(WorkerDied, match="status 3: no such thing"):
        worker("import sys; print('no such thing', file=sys.stderr); sys.exit(3)").ask({}, Ticket())


def test_a_process_that_cannot_be_started_is_told() -> None:
    with pytest.raises(WorkerDied, match=r"cannot be started: .*no/such/python"):
        LlamaWorker(SETUP, command=("/no/such/python",)).ask({}, Ticket())


def test_a_question_is_taken_back_by_ending_the_child(tmp_path: Path) -> None:
    used, ticket, sign = worker(), Ticket(), tmp_path / "sign"
    died: list[WorkerDied] = []

    def hang() -> None:
        try:
            used.ask({"op": "hang", "sign": str(sign)}, ticket)
        except WorkerDied as error:
            died.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    while not sign.exists():
        pass
    used.kill(Ticket())  # somebody else's: nothing happens
    used.kill(ticket)
    thread.join()
    assert "SIGKILL" in str(died[0])
    used.close()


def test_a_question_taken_back_before_its_turn_starts_nothing() -> None:
    used, ticket = worker("raise SystemExit"), Ticket()
    used.kill(ticket)
    with pytest.raises(WorkerDied, match="cancelled"):
        used.ask({"op": "pid"}, ticket)


def test_no_key_of_the_environment_reaches_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("HF_TOKEN", "canary")
    used = worker()
    environment = used.ask({"op": "environment"}, Ticket())["environment"]
    assert "canary" not in json.dumps(environment)
    assert environment["OMP_NUM_THREADS"] == "1"
    used.close()


def test_the_real_child_refuses_weights_that_are_none(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    used = LlamaWorker(SETUP, command=CHILD)
    with pytest.raises(EngineRefusal, match="cannot load"):
        used.ask({"op": "tokenize", "text": "x"}, Ticket())


@pytest.mark.skipif(not can_cut_network(), reason="no filter is known for this system")
def test_a_process_cut_off_the_network_keeps_local_sockets_alone() -> None:
    script = (
        "import socket, sys; from executors.models.local.isolation import cut_network\n"
        "assert cut_network()\n"
        "socket.socket(socket.AF_UNIX).close()\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):\n"
        "    try: socket.socket(family)\n"
        "    except PermissionError: pass\n"
        "    else: sys.exit(family)\n"
    )
    root = str(Path(cut_network.__code__.co_filename).parents[2])
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": root})
