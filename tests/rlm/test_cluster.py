"""Counts on a dask cluster: real worker processes, a fake server on loopback."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from corpus.results import Tally
from executors.engine.stop import Stop
from rlm.outcome import Incomplete
from rlm.runs.manifest import Manifest
from tests.rlm.clusters import (
    Server,
    counted,
    judging,
    kill_a_worker,
    no_shared_disk,
    options,
    paid_twice,
    records,
    tally,
    workers,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="session", autouse=True)
def dasks_own_thread() -> None:
    """dask keeps one thread for the life of the process, made when it first needs it."""
    from distributed.utils import _offload_executor

    _offload_executor.submit(int).result()


@pytest.fixture
def server() -> Iterator[Server]:
    with judging(latency=0.01) as serving:
        yield serving


@pytest.mark.parametrize("crew", [2, pytest.param(8, marks=pytest.mark.case("S43"))])
async def test_a_cluster_counts_what_one_process_counts(
    crew: int, server: Server, tmp_path: Path
) -> None:
    """Eight processes write into one run directory, each its own segment."""
    corpus = records(4_500)
    here = await counted(corpus, options(server, tmp_path / "here"))
    asked = Counter(server.asked)
    server.asked.clear()
    chosen = options(server, tmp_path / "there", engine=f"dask:{crew}", concurrency=8)
    there = await counted(corpus, chosen)
    assert list(tally(there).matched_ids) == list(tally(here).matched_ids)
    assert server.asked == asked
    assert there.receipts.totals == here.receipts.totals
    roots = {Manifest.load(tmp_path / name).content_root for name in ("here", "there")}
    assert len(roots) == 1
    assert there.receipts.content_root == here.receipts.content_root


@pytest.mark.case("S03")
@pytest.mark.parametrize("disk", ["shared", "sent"])
async def test_workers_that_are_killed_cost_no_answer(
    disk: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four are killed, at 30 % and 60 %; with a shared disk, and with lines that are sent."""
    if disk == "sent":
        no_shared_disk(monkeypatch)
    corpus, cap = records(9_000), 8
    server.at = {675: kill_a_worker, 1_350: kill_a_worker}
    chosen = options(server, tmp_path / "run", engine="dask:4", concurrency=cap)
    outcome = await counted(corpus, chosen)
    assert tally(outcome).count == 1_286
    assert paid_twice(tmp_path / "run") == 0
    assert server.repeats <= cap
    assert server.fake.peak <= cap
    totals = outcome.receipts.totals
    assert totals.calls == 2_250
    unknown = server.fake.requests - totals.calls - totals.failed
    assert 0 <= unknown <= (cap // 2 if disk == "sent" else 0)  # those of two dead workers
    segments = len(list((tmp_path / "run" / "journal").glob("*.jsonl")))
    assert (segments == 1) == (disk == "sent")


@pytest.mark.case("S24")
async def test_slots_of_a_killed_worker_come_back(server: Server, tmp_path: Path) -> None:
    """It held 8 of 16; the others have all of them soon, and at no time more."""
    server.at = {300: kill_a_worker}
    chosen = options(server, tmp_path / "run", engine="dask:2", concurrency=16)
    assert tally(await counted(records(12_000), chosen)).count == 1_715
    assert max(server.busy[100:300]) == 16
    assert max(server.busy[-1_000:]) == 16
    assert server.fake.peak == 16


@pytest.mark.case("S56")
@pytest.mark.parametrize("disk", ["shared", "sent"])
async def test_a_stop_lets_calls_end_and_what_was_judged_stays(
    disk: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queued blocks are not sent any more, running ones end early, and no process is left."""
    if disk == "sent":
        no_shared_disk(monkeypatch)
    stop, run = Stop(), tmp_path / "run"
    server.at = {300: stop.ask}
    chosen = options(server, run, engine="dask:2", concurrency=8, stop=stop)
    stopped = await counted(records(9_000), chosen)
    assert isinstance(stopped, Incomplete)
    assert stopped.blocker == "interrupted"
    assert isinstance(stopped.best, Tally)
    assert 100 < stopped.best.count < 1_286
    assert server.fake.requests < 1_000
    assert workers() == []
    assert stopped.receipts.totals.calls == server.fake.requests
    whole = await counted(None, options(server, run))
    assert tally(whole).count == 1_286
    assert server.fake.requests == 2_250
    assert server.repeats == 0
