"""What the two roots of a run cost at its end: 200,000 records, and the log of their windows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.row import Row

__all__ = ["rows"]

_ROOT = Path(__file__).resolve().parents[2]
_MEASURE = """
import hashlib, sys, time, anyio
from pathlib import Path
from corpus.criterion import Criterion
from corpus.codes import MATCHED
from corpus.ledger import Ledger
from corpus.questions import YesNo
from corpus.results import tally
from corpus.sources import open_source
from corpus.spool import build_spool
from rlm.runs.roots import log_root, result_root

def now(name="VmRSS:"):
    return int(open("/proc/self/status").read().split(name)[1].split()[0]) / 1024

async def spooled(name, size):
    return await build_spool(open_source((f"r{n}", f"text {n}") for n in range(size)), folder / name)

def result(spool):
    ledger = Ledger(len(spool), passes=1)
    ledger._codes[:] = MATCHED
    return tally(spool, ledger, votes="any", judge="j")

def timed(work, *given):
    started = time.perf_counter()
    work(*given)
    return time.perf_counter() - started

def bare(count):
    for n in range(2 * count):  # a tree over n leaves takes 2n hashes
        hashlib.blake2b(b"x" * 64, digest_size=32).digest()

folder, criterion = Path(sys.argv[1]), Criterion(question=YesNo(text="?"))
few, many = anyio.run(spooled, "few", 1_000), anyio.run(spooled, "many", 200_000)
result_root(result(few), criterion)
whole = result(many)
before = now()
open("/proc/self/clear_refs", "w").write("5")  # the peak from here on
seconds = timed(result_root, whole, criterion)
growth = now("VmHWM:") - before
log = folder / "events.jsonl"
log.write_bytes(b"".join(b'{"kind":"window_finished","window":%d,"x":"%s"}\\n' % (n, b"x" * 200)
                         for n in range(150_000)))
print(seconds, timed(bare, 200_000), growth, timed(log_root, log))
"""


def rows() -> list[Row]:
    """Measure in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _MEASURE, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT)
    seconds, bare, growth, log = (float(number) for number in done.stdout.split())
    return [
        Row(
            name="content root of 200,000 records",
            ours=seconds,
            unit="s",
            bar=2,
            floor=bare,
            note="floor: 400,000 hashes of 64 bytes",
        ),
        Row(name="content root: growth of memory", ours=growth, unit="MB", bar=30),
        Row(name="log root of 150,000 events", ours=log, unit="s", bar=2),
    ]
