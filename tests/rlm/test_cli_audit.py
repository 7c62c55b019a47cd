"""`rlm audit`: findings on standard output, all else on standard error, and the exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm
from executors.models.fakes.acts import Act, Completion, Received
from executors.models.fakes.server import FakeServer
from executors.models.local.weights import PACKAGED
from tests.rlm.audits import Look, files_of, finding, sees

ROOT = Path(__file__).resolve().parents[2]
Served = Callable[[Look], str]


def run(*args: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rlm", *args],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=100,
        cwd=cwd,
    )


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve an auditor, and return the spec of its model."""
    servers: list[FakeServer] = []

    def serve(look: Look) -> str:
        def act(received: Received) -> Act:
            shown = files_of(received.request).items()
            return Completion(text=json.dumps([one for p, t in shown for one in look(p, t)]))

        server = FakeServer(act)
        server.__enter__()
        servers.append(server)
        return f"openai+{server.base_url}:m"

    yield serve
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "code"
    root.mkdir()
    (root / "a.py").write_text("x = 1\neval(x)\n", encoding="utf-8")
    (root / "b.py").write_text("y = 1\n", encoding="utf-8")
    (root / ".env").write_text("KEY=canary-7c1f", encoding="utf-8")
    return root


def test_findings_go_to_standard_output_and_all_else_to_standard_error(
    folder: Path, served: Served, tmp_path: Path
) -> None:
    out = tmp_path / "found.sarif"
    done = run(
        "audit", str(folder), "find eval", "--model", served(sees("eval")), "--out", str(out)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "1 finding: 1 high\n  high      a.py:2  a fault\n            “eval(x)”\n"
    )
    for said in ("audited: 2 of 2 files in 1 parts", ".env", "holds-secrets", "satisfied"):
        assert said in done.stderr
    assert "rlm audit" in done.stderr  # how the run goes on, should it be cut off
    log: Any = json.loads(out.read_text(encoding="utf-8"))
    region = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] == 2
    assert "canary" not in done.stdout + done.stderr + out.read_text(encoding="utf-8")


def test_one_json_object_holds_the_whole_report(folder: Path, served: Served) -> None:
    done = run("audit", str(folder), "find eval", "--model", served(sees("eval")), "--json")
    data: Any = json.loads(done.stdout)
    assert (data["outcome"], data["verdict"]["status"]) == ("completed", "satisfied")
    assert data["result"]["skipped"] == [{"path": ".env", "reason": "holds-secrets", "detail": ""}]
    assert [(one["path"], one["line"]) for one in data["result"]["findings"]] == [("a.py", 2)]
    assert data["spend"]["calls"] == 1


def test_claims_that_no_file_shows_end_with_not_satisfied(folder: Path, served: Served) -> None:
    model = served(lambda path, _: [finding(path, "never there")])
    done = run("audit", str(folder), "find eval", "--model", model, "--attempts", "2")
    assert (done.returncode, done.stdout) == (3, "no findings\n")
    assert "rejected, since no file shows them: 2" in done.stderr


def test_a_bound_ends_incomplete_with_the_command_that_goes_on(
    folder: Path, served: Served, tmp_path: Path
) -> None:
    model = served(sees("eval"))
    common = (
        "audit",
        str(folder),
        "find eval",
        "--worker-budget",
        "1",
        "--run",
        str(tmp_path / "r"),
    )
    done = run(*common, "--model", model, "--max-calls", "1", "--concurrency", "1")
    assert done.returncode == 4
    assert "a.py:2" in done.stdout
    assert "nothing is known of 1 file" in done.stderr
    assert f"go on with: rlm audit {folder} 'find eval' --worker-budget 1 --run" in done.stderr
    again = run(*common, "--max-calls", "2")
    assert again.returncode == 0, again.stderr
    assert "2 sessions" in again.stderr or "session" in again.stderr


def test_an_audit_that_ended_is_shown_and_written_again(
    folder: Path, served: Served, tmp_path: Path
) -> None:
    kept, out = str(tmp_path / "r"), tmp_path / "again.sarif"
    run("audit", str(folder), "find eval", "--model", served(sees("eval")), "--run", kept)
    shown = run("show", kept, "--out", str(out))
    assert shown.stdout.startswith("1 finding: 1 high\n  high      a.py:2  a fault\n")
    assert ".env" in shown.stdout
    assert json.loads(out.read_text(encoding="utf-8"))["version"] == "2.1.0"


def test_resume_says_how_an_audit_goes_on(folder: Path, served: Served, tmp_path: Path) -> None:
    kept = str(tmp_path / "r")
    run("audit", str(folder), "find eval", "--model", served(sees("eval")), "--run", kept)
    done = run("resume", kept)
    assert done.returncode == 2
    assert f"rlm audit DIR TASK --run {kept}" in done.stderr


def test_a_folder_with_nothing_to_read_is_incomplete(tmp_path: Path, served: Served) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0")
    done = run("audit", str(tmp_path), "find eval", "--model", served(sees("eval")))
    assert done.returncode == 4
    assert "empty-corpus" in done.stderr
    assert "binary: 1" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nowhere", "find"), "'nowhere' is no folder"),
        ((".", " "), "the task is empty"),
        ((".", "find", "--include", ""), "--include is empty"),
        ((".", "find", "--exclude", "!"), "exclude='!' is no pattern"),
        ((".", "find", "--out", "../found.txt"), "ends in '.txt'"),
        ((".", "find", "--out", "found.json"), "lies in the source"),
        ((".", "find", "--attempts", "0"), "attempts=0"),
        ((".", "find", "--max-file-bytes", "0"), "max_file_bytes=0"),
    ],
)
def test_wrong_use_is_said_in_three_lines_and_spends_nothing(
    folder: Path, args: tuple[str, ...], said: str
) -> None:
    done = run("audit", *args, "--model", "openai+http://127.0.0.1:9/v1:m", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert 2 <= len(done.stderr.strip().splitlines()) <= 3


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(PACKAGED.find() is None, reason="no weights here")
async def test_a_package_of_this_repository_is_audited_with_no_key_and_no_network() -> None:
    """The small model finds little and claims nothing that stands: what counts is that it is said."""
    folder = ROOT / "rlm" / "fakes"
    task = "Find errors that are swallowed."
    outcome = await rlm.audit(folder, task, worker_budget=1, attempts=1, max_tokens=32)
    report = outcome.result if isinstance(outcome, rlm.Completed) else outcome.best
    assert report is not None
    assert report.files == len(list(folder.glob("*.py")))
    assert "ignored" in report.by_reason or not (folder / "__pycache__").exists()
    for one in report.findings:
        lines = (folder / one.path).read_text(encoding="utf-8").splitlines()
        assert one.quote.splitlines()[0] in lines[one.line - 1]
    assert outcome.receipts.totals.calls == report.parts > 0
    assert set(outcome.receipts.roles) == {"worker"}
    assert any("too small" in str(note) for note in list(outcome.receipts.result["notes"]))  # type: ignore[call-overload]
    if report.rejected or report.unread:
        assert not isinstance(getattr(outcome, "verdict", None), rlm.Satisfied)
