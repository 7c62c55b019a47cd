"""A count as a whole: many records, with ledger, gate and events on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.row import Row

__all__ = ["rows", "short_records"]

_ROOT = Path(__file__).resolve().parents[2]
_RULE = """
import sys, time, rlm
started = time.perf_counter()
outcome = rlm.count_sync("fire?", sys.argv[1], terms=("fire",), run=sys.argv[2])
seconds = time.perf_counter() - started
peak = next(l for l in open("/proc/self/status") if l.startswith("VmHWM"))
print(outcome.result.count, seconds, int(peak.split()[1]) / 1024)
"""

_SCAN = """
import sys, rlm
from rlm.testing import ScriptedModel, judge_script

def now():
    lines = open("/proc/self/status").read()
    return [int(lines.split(name)[1].split()[0]) / 1024 for name in ("VmRSS:", "VmHWM:")]

def count(path, run):
    model = ScriptedModel(judge_script(lambda text: "fire" in text))
    return rlm.count_sync("fire?", path, model=model, concurrency=64, run=run).result.count

count(sys.argv[1], sys.argv[3])
before = now()[0]
print(count(sys.argv[2], sys.argv[4]), now()[1] - before)
"""


def short_records(path: Path, count: int) -> int:
    """Write a JSONL of short records; every seventh one mentions fire. Returns how many do."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            what = "a fire broke out" if n % 7 == 0 else "nothing happened"
            line = {"id": f"r{n}", "text": f"report {n}: {what} near the north gate"}
            file.write(json.dumps(line) + "\n")
    return -(-count // 7)


def _million(folder: Path) -> list[Row]:
    path = folder / "million.jsonl"
    true = short_records(path, 1_000_000)
    started = time.perf_counter()
    with path.open("rb") as file:
        seen = sum(b"fire" in json.loads(line)["text"].encode() for line in file)
    floor = time.perf_counter() - started
    done = subprocess.run(
        [sys.executable, "-c", _RULE, str(path), str(folder / "rule-run")],
        check=True,
        capture_output=True,
        text=True,
    )
    count, seconds, peak = done.stdout.split()
    if int(count) != true or seen != true:
        raise AssertionError(f"counted {count} of {true}")
    rate = 1_000_000 / float(seconds)
    return [
        Row(
            name="1,000,000 short records, rule judge: peak memory",
            ours=float(peak),
            unit="MB",
            bar=150,
        ),
        Row(
            name="1,000,000 short records, rule judge: time",
            ours=float(seconds),
            unit="s",
            bar=60,
            floor=floor,
            note=f"{rate:,.0f} records/s; floor: json.loads and `in`",
        ),
    ]


def _memory(folder: Path) -> list[Row]:
    """Growth over a process that counted a few records before, so that all its code is loaded."""
    few, many = folder / "few.jsonl", folder / "many.jsonl"
    short_records(few, 1_000)
    true = short_records(many, 200_000)
    files = [str(folder / name) for name in (few.name, many.name, "few-run", "many-run")]
    command = [sys.executable, "-c", _SCAN, *files]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT)
    count, growth = done.stdout.split()
    if int(count) != true:
        raise AssertionError(f"counted {count} of {true}")
    return [
        Row(
            name="200,000 records, chat judge, 2 passes, 64 in flight: growth of memory",
            ours=float(growth),
            unit="MB",
            bar=60,
            note="peak of the whole count over what the process had with all code loaded",
        )
    ]


async def _floor(windows: int, cap: int, latency: float) -> None:
    """Do the same number of waits with the same number in flight, and nothing else."""
    pending = iter(range(windows))

    async def worker() -> None:
        for _ in pending:
            await asyncio.sleep(latency)

    async with asyncio.TaskGroup() as group:
        for _ in range(cap):
            group.create_task(worker())


def _scripted(folder: Path) -> list[Row]:
    # The fakes load here, so that other groups of rows run without them.
    import rlm
    from rlm.testing import ScriptedModel, judge_script

    rlm.count_sync  # noqa: B018 - loads what counts: `make bench ARGS=start` has rows for that
    path = folder / "hundred-thousand.jsonl"
    true = short_records(path, 100_000)
    latency, cap = 0.005, 64
    script = judge_script(lambda text: "fire" in text)
    started = time.perf_counter()
    asyncio.run(_floor(2 * 100_000 // 8, cap, latency))
    floor = time.perf_counter() - started
    started = time.perf_counter()
    outcome = rlm.count_sync(
        "fire?",
        path,
        model=ScriptedModel(script, latency=latency),
        concurrency=cap,
        run=folder / "scripted-run",
    )
    seconds = time.perf_counter() - started
    rlm.close()
    if not isinstance(outcome, rlm.Completed) or outcome.result.count != true:
        raise AssertionError(f"counted {outcome}")
    return [
        Row(
            name="100,000 records, window 8, 2 passes, 5 ms, 64 in flight, in process",
            ours=seconds,
            unit="s",
            bar=1.25,
            floor=floor,
            relative=True,
            note="whole count: source, spool, gate, ledger, events; the fake's own work included",
        )
    ]


def rows() -> list[Row]:
    """Measure whole counts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_million(folder), *_scripted(folder), *_memory(folder)]
