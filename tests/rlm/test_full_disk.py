"""A disk that takes nothing more: a clear outcome, nothing acknowledged that is not durable, and on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from executors.journal.answers import answers
from rlm.testing import FakeServer
from tests.support.killing import Asked, write_corpus

COUNT = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from rlm.cli import main
sys.exit(main(sys.argv[2:]))
"""


def limited(size: int, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a command whose files may not grow beyond so many bytes, as on a disk that fills up."""
    return subprocess.run(
        [sys.executable, "-c", COUNT, str(size), *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("size", [20_000, 42_000, 50_000])
def test_a_disk_that_fills_up_ends_a_count_as_incomplete_and_it_goes_on_afterwards(
    tmp_path: Path, size: int
) -> None:
    corpus, run, asked = tmp_path / "c.jsonl", tmp_path / "run", Asked()
    write_corpus(corpus, 400)
    with FakeServer(asked) as server:
        model = f"openai+{server.base_url}:fake"
        args = ["--model", model, "--run", str(run), "--json"]
        done = limited(size, "count", str(corpus), "fire?", *args)
        assert "Traceback" not in done.stderr
        if size == 20_000:  # it never began
            assert done.returncode == 2
            assert "make room" in done.stderr
            return
        outcome = json.loads(done.stdout)
        assert done.returncode == 4
        assert outcome["blocker"] == "disk"
        assert any("cannot be written" in line for line in outcome["missing"])
        assert any("rlm resume" in line for line in outcome["missing"])
        kept, before = sum(1 for _ in answers(run)), sum(asked.prompts.values())
        assert kept < 100
        finished = limited(10**9, "resume", str(run), "--json")
        again = json.loads(finished.stdout)
        assert (finished.returncode, again["outcome"]) == (0, "completed")
        assert again["result"]["count"] == 58
        assert sum(asked.prompts.values()) - before == 100 - kept


def test_a_run_directory_that_may_not_be_written_is_refused_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlm.cli import main

    write_corpus(tmp_path / "c.jsonl", 4)
    (tmp_path / "file").write_text("", encoding="utf-8")  # no directory, also for root
    with FakeServer(Asked()) as server:
        model = f"openai+{server.base_url}:fake"
        run = str(tmp_path / "file" / "run")
        args = ["count", str(tmp_path / "c.jsonl"), "fire?", "--model", model, "--run", run]
        assert main(args) == 2
        assert server.requests == 0
    assert "cannot be made" in capsys.readouterr().err
