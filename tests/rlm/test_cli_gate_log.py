"""`rlm gate log`: which lines are shown, how, and what a check says."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from executors.clock import VirtualClock
from executors.gate.audit.audit import Audit, RunIds
from executors.gate.audit.redactor import Redactor
from executors.ids import NodeId
from executors.messages import CallRole
from rlm.cli.app import main


class Asked:
    """Whose call it is."""

    role: CallRole = "judge"
    node = NodeId("root.2.1")
    model = "scripted:yes"


def action(kind: str, *, tool: str | None = None, at: str = "root", **args: str) -> dict[str, Any]:
    return {"type": kind, "tool": tool or kind, "args": args, "_ctx": {"at": at}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A directory with an audit of five lines, one a minute, as a run has it."""
    clock = VirtualClock()
    ids = RunIds(run="20260101-000000-abcdef")
    path = tmp_path / "run" / "gate" / "audit.jsonl"
    book = Audit(path, run=ids, clock=clock, redactor=Redactor(environment={}))
    decided = {"severity": "action", "reason": ""}
    allowed = decided | {"decision": "allow", "rule": "default"}
    denied = decided | {"decision": "deny", "rule": "bash.allow", "reason": "not listed"}
    book.write("gate", aid="a1", action=action("read", tool="files", path="/app/x"), **allowed)
    clock.advance(60)
    book.write("gate", aid="a2", action=action("bash", at="root.2", cmd="rm\x1b[2J -rf"), **denied)
    clock.advance(60)
    book.call(Asked(), tokens=1_200, usd=Decimal("0.0031"), unpriced=False, overrun=True)
    book.call(Asked(), tokens=5, usd=Decimal(0), unpriced=True)
    clock.advance(60)
    book.write("topup", dimension="budget.maxCostUsd", old_cap="1", new_cap="10")
    book.close()
    return tmp_path / "run"


def shown(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> list[str]:
    assert main(["gate", "log", *map(str, words)]) == code
    return capsys.readouterr().out.splitlines()


def test_lines_are_a_table_with_when_what_and_why(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, run) == [
        "2026-01-01 00:00:00  gate        allow    default  files  /app/x  root",
        (
            "2026-01-01 00:01:00  gate        deny     bash.allow  bash  rm\\x1b[2J -rf  root.2"
            "  not listed"
        ),
        (
            "2026-01-01 00:02:00  call                 judge  root.2.1  scripted:yes  1200 tokens,"
            " 0.0031 USD  overrun"
        ),
        (
            "2026-01-01 00:02:00  call                 judge  root.2.1  scripted:yes  5 tokens,"
            " 0 USD  price unknown"
        ),
        "2026-01-01 00:03:00  topup                budget.maxCostUsd: 1 -> 10",
        "5 of 5 line(s)",
    ]


@pytest.mark.parametrize(
    ("words", "phases"),
    [
        (["--phase", "call"], ["call", "call"]),
        (["--phase", "call", "--phase", "topup"], ["call", "call", "topup"]),
        (["--denied"], ["gate"]),
        (["--rule", "bash.*"], ["gate"]),
        (["--rule", "bash"], []),
        (["--tool", "files"], ["gate"]),
        (["--tool", "read"], ["gate"]),
        (["--node", "root.2"], ["gate"]),
        (["--node", "root.2*"], ["gate", "call", "call"]),
        (["--since", "2026-01-01T00:02"], ["call", "call", "topup"]),
        (["--since", "2026-01-01T01:02:30+01:00"], ["topup"]),
        (["--since", "1d"], []),
        (["--denied", "--tool", "files"], []),
    ],
)
def test_filters_narrow_what_is_shown(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str], phases: list[str]
) -> None:
    found = [json.loads(one) for one in shown(capsys, run, *words, "--json")]
    assert [one["phase"] for one in found] == phases


def test_the_file_may_be_named_too(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, run / "gate" / "audit.jsonl")[-1] == "5 of 5 line(s)"


def test_half_a_line_is_counted_and_not_shown(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (run / "gate" / "audit.jsonl").open("ab") as file:
        file.write(b'{"ts":"2026')
    assert shown(capsys, run)[-1] == "5 of 5 line(s); 1 cut off or no line at all"


def test_a_check_says_what_fits_and_what_that_does_not_mean(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, head = shown(capsys, run, "--check")
    assert first == "consistent  5 line(s) of 1 writer(s)"
    assert second.startswith("  not authenticated: lines that fit do not say whether the last ones")
    assert shown(capsys, run, "--check", "--head", head.split()[1])[0] == first


def test_a_changed_line_fails_the_check(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "gate" / "audit.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"new_cap":"10"', b'"new_cap":"99"'))
    assert shown(capsys, run, "--check", code=3)[0].startswith("changed  line 5: it does not fit")
    (data,) = shown(capsys, run, "--check", "--json", code=3)
    found = json.loads(data)
    assert (found["consistent"], found["authenticated"]) == (False, False)
    assert [(one["kind"], one["line"]) for one in found["faults"]] == [("changed", 5)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "yesterday"], "is no time"),
        (["--head", "00"], "give --check too"),
    ],
)
def test_wrong_use_is_told(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["gate", "log", str(run), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_an_audit_says_where_it_would_be(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run / "gate")
    for place in (run, run / "nothing"):
        assert main(["gate", "log", str(place)]) == 2
    assert "gate/audit.jsonl" in capsys.readouterr().err


def test_links_in_a_run_from_elsewhere_lead_nowhere(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory without a manifest of ours is one that was made elsewhere."""
    path = run / "gate" / "audit.jsonl"
    path.rename(tmp_path / "private.jsonl")
    path.symlink_to(tmp_path / "private.jsonl")
    assert main(["gate", "log", str(run)]) == 2
    assert "holds a link" in capsys.readouterr().err


def test_an_age_counts_from_now(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Audit(run / "gate" / "audit.jsonl", redactor=Redactor(environment={}))
    book.write("gate", aid="now")
    book.close()
    found = [json.loads(one) for one in shown(capsys, run, "--since", "2h", "--json")]
    assert [one["aid"] for one in found] == ["now"]
