"""Runs that are kept: which there are, which may go, and which go by themselves."""

import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest

from executors.journal.lock import RunLock, lock_holder
from rlm import Caps, ConfigError, Price, PriceTable, count
from rlm.cli.app import main
from rlm.runs.home import data_home
from rlm.runs.keeping import delete_run, expire_runs, list_runs, outdated, read_entry
from rlm.runs.manifest import Manifest
from rlm.testing import ScriptedModel, judge_script

RECORDS = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(40)]
NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("RLM_KEEP_RUNS_DAYS", raising=False)
    return data_home()


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


async def made(**options: object) -> Path:
    outcome = await count("fire?", RECORDS, **{"terms": ("fire",), **options})  # type: ignore[arg-type]
    return outcome.receipts.directory


def aged(run: Path, days: int) -> Path:
    """Make a run older, and name it so."""
    manifest = Manifest.load(run)
    then = NOW - timedelta(days=days)
    ended = None if manifest.last.ended is None else then
    id_ = f"{then:%Y%m%d-%H%M%S}-{run.name[-6:]}"
    manifest.with_last(started=then, ended=ended).model_copy(update={"run": id_}).save(run)
    from executors.ids import RunId
    from rlm.runs.manifest import mark_of

    Manifest.load(run).model_copy(update={"mark": mark_of(RunId(id_))}).save(run)
    return run.rename(run.with_name(id_))


# ---------------------------------------------------------------- list


@pytest.mark.anyio
async def test_each_run_says_what_it_is_how_it_stands_and_what_it_took(home: Path) -> None:
    prices = PriceTable({"scripted": Price(input=Decimal(1), output=Decimal(1))})
    done = await made(terms=(), model=judge(), prices=prices)
    halted = await made(terms=(), model=judge(), caps=Caps(calls=2))
    killed = await made()
    Manifest.load(killed).with_last(ended=None).save(killed)
    damaged = await made()
    (damaged / "manifest.json").write_text("{", encoding="utf-8")
    running = await made()
    lock = RunLock(running)
    lock.take()
    try:
        found = {entry.directory: entry for entry in list_runs()}
    finally:
        lock.release()
    assert len(found) == 5
    states = {path: (entry.state, entry.blocker) for path, entry in found.items()}
    assert states == {
        done: ("completed", None),
        halted: ("incomplete", "halted"),
        killed: ("killed", None),
        damaged: ("unreadable", None),
        running: ("running", None),
    }
    entry = found[done]
    assert (entry.question, entry.records, entry.calls, entry.sessions) == ("fire?", 40, 10, 1)
    assert entry.usd is not None
    assert entry.usd > 0
    assert found[halted].usd == 0  # a fake costs nothing unless it has a price
    assert entry.bytes > 10_000
    assert not any(entry.foreign for entry in found.values())


@pytest.mark.anyio
async def test_the_newest_is_listed_first_and_none_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [aged(await made(), days) for days in (30, 10, 20)]
    assert main(["runs", "list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [run["id"] for run in data["runs"]] == [runs[n].name for n in (1, 2, 0)]
    assert main(["runs", "list", "--limit", "2"]) == 0
    out = capsys.readouterr().out
    assert runs[0].name not in out
    assert "3 runs" in out
    assert "1 are not listed" in out
    assert main(["runs"]) == 0
    assert runs[0].name in capsys.readouterr().out


def test_there_may_be_no_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "list"]) == 0
    assert capsys.readouterr().out.startswith("0 runs, 0 B")


@pytest.mark.anyio
async def test_what_is_no_directory_of_ours_is_no_run(home: Path, tmp_path: Path) -> None:
    run = await made()
    (home / "link").symlink_to(tmp_path)
    (home / "file").touch()
    assert [entry.directory for entry in list_runs()] == [run]


# ---------------------------------------------------------------- prune


@pytest.mark.anyio
async def test_nothing_is_deleted_unless_somebody_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = aged(await made(), 40), await made()
    assert main(["runs", "prune", "--older-than", "30d"]) == 0
    out = capsys.readouterr().out
    assert old.name in out
    assert new.name not in out
    assert "would delete 1 run" in out
    assert old.exists()
    assert main(["runs", "prune", "--older-than", "30d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deleted"] is False
    assert old.exists()
    assert main(["runs", "prune", "--older-than", "30d", "--yes"]) == 0
    assert "deleted 1 run" in capsys.readouterr().out
    assert not old.exists()
    assert new.exists()
    assert main(["runs", "prune", "--older-than", "30d", "--yes"]) == 0
    assert "no run is that old" in capsys.readouterr().out


@pytest.mark.anyio
@pytest.mark.parametrize(("said", "gone"), [("y\n", True), ("\n", False), ("no\n", False)])
async def test_a_person_at_a_terminal_is_asked(
    monkeypatch: pytest.MonkeyPatch, said: str, gone: bool
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    run = aged(await made(), 40)
    monkeypatch.setattr(sys, "stdin", Terminal(said))
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    assert main(["runs", "prune", "--older-than", "30d"]) == 0
    assert "delete 1 run, " in shown.getvalue()
    assert run.exists() is not gone


@pytest.mark.anyio
async def test_a_run_in_use_is_never_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    run = aged(await made(), 40)
    lock = RunLock(run)
    lock.take()
    try:
        assert main(["runs", "prune", "--keep", "0", "--yes"]) == 0
        assert "no run is that old" in capsys.readouterr().out
        assert not delete_run(run)
    finally:
        lock.release()
    assert run.exists()


@pytest.mark.anyio
async def test_age_and_number_together_let_go_what_both_let_go(home: Path) -> None:
    runs = [aged(await made(), days) for days in (5, 20, 40, 60)]
    entries = list_runs()

    def names(**rules: object) -> list[Path]:
        return [e.directory for e in outdated(entries, NOW, **rules)]  # type: ignore[arg-type]

    assert names(keep=1) == runs[1:]
    assert names(older_than=timedelta(days=30)) == runs[2:]
    assert names(older_than=timedelta(days=30), keep=3) == runs[3:]


@pytest.mark.parametrize("age", ["30", "d", "-3d", "3y", "1.5h", ""])
def test_an_age_that_is_none_is_refused(age: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "prune", "--older-than", age]) == 2
    assert "is no age" in capsys.readouterr().err


def test_to_prune_by_no_rule_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "prune", "--yes"]) == 2
    assert "which runs may go" in capsys.readouterr().err


@pytest.mark.anyio
async def test_links_of_a_run_are_deleted_and_not_what_they_name(tmp_path: Path) -> None:
    run = await made()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    (tmp_path / "locked").write_text("mine", encoding="utf-8")
    (run / "blobs").symlink_to(tmp_path / "mine")
    (run / "lock").unlink()
    (run / "lock").symlink_to(tmp_path / "locked")
    assert delete_run(run)
    assert not run.exists()
    assert (tmp_path / "mine" / "file").exists()
    assert (tmp_path / "locked").read_text(encoding="utf-8") == "mine"


@pytest.mark.anyio
async def test_what_a_deleting_left_that_was_cut_short_goes_with_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(_path: Path) -> None:
        raise KeyboardInterrupt

    run = aged(await made(), 40)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", dying)
        with pytest.raises(KeyboardInterrupt):
            delete_run(run)
    assert not run.exists()
    assert list_runs() == []
    assert len(list(home.iterdir())) == 1
    assert main(["runs", "prune", "--keep", "0", "--yes"]) == 0
    assert list(home.iterdir()) == []


# ---------------------------------------------------------------- retention


@pytest.mark.anyio
async def test_old_runs_that_ended_go_where_the_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = aged(await made(), 40), aged(await made(), 20)
    killed = await made()
    Manifest.load(killed).with_last(ended=None).save(killed)
    killed = aged(killed, 40)
    named = await made(run=data_home() / "by-name")
    Manifest.load(named).with_last(ended=NOW - timedelta(days=40)).save(named)
    elsewhere = await made(run=tmp_path / "elsewhere")
    Manifest.load(elsewhere).with_last(ended=NOW - timedelta(days=40)).save(elsewhere)
    monkeypatch.setenv("RLM_KEEP_RUNS_DAYS", "30")
    outcome = await count("fire?", RECORDS, terms=("fire",))
    assert not old.exists()
    assert all(run.exists() for run in (new, killed, named, elsewhere))
    warnings = [said for node in outcome.receipts.nodes for said in node.warnings]
    assert warnings == ["1 old run(s) were deleted, as RLM_KEEP_RUNS_DAYS asks"]


@pytest.mark.anyio
async def test_the_run_that_is_gone_on_with_is_not_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rlm import resume

    run = aged(await made(), 40)
    monkeypatch.setenv("RLM_KEEP_RUNS_DAYS", "30")
    outcome = await resume(run.name)
    assert outcome.receipts.directory == run
    assert run.exists()


@pytest.mark.anyio
@pytest.mark.parametrize("days", ["thirty", "0", "-1", "1.5", "99999999"])
async def test_a_setting_that_is_no_number_of_days_is_refused(
    monkeypatch: pytest.MonkeyPatch, days: str, home: Path
) -> None:
    monkeypatch.setenv("RLM_KEEP_RUNS_DAYS", days)
    with pytest.raises(ConfigError, match="is no number of days"):
        await made()
    assert not home.exists()


@pytest.mark.anyio
async def test_without_the_setting_nothing_goes() -> None:
    run = aged(await made(), 4_000)
    assert expire_runs(NOW, None) == []
    await made()
    assert run.exists()


# ---------------------------------------------------------------- forget


def test_to_forget_says_what_was_erased_and_what_was_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "texts.csv"
    source.write_text("id,text\na,a fire in town\nb,all is calm here\n", encoding="utf-8")
    rows = tmp_path / "rows.csv"
    args = ["count", str(source), "fire?", "--terms", "fire", "--out", str(rows)]
    assert main([*args, "--run", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["runs", "forget", str(tmp_path / "run"), "a"]) == 0
    out = capsys.readouterr().out
    assert "forgotten: a; it counts as left out from now on" in out
    assert f"left: {rows}" in out
    assert "left: its id, so that it stays left out\n" in out
    assert f"left: {source}" in out
    assert main(["show", str(tmp_path / "run"), "--state", "left_out"]) == 0
    out = capsys.readouterr().out
    assert "forgotten: 1 record on request" in out
    assert "a  forgotten on request" in out
    assert main(["runs", "forget", str(tmp_path / "run"), "zz"]) == 2


def test_a_lock_that_nobody_holds_has_no_holder(tmp_path: Path) -> None:
    assert lock_holder(tmp_path) is None
    lock = RunLock(tmp_path)
    lock.take()
    assert lock_holder(tmp_path) == f"process {os.getpid()} on {os.uname().nodename}"
    lock.release()
    assert lock_holder(tmp_path) is None
    shutil.copy(tmp_path / "lock", tmp_path / "other")
    assert read_entry(tmp_path).state == "unreadable"
