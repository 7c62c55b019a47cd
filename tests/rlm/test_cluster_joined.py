"""Counts on a cluster that was there before, whose workers nobody starts anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from corpus.results import Tally
from executors.engine.dask import DaskEngine
from executors.errors import ConfigError
from rlm.outcome import Incomplete
from tests.rlm.clusters import Server, counted, joined, judging, options, paid_twice, records, tally

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

OLDER = "import rlm._version\nrlm._version.__version__ = '0.0.1'\n"
WITHOUT = "import sys\nsys.modules['executors.engine.unit_host'] = None\n"


@pytest.fixture
def server() -> Iterator[Server]:
    with judging(latency=0.01) as serving:
        yield serving


async def test_a_count_whose_workers_all_die_ends_with_what_there_is(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits a while for a new one, says so, and goes on later where it stopped."""
    defaults = DaskEngine.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "patience", 3.0)
    run = tmp_path / "run"
    with joined(tmp_path, None, None) as cluster:
        server.at = {400: cluster.kill}
        chosen = options(server, run, engine=cluster.engine, concurrency=8)
        stopped = await counted(records(6_000), chosen)
    assert isinstance(stopped, Incomplete)
    assert stopped.blocker == "halted"
    assert "worker" in stopped.missing[0]
    assert isinstance(stopped.best, Tally)
    whole = await counted(None, options(server, run))
    assert tally(whole).count == 858
    assert server.repeats <= 8
    assert paid_twice(run) == 0
    assert whole.receipts.totals.calls == 1_500


async def test_a_worker_takes_the_key_from_its_own_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator's has one and the worker's has not, so that it cannot judge."""
    run = tmp_path / "run"
    with joined(tmp_path, None) as cluster:
        monkeypatch.setenv("SOME_KEY", "sk-canary-0123456789")
        chosen = options(server, run, engine=cluster.engine, key_env="SOME_KEY")
        stopped = await counted(records(50), chosen)
    assert isinstance(stopped, Incomplete)
    assert stopped.missing[0].startswith(
        "a worker cannot judge: the environment variable 'SOME_KEY'"
    )
    assert server.fake.requests == 0
    written = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert b"canary" not in written


@pytest.mark.parametrize(
    ("preload", "said"),
    [(OLDER, "has version 0.0.1"), (WITHOUT, "cannot import")],
    ids=["older", "without"],
)
async def test_a_worker_that_cannot_run_units_is_refused_before_anything_is_spent(
    preload: str, said: str, server: Server, tmp_path: Path
) -> None:
    with joined(tmp_path, None, preload) as cluster:
        chosen = options(server, tmp_path / "run", engine=cluster.engine)
        with pytest.raises(ConfigError, match=said) as raised:
            await counted(records(100), chosen)
    assert "install rlm-recurse==" in str(raised.value)
    assert server.fake.requests == 0
