"""Search by words over 100,000 short records: building the index, and what a query takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.row import Row

__all__ = ["rows"]

_ROOT = Path(__file__).resolve().parents[2]
_MEASURE = """
import itertools, random, sqlite3, statistics, sys, time, anyio
from pathlib import Path
from corpus.exact import terms_predicate
from corpus.search import TermSearch
from corpus.sources import open_source
from corpus.spool import build_spool

chance = random.Random(1)
# Words as often as in a language: the n-th is n times rarer than the first.
words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(30_000)]
often = list(itertools.accumulate(1 / n for n in range(1, 30_001)))
texts = [" ".join(chance.choices(words, cum_weights=often, k=20)) for _ in range(100_000)]
folder = Path(sys.argv[1])

def now(name="VmRSS:"):
    return int(open("/proc/self/status").read().split(name)[1].split()[0]) / 1024

def bare():
    file = sqlite3.connect(folder / "bare.sqlite")
    file.execute("PRAGMA journal_mode = OFF")
    file.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='')")
    started = time.perf_counter()
    file.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts))
    file.commit()
    return time.perf_counter() - started

async def median(search, queries):
    taken = []
    for query in queries:
        started = time.perf_counter()
        await search.search(query)
        taken.append(1_000 * (time.perf_counter() - started))
    return statistics.median(taken)

async def main():
    spool = await build_spool(open_source(texts), folder / "spool")
    floor = bare()
    before = now()
    open("/proc/self/clear_refs", "w").write("5")  # the peak from here on
    started = time.perf_counter()
    search = await TermSearch.open(spool, folder / "spool")
    built = time.perf_counter() - started
    growth = now("VmHWM:") - before
    rare = [" ".join(chance.sample(words[500:], 3)) for _ in range(100)]
    asked = [" ".join(words[:4] + chance.sample(words[1_000:], 3)) for _ in range(100)]
    common = [" ".join(chance.sample(words[:10], 5)) for _ in range(30)]
    queries = [await median(search, some) for some in (rare, asked, common)]
    holds = terms_predicate([words[700]])
    started = time.perf_counter()
    sum(holds(record.text) for record in spool)
    print(built, floor, growth, *queries, time.perf_counter() - started)

anyio.run(main)
"""


def rows() -> list[Row]:
    """Measure in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _MEASURE, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT)
    built, floor, growth, rare, asked, common, exact = (float(n) for n in done.stdout.split())
    return [
        Row(
            name="search index of 100,000 short records",
            ours=built,
            unit="s",
            bar=2.5,
            relative=True,
            floor=floor,
            note=f"{100_000 / built:,.0f} records/s; floor: the texts into bare FTS5",
        ),
        Row(name="search index: growth of memory", ours=growth, unit="MB", bar=60),
        Row(name="query of three words", ours=rare, unit="ms", bar=15, note="median of 100"),
        Row(
            name="question with four common words",
            ours=asked,
            unit="ms",
            bar=30,
            note="median of 100",
        ),
        Row(name="query of common words alone", ours=common, unit="ms", bar=200),
        Row(name="exact match over 100,000 records", ours=exact, unit="s", bar=3),
    ]
