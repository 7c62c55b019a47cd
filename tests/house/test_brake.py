"""The brakes of `tests/conftest.py`, each seen catching what it is there for."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"

OFFENDERS = """
import asyncio, os, socket, subprocess, sys, threading, time
import pytest

def test_hides_a_refused_connection():
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except Exception:
        pass

def test_hides_a_name_lookup():
    try:
        socket.getaddrinfo("example.invalid", 80)
    except Exception:
        pass

def test_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(20,), daemon=True).start()

def test_leaves_a_process():
    globals()["kept"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"])

def test_leaves_a_socket():
    globals()["plug"] = socket.socket()

@pytest.mark.anyio
async def test_leaves_a_task():
    globals()["task"] = asyncio.get_running_loop().create_task(asyncio.sleep(20))

@pytest.mark.anyio
async def test_is_clean():
    a, b = socket.socketpair()
    with a, b:
        await asyncio.to_thread(os.getpid)
        assert "OPENAI_API_KEY" not in os.environ

def test_stops_the_process_that_was_left():
    kept.kill(); kept.wait(); plug.close()
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says about the offenders when they run under our conftest."""
    folder = tmp_path_factory.mktemp("offenders")
    (folder / "conftest.py").write_bytes(CONFTEST.read_bytes())
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_offenders.py").write_text(OFFENDERS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(folder)]
    env = os.environ | {"OPENAI_API_KEY": "sk-not-a-key", "COLUMNS": "300"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env=env, cwd=folder
    )
    return done.stdout


@pytest.mark.parametrize(
    ("test", "complaint"),
    [
        ("hides_a_refused_connection", "tests reach loopback alone, this one tried"),
        ("hides_a_name_lookup", "tests reach loopback alone, this one tried"),
        ("leaves_a_thread", "left behind: {'threads': ['Thread-"),
        ("leaves_a_process", "left behind: {'child processes': ["),
        ("leaves_a_socket", "left behind: {'sockets': ['socket:["),
        ("leaves_a_task", "tasks left behind"),
    ],
)
def test_an_offender_is_caught_even_when_it_hides_its_deed(
    report: str, test: str, complaint: str
) -> None:
    lines = [line for line in report.splitlines() if line.startswith("ERROR") and test in line]
    assert len(lines) == 1
    assert complaint in lines[0]


def test_a_clean_test_passes_under_the_brakes(report: str) -> None:
    assert "PASSED test_offenders.py::test_is_clean" in report
    assert "ERROR test_offenders.py::test_is_clean" not in report


def test_another_machine_is_refused_and_loopback_is_not(refused_connections: list[str]) -> None:
    with pytest.raises(RuntimeError, match="loopback alone"), socket.socket() as plug:
        plug.connect(("198.51.100.7", 443))
    refused_connections.clear()
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
