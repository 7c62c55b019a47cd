"""Memory does not grow with the runs of a process, with a log, or with the ids of a result."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_HEAD = """
import sys
from pathlib import Path

def now(name="VmRSS:"):
    return int(open("/proc/self/status").read().split(name)[1].split()[0]) / 1024

folder = Path(sys.argv[1])
"""


def measured(script: str, folder: Path) -> list[float]:
    """Run a script in a process of its own and return the numbers that it prints."""
    command = [sys.executable, "-c", _HEAD + script, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return [float(number) for number in done.stdout.split()]


@pytest.mark.case("S35")
def test_fifty_runs_in_one_process_leave_its_memory_as_it_was(tmp_path: Path) -> None:
    growth, runs = measured(
        """
import rlm
from rlm.testing import ScriptedModel, judge_script

texts = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(300)]

def count(n):
    model = ScriptedModel(judge_script(lambda text: "fire" in text))
    outcome = rlm.count_sync("fire?", texts, model=model, run=folder / str(n))
    assert outcome.result.count == 43

for n in range(10):  # until allocators have what they want
    count(n)
before = now()
for n in range(10, 60):
    count(n)
print(now() - before, 50)
rlm.close()
""",
        tmp_path,
    )
    assert runs == 50
    assert abs(growth) <= 10


@pytest.mark.case("S38")
def test_the_receipt_of_many_records_is_folded_line_by_line(tmp_path: Path) -> None:
    growth, calls, sessions = measured(
        """
from datetime import UTC, datetime
from corpus.events import WindowFinished
from executors.events import CallFinished, CallStarted
from executors.ids import NodeId
from executors.usage import Usage
from rlm.events import RunStarted, event_line
from rlm.receipts.receipts import ReceiptFold
from rlm.runs.history import read_events
from rlm.runs.roots import log_root

at, node, path = datetime(2026, 1, 1, tzinfo=UTC), NodeId("root.2.0"), folder / "events.jsonl"

def events(first, last):
    yield RunStarted(node=node, at=at, run="r", task="?", options={}, version="0")
    for n in range(first, last):
        key = f"{n:032x}"
        yield CallStarted(node=node, at=at, key=key, role="judge", model="m")
        yield CallFinished(
            node=node, at=at, key=key, role="judge", model="m", stop="end",
            usage=Usage(input=9, output=9), cost=None, attempts=1, seconds=0.1, source="paid",
        )
        yield WindowFinished(node=node, at=at, window=n, pass_index=0, items=8, unresolved=0)

def write(last):
    with path.open("wb") as file:
        file.writelines(event_line(event) for event in events(0, last))

def receipts():
    fold = ReceiptFold()
    for event in read_events(path):
        fold(event)
    found = fold.receipts(folder, {}, log_root=log_root(path))
    found.to_json()
    return found

write(100)
receipts()
before = now()
write(50_000)  # 200,000 records, 8 a window, 2 passes
found = receipts()
print(now("VmHWM:") - before, found.totals.calls, len(found.sessions))
""",
        tmp_path,
    )
    assert (calls, sessions) == (50_000, 1)
    assert growth <= 30  # 100 is the bar; a list of the events alone would take 60


@pytest.mark.case("S44")
def test_a_million_ids_of_a_result_stay_on_disk_and_out_of_the_receipt(tmp_path: Path) -> None:
    growth, count, size, root_seconds = measured(
        """
import time, anyio, numpy as np
from corpus.criterion import Criterion
from corpus.codes import MATCHED
from corpus.ledger import Ledger
from corpus.questions import YesNo
from corpus.results import tally
from corpus.sources import open_source
from corpus.spool import build_spool
from corpus.tally_file import load_tally, save_tally
from rlm.receipts.receipts import ReceiptFold
from rlm.runs.roots import result_root
from rlm.summary import summarise

async def spooled(name, size):
    return await build_spool(open_source((f"r{n}", f"text {n}") for n in range(size)), folder / name)

def result(spool, verdicts):
    ledger = Ledger(len(spool), passes=1)
    ledger._codes[:] = MATCHED
    save_tally(tally(spool, ledger, votes="any", judge="j"), verdicts)
    found = load_tally(verdicts, spool)
    started = time.perf_counter()
    root = result_root(found, Criterion(question=YesNo(text="?")))
    seconds = time.perf_counter() - started
    receipts = ReceiptFold().receipts(folder, summarise(found), content_root=root)
    last = ""
    for last in found.matched_ids:
        pass
    assert last == f"r{len(spool) - 1}" == found.matched_ids[len(spool) - 1]
    return found.count, len(receipts.to_json()), seconds

few, many = anyio.run(spooled, "few", 1_000), anyio.run(spooled, "many", 1_000_000)
result(few, folder / "few-verdicts")
before = now()
open("/proc/self/clear_refs", "w").write("5")  # the peak from here on
count, size, seconds = result(many, folder / "many-verdicts")
print(now("VmHWM:") - before, count, size, seconds)
""",
        tmp_path,
    )
    assert count == 1_000_000
    assert size < 64 * 1024
    assert growth <= 150  # of which the mapped files of the spool are 60
    assert root_seconds < 60
