"""How long it takes until something can be done: imports and help, as whole processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from tests.bench.row import Row

__all__ = ["rows"]

_RUNS = 9


def _seconds(*args: str) -> float:
    """Return the median wall time of a fresh interpreter, which is as warm as the disk cache."""
    times: list[float] = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, *args], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def rows() -> list[Row]:
    """Measure `import rlm` (the interpreter's own start taken off) and `rlm --help`."""
    bare = _seconds("-c", "pass")
    imported = _seconds("-c", "import rlm")
    helped = _seconds("-m", "rlm", "--help")
    return [
        Row(name="import rlm", ours=imported - bare, unit="s", bar=0.25, note=f"bare {bare:.3f} s"),
        Row(name="rlm --help", ours=helped, unit="s", bar=0.5, floor=bare, note="whole process"),
    ]
