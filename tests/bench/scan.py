"""A count as a whole: many records, with ledger, gate and events on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from corpus.criterion import Criterion
from corpus.prompts import ask_message, judge_system, messages
from corpus.questions import YesNo
from executors.messages import ModelRequest
from executors.models.base import Model
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


# ---------------------------------------------------------------- a whole count, in its parts

_COUNTED = 100_000
_WINDOW, _PASSES, _IN_FLIGHT, _LATENCY = 8, 2, 64, 0.005
_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Seconds of one count, by part; CPU is that of all threads."""

    before: float
    """Until the judging begins: the directory, the source, the spool."""
    scan: float
    after: float
    """What is left once all is judged: the journal's end, the result, roots and receipt."""
    cpu: float = 0.0

    @property
    def whole(self) -> float:
        return self.before + self.scan + self.after


async def _bare(path: Path, model: Model) -> tuple[_Times, int]:
    """Do the same work in bare asyncio: read, ask about each window in each pass, count.

    Its prompts are ours, since the model's script reads them. It keeps nothing on disk, hashes
    nothing, and knows no bounds, no events and no errors.
    """
    started = time.perf_counter()
    with path.open("rb") as file:
        texts: list[str] = [json.loads(line)["text"] for line in file]
    read = time.perf_counter()
    system = judge_system(Criterion(question=YesNo(text="fire?")), quotes=False)
    pending = iter([n for _ in range(_PASSES) for n in range(0, len(texts), _WINDOW)])
    matched: set[int] = set()

    async def worker() -> None:
        for first in pending:
            shown = ask_message(texts[first : first + _WINDOW])
            request = ModelRequest(messages=messages(system, shown), max_tokens=1_120)
            answers = json.loads((await model.generate(request)).text)
            matched.update(first + int(n) - 1 for n, word in answers.items() if word == "yes")

    async with asyncio.TaskGroup() as group:
        for _ in range(_IN_FLIGHT):
            group.create_task(worker())
    scanned = time.perf_counter()
    count = len(matched)
    ended = time.perf_counter()
    times = _Times(before=read - started, scan=scanned - read, after=ended - scanned)
    return times, count


def _counted(
    path: Path, model: Model, run: Path, *, gate: Mapping[str, object] | None = None
) -> tuple[_Times, int]:
    """Count, with everything on; the times of the parts are those of the run's own events."""
    import rlm  # so that other groups of rows run without it

    cpu, started = time.process_time(), datetime.now(UTC)
    outcome = rlm.count_sync("fire?", path, model=model, concurrency=_IN_FLIGHT, run=run, gate=gate)
    ended, cpu = datetime.now(UTC), time.process_time() - cpu
    assert isinstance(outcome, rlm.Completed), outcome
    (judged,) = [node for node in outcome.receipts.nodes if node.id == "root.2"]
    assert judged.started is not None
    assert judged.finished is not None
    times = _Times(
        before=(judged.started - started).total_seconds(),
        scan=(judged.finished - judged.started).total_seconds(),
        after=(ended - judged.finished).total_seconds(),
        cpu=cpu,
    )
    return times, outcome.result.count


def _scripted(folder: Path) -> list[Row]:
    """Measure a count of a scripted model as a whole and in its parts, in turns with its floor.

    The bar of the whole is that of its longest part too. What stands around the scan has a bar of
    its own, or the whole would tell nobody where it is missed: as much as the bar of the whole would
    leave for it if the scan were at its floor. It cannot all be hidden, since no call is made before
    the source is read to its end, and no result is told before it is on the disk.
    """
    import rlm
    from rlm.testing import ScriptedModel, judge_script

    rlm.count_sync  # noqa: B018 - loads what counts: `make bench ARGS=start` has rows for that
    path = folder / "hundred-thousand.jsonl"
    true = short_records(path, _COUNTED)
    floors: list[_Times] = []
    ours: list[_Times] = []
    governed: list[_Times] = []
    for n in range(_ROUNDS):
        model = ScriptedModel(judge_script(lambda text: "fire" in text), latency=_LATENCY)
        floor, seen = asyncio.run(_bare(path, model))
        times, count = _counted(path, model, folder / f"scripted-run-{n}")
        under, held = _counted(path, model, folder / f"governed-run-{n}", gate={})
        if not count == seen == held == true:
            raise AssertionError(f"counted {count}, {seen} and {held} of {true}")
        floors.append(floor)
        ours.append(times)
        governed.append(under)
    rlm.close()
    return _parts(ours, governed, floors)


def _cpu(times: list[_Times]) -> float:
    """Return the microseconds of CPU a window."""
    return median([one.cpu for one in times]) / (_PASSES * _COUNTED // _WINDOW) * 1e6


def _parts(ours: list[_Times], governed: list[_Times], floors: list[_Times]) -> list[Row]:
    whole = median([times.whole for times in floors])
    name = f"{_COUNTED:,} records, window {_WINDOW}, {_PASSES} passes, 5 ms, {_IN_FLIGHT} in flight"

    def row(
        part: str,
        of: Callable[[_Times], float],
        *,
        floor: float,
        bar: float,
        note: str,
        taken: list[_Times] = ours,
    ) -> Row:
        seconds = median([of(times) for times in taken])
        return Row(
            name=f"{name}: {part}",
            ours=seconds,
            unit="s",
            bar=bar,
            floor=floor,
            relative=True,
            note=note,
        )

    scan = median([times.scan for times in floors])
    return [
        row(
            "whole",
            lambda times: times.whole,
            floor=whole,
            bar=1.25,
            note=f"median of {_ROUNDS}; ledger, gate, events on; {_cpu(ours):.0f} us CPU a window",
        ),
        row(
            "whole, under a gate",
            lambda times: times.whole,
            floor=whole,
            bar=1.25,
            note=f"budget and audit on disk too; {_cpu(governed):.0f} us CPU a window",
            taken=governed,
        ),
        row(
            "scan",
            lambda times: times.scan,
            floor=scan,
            bar=1.25,
            note="floor: the same prompts and answers in bare asyncio",
        ),
        row(
            "before and after it",
            lambda times: times.before + times.after,
            floor=whole,
            bar=0.25,
            note="source, spool, result, roots, receipt; against the floor of the whole",
        ),
    ]


def rows() -> list[Row]:
    """Measure whole counts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_million(folder), *_scripted(folder), *_memory(folder)]
