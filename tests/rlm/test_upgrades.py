"""An upgrade between kill and resume: what decides no answer costs nothing, what decides one does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.testing import FakeServer
from tests.support.killing import Asked, write_corpus

ROOT = Path(__file__).resolve().parents[2]
CALLS = 100


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A copy of the program, to be edited."""
    copy = tmp_path / "program"
    for name in ("rlm", "planner", "corpus", "executors"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run(program: Path, *args: str) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "rlm", *args, "--json"],
        cwd=program,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.case("S16", "S19")
def test_an_edited_docstring_changes_nothing_and_an_edited_prompt_makes_new_keys(
    packages: Path, tmp_path: Path
) -> None:
    corpus, where, asked = tmp_path / "c.jsonl", str(tmp_path / "run"), Asked()
    write_corpus(corpus, 400)
    with FakeServer(asked) as server:
        model = f"openai+{server.base_url}:fake"
        count = ["count", str(corpus), "fire?", "--model", model, "--run", where]
        assert run(packages, *count, "--max-calls", "50") == 4
        assert sum(asked.prompts.values()) == 50

        edit(packages / "executors/calls/keys.py", '"""The key of a', '"""Edited. The key of a')
        edit(
            packages / "corpus/prompts.py",
            "def ask_message(",
            "def unused() -> None:\n    pass\n\n\ndef ask_message(",
        )
        assert run(packages, "resume", where, "--max-calls", str(CALLS)) == 0
        assert sum(asked.prompts.values()) == CALLS
        assert asked.repeats == 0

        edit(packages / "corpus/prompts.py", "You judge", "You carefully judge")
        assert run(packages, "resume", where, "--max-calls", str(2 * CALLS)) == 0
        assert sum(asked.prompts.values()) == 2 * CALLS
        assert len(asked.prompts) == 2 * CALLS
