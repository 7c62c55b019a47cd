"""`rlm gate check`: what it says of an action, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm.cli.app import main

CONFIG = """
tools:
  denylist: [secret_*]
content:
  ask_patterns: [purge]
net:
  allow_domains: [example.com]
flags:
  risk: {high: deny}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "gate.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["bash", "ls -la"], 0, ("allow", "default")),
        (["bash", "rm", "--", "x"], 0, ("allow", "default")),
        (["bash", "rm -rf /"], 3, ("deny", "content.denyPatterns")),
        (["read", "/etc/passwd"], 3, ("deny", "fs.readScope.unset")),
        (["fetch", "http://169.254.169.254/"], 3, ("deny", "net.denyPrivateIps")),
        (["fetch", "https://www.example.com/x"], 0, ("allow", "default")),
        (["tool", "secret_show"], 3, ("deny", "tools.denylist")),
        (["tool", "note", '{"text": "purge"}'], 3, ("ask", "content.askPatterns")),
        (['{"type": "note", "risk": "high"}'], 3, ("deny", "flags.risk")),
        (["spawn"], 0, ("allow", "default")),
    ],
)
def test_words_and_json_are_judged(
    config: str,
    words: list[str],
    code: int,
    said: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["gate", "check", "--json", config, "--", *words]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["decision"], told["rule"]) == said
    assert told["remedy"]


def test_people_read_the_decision_why_and_what_would_change_it(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "check", config, "tool", "secret_\x1b[2J"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "deny  tools.denylist",
        "  why: 'secret_\\x1b[2J' is on the denylist, by 'secret_*'",
        "  to change it: take the name off tools.denylist",
    ]


@pytest.mark.case("G-043")
def test_a_bound_of_zero_halts_the_first_action(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gate.toml"
    path.write_text("[budget]\nmax_cost_usd = 0\n", encoding="utf-8")
    assert main(["gate", "check", str(path), "bash", "ls"]) == 3
    assert capsys.readouterr().out.startswith("halt  budget.maxCostUsd\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["raed", "/x"], "'raed' is no action"),
        (['{"type": "a"'], "is no JSON"),
        (["tool", "a", "[1]"], "is no JSON object"),
        (["tool"], "'tool' is no action"),
        (["spawn", "x"], "'spawn' takes nothing more"),
    ],
)
def test_what_names_no_action_is_wrong_use(
    config: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "check", config, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_configuration_that_is_wrong_is_told_in_three_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text("tools:\n  allow_list: [a]\n", encoding="utf-8")
    assert main(["gate", "check", str(path), "bash", "ls"]) == 2
    what, where, hint = capsys.readouterr().err.splitlines()
    assert what == "rlm: 'tools.allow_list' is no key of a gate's configuration"
    assert where.strip() == str(path)
    assert "did you mean 'allowlist'?" in hint
