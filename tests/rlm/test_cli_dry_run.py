"""`rlm count --dry-run`: what is said before anything is spent."""

import json
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from rlm.cli import main

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
