"""A run directory that was made elsewhere is looked at, and leads nowhere."""

import os
from pathlib import Path

import pytest

from rlm import Completed, RunDirError, count, resume
from rlm.cli.app import main
from rlm.runs.checking import check_roots
from rlm.runs.foreign import is_foreign, refuse_links
from rlm.runs.manifest import Manifest
from rlm.testing import ScriptedModel, judge_script

RECORDS = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(20)]


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


async def made_elsewhere(run: Path) -> Path:
    await count("fire?", RECORDS, model=judge(), run=run)
    (run / "blobs").mkdir(exist_ok=True)
    Manifest.load(run).model_copy(update={"mark": "0" * 32}).save(run)
    return run


@pytest.mark.anyio
async def test_it_is_shown_checked_and_gone_on_with_under_a_model_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await made_elsewhere(tmp_path / "run")
    assert is_foreign(run)
    assert main(["show", str(run), "--state", "matched"]) == 0
    assert "7 of 20 records match" in capsys.readouterr().out
    assert check_roots(run).consistent
    model = judge()
    assert isinstance(await resume(run, model=model), Completed)
    assert model.calls == 0


@pytest.mark.anyio
async def test_its_index_is_made_again_and_never_opened(tmp_path: Path) -> None:
    run = await made_elsewhere(tmp_path / "run")
    (run / "index.sqlite").write_bytes(b"SQLite format 3\x00 and what nobody should open")
    (run / "index.sqlite-wal").write_bytes(b"nor this")
    outcome = await resume(run, model=judge())
    assert [w for node in outcome.receipts.nodes for w in node.warnings] == []
    assert b"nobody should open" not in (run / "index.sqlite").read_bytes()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name",
    ["manifest.json", "receipt.json", "lock", "spool", "spool/records.bin", "journal/x", "blobs/x"],
)
async def test_links_in_it_are_refused_before_anything_is_read_or_written(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await made_elsewhere(tmp_path / "run")
    target = tmp_path / "target"
    place = run / name
    if place.exists():
        place.rename(target)
    else:
        target.write_bytes(b"somebody's")
    place.symlink_to(target)
    kept = target.read_bytes() if target.is_file() else None
    for command in (["show", str(run)], ["show", str(run), "--check"]):
        assert main(command) == 2
        assert "holds a link" in capsys.readouterr().err
    with pytest.raises(RunDirError, match="holds a link"):
        await resume(run, model=judge())
    with pytest.raises(RunDirError, match="holds a link"):
        await count("fire?", RECORDS, model=judge(), run=run)
    with pytest.raises(RunDirError, match="holds a link"):
        await count("fire?", RECORDS, model=judge(), replay=run)
    assert kept is None or target.read_bytes() == kept


@pytest.mark.anyio
async def test_a_pipe_in_it_holds_nobody_up(tmp_path: Path) -> None:
    run = await made_elsewhere(tmp_path / "run")
    (run / "receipt.json").unlink()
    os.mkfifo(run / "receipt.json")
    assert main(["show", str(run)]) == 2


@pytest.mark.anyio
async def test_links_in_a_directory_of_our_own_are_followed(tmp_path: Path) -> None:
    await count("fire?", RECORDS, model=judge(), run=tmp_path / "run")
    (tmp_path / "run" / "spool").rename(tmp_path / "large-disk")
    (tmp_path / "run" / "spool").symlink_to(tmp_path / "large-disk")
    refuse_links(tmp_path / "run")
    assert isinstance(await resume(tmp_path / "run", model=judge()), Completed)
