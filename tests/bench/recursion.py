"""Task trees: what a node costs beside its calls, and what a run costs beside its nodes.

All rows have journal, gate and events on, in a run directory of their own. Floors are the same
calls in bare asyncio, in the same run.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from unittest.mock import patch

import rlm
from executors.messages import ModelRequest
from executors.models.fakes.scripted import Turn, calls_reply
from rlm.testing import ScriptedModel
from tests.bench.row import Row

__all__ = ["rows"]

_ROUNDS = 5
_TASK = "design and implement the whole pipeline across the entire system"
_CHILDREN, _LATENCY, _AT_ONCE = 64, 0.020, 4


def rows() -> list[Row]:
    """Measure a broad tree, and a run with next to nothing in it."""
    return [_broad(), _empty()]


def _timed(work: Callable[[Path], object]) -> float:
    found: list[float] = []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            started = time.perf_counter()
            work(Path(name) / "run")
            found.append(time.perf_counter() - started)
    return median(found)


def _spawning(request: ModelRequest) -> Turn:
    if request.messages[-1].role == "tool":
        return "together"
    if request.messages[1].content != _TASK:
        return "done"
    children = [{"subtask": f"list part {n}"} for n in range(_CHILDREN)]
    return calls_reply(*[("spawn_child", child) for child in children])


def _broad() -> Row:
    def ours(run: Path) -> None:
        model = ScriptedModel(_spawning, latency=_LATENCY)
        wiring = rlm.Wiring(model=model, concurrency=_AT_ONCE)
        outcome = rlm.recurse_sync(_TASK, wiring, run=run)
        assert isinstance(outcome, rlm.Completed)

    async def bare() -> None:
        places = asyncio.Semaphore(_AT_ONCE)

        async def child() -> None:
            async with places:
                await asyncio.sleep(_LATENCY)

        await asyncio.sleep(_LATENCY)
        async with asyncio.TaskGroup() as group:
            for _ in range(_CHILDREN):
                group.create_task(child())
        await asyncio.sleep(_LATENCY)

    floor = _timed(lambda _: asyncio.run(bare()))
    return Row(
        name=f"{_CHILDREN} children at {_LATENCY * 1000:g} ms, {_AT_ONCE} at once",
        ours=_timed(ours) * 1000,
        floor=floor * 1000,
        unit="ms",
        bar=1.2,
        relative=True,
        note="journal, gate and events on",
    )


def _empty() -> Row:
    synced = 0

    def counted(handle: int) -> None:
        nonlocal synced
        synced += 1
        real(handle)

    def run(directory: Path) -> None:
        outcome = rlm.recurse_sync("list the files", ScriptedModel("none"), run=directory)
        assert isinstance(outcome, rlm.Completed)

    real = os.fsync
    run_once = tempfile.mkdtemp()
    run(Path(run_once) / "warm")  # imports
    with patch("os.fsync", counted), patch("os.fdatasync", counted), suppress(OSError):
        run(Path(run_once) / "counted")
    took = _timed(run)
    return Row(
        name="a run of one call that takes no time",
        ours=took * 1000,
        unit="ms",
        bar=20,
        note=f"directory, manifest, journal, receipt; {synced} times synced, "
        f"{_sync_time() * 1000:.2f} ms each on this disk",
    )


def _sync_time() -> float:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "file"
        with file.open("wb") as handle:
            found: list[float] = []
            for n in range(20):
                handle.write(json.dumps({"n": n}).encode())
                handle.flush()
                started = time.perf_counter()
                os.fdatasync(handle.fileno())
                found.append(time.perf_counter() - started)
        return median(found)
