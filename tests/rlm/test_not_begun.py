"""A start that cannot happen leaves nothing of a new run, and a run that was there as it was."""

import re
import sys
from pathlib import Path

import pytest

from executors.errors import ConfigError, MissingExtra
from rlm import Caps, Completed, Incomplete, LabelsError, count, plan_count, resume
from rlm.runs.home import data_home
from rlm.testing import FakeServer, judge_server

pytestmark = pytest.mark.anyio

NOBODY = "dask://127.0.0.1:9"
TEXTS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(40)]


def fire(text: str) -> bool:
    return "fire" in text


def files(run: Path) -> dict[str, bytes]:
    """Return all that is the run's; what is made anew from it, and the lock, are not."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name != "lock" and "index.sqlite" not in path.name
    }


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executors.engine.dask_cluster._CONNECT", 0.2)


@pytest.fixture
def without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)


@pytest.mark.usefixtures("without_dask")
@pytest.mark.parametrize("named", [True, False])
async def test_a_new_run_that_lacks_an_extra_leaves_nothing(named: bool, tmp_path: Path) -> None:
    run = tmp_path / "d1"
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:m"
        with pytest.raises(MissingExtra):
            await count("fire?", TEXTS, model=spec, engine="dask", run=run if named else None)
    assert not run.exists()
    assert not data_home().exists() or not list(data_home().iterdir())


@pytest.mark.parametrize("there", [True, False])
async def test_a_new_run_whose_cluster_does_not_answer_leaves_nothing(
    there: bool, tmp_path: Path
) -> None:
    pytest.importorskip("distributed")
    run = tmp_path / "d1"
    if there:
        run.mkdir()
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:m"
        with pytest.raises(ConfigError):
            await count("fire?", TEXTS, model=spec, engine=NOBODY, run=run)
        assert server.accepted == 0
    assert list(tmp_path.rglob("*")) == ([run] if there else [])


async def test_a_run_that_was_there_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    run = tmp_path / "run"
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:m"
        first = await count("fire?", TEXTS, model=spec, run=run, caps=Caps(calls=4), passes=2)
        assert isinstance(first, Incomplete)
        before = files(run)
        with pytest.raises(ConfigError, match=re.escape(NOBODY)):
            await resume(run, engine=NOBODY, caps=Caps(calls=99))
        assert files(run) == before
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(MissingExtra):
            await resume(run, engine="dask")
        assert files(run) == before
        assert isinstance(await resume(run, caps=Caps(calls=99)), Completed)


async def test_records_that_a_dry_run_read_outlive_a_start_that_cannot_happen(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    await plan_count("fire?", TEXTS, terms=("fire",), run=run)
    before = files(run)
    with pytest.raises(LabelsError):
        await resume(run, labels={"nobody": "yes"})
    assert files(run) == before
