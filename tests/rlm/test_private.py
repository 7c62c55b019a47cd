"""What a run leaves on disk is its owner's alone, whatever the process leaves open to others."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from executors.messages import ModelReply, ModelRequest
from rlm import Caps, count
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio


@pytest.fixture
def open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def judge() -> ScriptedModel:
    script = judge_script(lambda text: "fire" in text)

    def long(request: ModelRequest) -> ModelReply:
        """Answer with more than a line of the journal holds, so that there are blobs."""
        reply = script(request)
        assert isinstance(reply, ModelReply)
        return replace(reply, text=reply.text + " " * 40_000)

    return ScriptedModel(long)


def test_the_process_would_leave_files_open_to_others(open_to_all: None, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666


async def test_directories_of_a_run_are_0700_and_its_files_0600(
    open_to_all: None, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    texts = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n} {'x' * 9_000}") for n in range(60)]
    texts.append(("\u200bodd", "fire"))
    await count("fire?", texts, model=judge(), run=run, caps=Caps(calls=10))
    await count("fire?", [("new", "fire"), *texts], model=judge(), run=run)
    labelled = {f"r{n}": "yes" if n % 7 == 0 else "no" for n in range(60)}
    await count("fire?", texts, labels=labelled, run=tmp_path / "taught")
    modes = {
        str(path.relative_to(tmp_path)): oct(path.stat().st_mode & 0o777)
        for path in tmp_path.rglob("*")
    }
    assert {"taught/head.json", "run/agenda-2.npz", "run/blobs"} <= modes.keys()
    folders = {name for name in modes if (tmp_path / name).is_dir()}
    assert {modes[name] for name in folders} == {"0o700"}
    assert {name: mode for name, mode in modes.items() if name not in folders} == {
        name: "0o600" for name in modes if name not in folders
    }
