"""`rlm count --dry-run`: what is said before anything is spent."""

import json
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from rlm.cli import main
from rlm.testing import FakeServer, judge_server

TICKETS = "id,text\n1,I want my money back\n2,hello\n3,\n4,the app crashes\n5,hello\n"
ASKED = ["count", "t.csv", "is it a refund?", "--model", "openai:gpt-x", "--dry-run"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TICKETS, encoding="utf-8")


def test_a_dry_run_says_what_a_count_would_take(capsys: pytest.CaptureFixture[str]) -> None:
    """No key is set, and none is needed."""
    assert main(ASKED) == 0
    out, err = capsys.readouterr()
    assert out == snapshot("""\
dry run: nothing was asked, nothing was paid
  question: is it a refund?
  records: 5, 1 without text, 1 with the text of an earlier one; 3 distinct texts
  judge: chat openai:gpt-x
  calls: 2 for 2 windows of up to 8 in 2 passes; replies that cannot be used cost more
  tokens in: 840, by UTF-8 bytes / 3: more than most models count
  tokens out: 20 to 2,120, from the shortest answers to the longest allowed
  cost: unknown: no price is known for this model; name it with --price IN,OUT
  time: 4.0 s, if a call takes 2 s (a guess), with 16 in flight
  bounds: none is reached: 100,000 calls, 200,000,000 tokens, 10 USD (binds nothing: no price is known), 24 h
""")
    assert "t.csv: 5 records" in err


def test_the_bound_that_would_end_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, "--max-calls", "1", "--max-tokens", "1500"]) == 0
    bounds = [row for row in capsys.readouterr().out.splitlines() if "bounds" in row]
    assert bounds == snapshot(
        [
            "  bounds: that of 1 call would end the count before it is done",
            "  bounds: that of 1,500 tokens may end it, if replies are long",
        ]
    )


def test_a_dry_run_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, "--json", "--max-calls", "0"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["load"]["calls"], said["usd"], said["halted_by"]) == (2, None, "calls")


def test_a_judge_that_asks_nobody_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "t.csv", "is it a refund?", "--terms", "money", "--dry-run"]) == 0
    assert "cost: nothing: no model is asked" in capsys.readouterr().out


def test_a_named_run_is_kept_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, "--run", "kept"]) == 0
    assert capsys.readouterr().out.endswith("  run: kept\n")
    assert Path("kept/spool/meta.json").exists()


@pytest.mark.parametrize("option", [("--out", "rows.csv"), ("--label", "20")])
def test_an_option_without_effect_is_refused(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ASKED, *option]) == 2
    assert f"{option[0]} has no effect" in capsys.readouterr().err


def test_what_is_left_of_a_run_is_said_too(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(judge_server(lambda text: "money" in text)) as server:
        spec = f"openai+{server.base_url}:any"
        asked = ["count", "t.csv", "is it a refund?", "--model", spec, "--run", "run"]
        assert main([*asked, "--max-calls", "1"]) == 4
        sent = server.requests
        capsys.readouterr()
        assert main(["resume", "run", "--dry-run", "--max-calls", "5"]) == 0
        assert server.requests == sent
    out = capsys.readouterr().out
    assert "calls: 1 for 1 window of up to 8 in 2 passes" in out
    assert "judged: 3 verdicts stand in the run already" in out
    assert main(["resume", "run", "--dry-run", "--out", "rows.csv"]) == 2


def test_a_look_at_a_run_from_elsewhere_follows_no_link(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["count", "t.csv", "is it a refund?", "--terms", "money", "--run", "run"]) == 0
    manifest = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))
    Path("run/manifest.json").write_text(json.dumps({**manifest, "mark": "0" * 32}))
    Path("run/journal").symlink_to("/")
    assert main([*ASKED, "--run", "run"]) == 2
    assert "was made elsewhere, and holds a link" in capsys.readouterr().err
