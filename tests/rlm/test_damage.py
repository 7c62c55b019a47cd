"""A run directory of which something is damaged: an error that says so, or the same number."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm import Caps, Completed, RlmError, RunDirError, Tally, count, load_result
from rlm.resuming import resume
from rlm.runs.label_file import kept_labels
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio

RECORDS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(60)]
FOUND = [id_ for id_, text in RECORDS if "fire" in text]
NAMES = (
    "events.jsonl",
    "index.sqlite",
    "labels.json",
    "manifest.json",
    "receipt.json",
    *(f"spool/{name}.bin" for name in ("empty", "first", "ids", "offsets", "order", "records")),
    "spool/meta.json",
    "spool/texts.bin",
    "verdicts/codes.npy",
    "verdicts/final.npy",
    "verdicts/ledger.json",
    "verdicts/tally.json",
)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed(path: Path) -> None:
    """As a power cut leaves what had its size and not yet its contents."""
    path.write_bytes(bytes(path.stat().st_size))


def garbled(path: Path) -> None:
    path.write_bytes(b"\xa5" * max(1, path.stat().st_size))


def nested(path: Path) -> None:
    path.write_bytes(b"[" * 200_000)


def of_another_kind(path: Path) -> None:
    path.write_bytes(b'{"version": 1, "records": "x", "labels": 1, "of": [], "kind": []}\n')


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def linked_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


DAMAGES = (
    emptied,
    cut,
    zeroed,
    garbled,
    nested,
    of_another_kind,
    made_a_folder,
    linked_to_nothing,
)


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


async def halted(run: Path) -> Path:
    """Make a run that is half done, with labels."""
    labels, caps = {"r0": "yes", "r1": "no"}, Caps(calls=6)
    await count("fire?", RECORDS, model=judge(), run=run, caps=caps, labels=labels, positive="yes")
    return run


def read(run: Path) -> list[str] | None:
    """Return the ids that a run states; None where it says that it cannot be read."""
    try:
        return list(load_result(run).matched_ids)
    except RlmError:
        return None


async def again(run: Path, model: ScriptedModel | None = None) -> list[str] | None:
    """Go on with a run; None where it says that it cannot."""
    try:
        outcome = await resume(run, model=model or judge(), caps=Caps(calls=100))
    except RlmError:
        return None
    tally = outcome.result if isinstance(outcome, Completed) else outcome.best
    assert isinstance(tally, Tally)
    return list(tally.matched_ids)


@pytest.mark.parametrize("name", NAMES)
async def test_whatever_is_damaged_no_other_number_comes_out(tmp_path: Path, name: str) -> None:
    whole = await halted(tmp_path / "whole")
    assert await again(shutil.copytree(whole, tmp_path / "copy")) == FOUND
    for damage in DAMAGES:
        run = tmp_path / damage.__name__
        shutil.copytree(whole, run)
        damage(run / name)
        read(run)
        if (found := await again(run)) is not None:
            assert found == read(run) == FOUND, damage.__name__


async def test_a_corpus_that_is_read_again_takes_the_place_of_a_damaged_spool(
    tmp_path: Path,
) -> None:
    run = await halted(tmp_path / "run")
    zeroed(run / "spool" / "first.bin")
    with pytest.raises(RunDirError, match="not what was written") as told:
        await resume(run, model=judge())
    assert "rlm count SOURCE QUESTION --run DIR" in str(told.value)
    model = judge()
    outcome = await count("fire?", RECORDS, model=model, run=run, caps=Caps(calls=100))
    assert isinstance(outcome, Completed)
    assert isinstance(outcome.result, Tally)
    assert list(outcome.result.matched_ids) == FOUND
    assert model.calls == 10  # 16, of which 6 were paid before


@pytest.mark.parametrize("damage", [emptied, cut, garbled, nested, of_another_kind, made_a_folder])
async def test_labels_that_cannot_be_read_are_asked_for_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    run = await halted(tmp_path / "run")
    damage(run / "labels.json")
    with pytest.raises(RunDirError, match=r"(?s)labels of the run cannot be read.*--labels"):
        kept_labels(run)


async def test_a_spool_that_is_a_link_to_no_folder_is_told(tmp_path: Path) -> None:
    run = await halted(tmp_path / "run")
    shutil.rmtree(run / "spool")
    (run / "spool").symlink_to("/dev/null")
    with pytest.raises(RunDirError, match="spool of the run cannot be settled"):
        await resume(run, model=judge())


async def test_a_verdict_in_the_journal_that_is_none_is_made_anew_of_the_answer_that_it_came_from(
    tmp_path: Path,
) -> None:
    run = await halted(tmp_path / "run")
    assert await again(run) == FOUND
    (segment, *_) = sorted((run / "journal").glob("*.jsonl"))
    lines = segment.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"n"'))
    noted = json.loads(lines[place])
    noted["v"] = ["maybe", 17, True, *noted["v"][3:]]
    lines[place] = json.dumps(noted, separators=(",", ":")).encode("ascii") + b"\n"
    segment.write_bytes(b"".join(lines))
    (run / "index.sqlite").unlink()
    model = judge()
    assert await again(run, model) == FOUND
    assert model.calls == 0
    assert b"3 verdict(s) in the journal are none" in (run / "events.jsonl").read_bytes()
