"""Counts on a dask cluster: real worker processes, a fake server on loopback."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from tests.rlm.clusters import (
    Server,
    counted,
    judging,
    kill_a_worker,
    options,
    paid_twice,
    records,
    tally,
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


async def test_a_cluster_counts_what_one_process_counts(server: Server, tmp_path: Path) -> None:
    corpus = records(4_500)
    here = await counted(corpus, options(server, tmp_path / "here"))
    asked = Counter(server.asked)
    server.asked.clear()
    chosen = options(server, tmp_path / "there", engine="dask:2", concurrency=8)
    there = await counted(corpus, chosen)
    assert list(tally(there).matched_ids) == list(tally(here).matched_ids)
    assert server.asked == asked
    assert there.receipts.totals == here.receipts.totals


@pytest.mark.case("S03")
async def test_workers_that_are_killed_cost_no_answer(server: Server, tmp_path: Path) -> None:
    """Two of four are killed, at 30 % and 60 %."""
    corpus, cap = records(9_000), 8
    server.at = {675: kill_a_worker, 1_350: kill_a_worker}
    chosen = options(server, tmp_path / "run", engine="dask:4", concurrency=cap)
    outcome = await counted(corpus, chosen)
    assert tally(outcome).count == 1_286
    assert paid_twice(tmp_path / "run") == 0
    assert server.repeats <= cap
    assert server.fake.peak <= cap
    totals = outcome.receipts.totals
    assert totals.calls + totals.failed == server.fake.requests
    assert totals.calls == 2_250
