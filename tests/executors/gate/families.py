"""Starting processes of a run family, letting them go at once, and killing some."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from executors.gate.allowance import Drawn

__all__ = ["billed", "ends", "family", "go", "kill", "process"]

_SPENDER = Path(__file__).with_name("spender.py")
Process = subprocess.Popen[str]


def process(*args: object, environment: Mapping[str, str] | None = None) -> Process:
    """Start a process and wait until it is ready to go."""
    started = subprocess.Popen(
        [sys.executable, str(_SPENDER), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(environment or {})},
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


@contextmanager
def family(size: int, *args: object) -> Generator[list[Process]]:
    """Start some processes; end those that are still there at the end."""
    members = [process(*args) for _ in range(size)]
    try:
        yield members
    finally:
        for member in members:
            kill(member)


def go(*members: Process) -> None:
    """Let processes go."""
    for member in members:
        assert member.stdin is not None
        member.stdin.write("\n")
        member.stdin.flush()


def ends(member: Process) -> str:
    """Wait for a process, and return what it said."""
    said, _ = member.communicate(timeout=60)
    assert member.returncode == 0
    return said.strip()


def kill(member: Process) -> None:
    """SIGKILL it, wherever it is."""
    if member.poll() is None:
        member.send_signal(signal.SIGKILL)
    member.communicate()


def billed(bill: Path) -> dict[str, Drawn]:
    """Return what the server wants of each; a request that broke off in the middle is none."""
    found: dict[str, Drawn] = {}
    for line in bill.read_text(encoding="utf-8").splitlines():
        holder, usd = line.split(" ")
        one = Drawn(calls=1, tokens=5, usd=Decimal(usd))
        found[holder] = found.get(holder, Drawn()) + one
    return found
