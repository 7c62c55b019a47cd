"""Counts on a dask cluster: worker processes, a fake server on loopback."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from corpus.questions import YesNo
from corpus.results import Tally
from rlm.counts.run import CountRun
from rlm.counting import CountOutcome
from rlm.options import CountOptions
from rlm.outcome import Completed
from rlm.testing import Act, FakeServer, Received, judge_server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def records(count: int) -> list[tuple[str, str]]:
    return [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(count)]


@dataclass
class Server:
    """A judge, and how often it was asked the same."""

    fake: FakeServer
    asked: Counter[bytes] = field(default_factory=Counter[bytes])

    @property
    def repeats(self) -> int:
        return sum(count - 1 for count in self.asked.values())

    @property
    def model(self) -> str:
        return f"openai+{self.fake.base_url}:any"


@pytest.fixture
def server() -> Iterator[Server]:
    judge = judge_server(lambda text: "fire" in text)

    def answer(request: Received) -> Act:
        made.asked[request.body] += 1
        return judge(request)

    with FakeServer(answer) as fake:
        made = Server(fake)
        yield made


@pytest.fixture(scope="session", autouse=True)
def dasks_own_threads() -> None:
    """dask keeps one thread for the life of the process, made when it first needs it."""
    from distributed.utils import _offload_executor

    _offload_executor.submit(int).result()


async def counted(
    model: str, corpus: list[tuple[str, str]] | None, run: Path, **more: object
) -> CountOutcome:
    options = CountOptions(model=model, run=run, **more)  # type: ignore[arg-type]
    return await CountRun(YesNo(text="is it about fire?"), options).outcome(corpus)


def tally(outcome: CountOutcome) -> Tally:
    assert isinstance(outcome, Completed), outcome
    return outcome.result


async def test_a_cluster_counts_what_one_process_counts(server: Server, tmp_path: Path) -> None:
    corpus = records(4_500)
    here = await counted(server.model, corpus, tmp_path / "here")
    asked = Counter(server.asked)
    server.asked.clear()
    there = await counted(server.model, corpus, tmp_path / "there", engine="dask:2", concurrency=8)
    assert list(tally(there).matched_ids) == list(tally(here).matched_ids)
    assert server.asked == asked
    assert there.receipts.totals == here.receipts.totals
    assert server.fake.peak <= 8
