"""What `rlm doctor` finds, without importing what it looks for."""

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from executors.models.fakes.server import FakeServer
from rlm import doctor
from rlm.cli import main
from rlm.doctor import EXTRAS, Finding, examine, healthy


@pytest.fixture(autouse=True)
def own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)


def nothing_installed(name: str) -> None:
    """Find no module at all."""


def test_every_extra_is_explained() -> None:
    file = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra.name for extra in EXTRAS} == set(declared) - {"dev"}


def test_this_environment_is_sound() -> None:
    findings = examine()
    assert healthy(findings)
    assert {finding.topic for finding in findings} >= {"rlm", "names", "packages", "extras", "runs"}


def test_an_owner_of_our_names_is_named_with_the_remedy() -> None:
    owners = {"planner": ["other-planner"], "rlm": ["rlms", "rlm_recurse"], "x": ["y"]}
    found = {finding.text: finding for finding in doctor._conflicts(owners)}
    assert list(found) == [
        "rlms also owns the import name 'rlm'",
        "other-planner also owns the import name 'planner'",
    ]
    assert all(finding.status == "bad" for finding in found.values())
    assert "pip uninstall rlms" in (next(iter(found.values())).hint or "")
    assert not healthy(list(found.values()))


def test_a_missing_package_is_bad_and_a_missing_extra_is_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", gone)
    assert {finding.status for finding in doctor._dependencies()} == {"bad"}
    monkeypatch.setattr(doctor, "find_spec", nothing_installed)
    finding = doctor._extra(EXTRAS[0])
    assert finding.status == "note"
    assert finding.hint == "pip install 'rlm-recurse[encoder]'"


def test_a_place_is_looked_at_and_not_made(tmp_path: Path) -> None:
    wanted = tmp_path / "a" / "b"
    assert doctor._place("runs", wanted).status == "ok"
    assert not wanted.exists()
    (tmp_path / "a").touch()
    assert doctor._place("runs", wanted).status == "bad"


def test_the_size_of_the_cache_is_said(nobodys_home: Path) -> None:
    assert "nothing yet" in doctor._cache().text
    file = nobodys_home / "cache" / "rlm" / "embeddings.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(1_500_000))
    assert "1.5 MB" in doctor._cache().text


def test_the_command_prints_findings_and_ends_by_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_finding() -> list[Finding]:
        return [Finding(topic="x", status="bad", text="it\x1b[2J [red]broke", hint="mend it")]

    assert main(["doctor"]) == 0
    assert "bad " not in capsys.readouterr().out
    monkeypatch.setattr(doctor, "examine", one_finding)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out == "bad  x: it\\x1b[2J [red]broke\n       mend it\n"
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["hint"] == "mend it"


def test_a_model_is_asked_once_when_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer() as server:
        assert main(["doctor", "--model", f"openai+{server.base_url}:m[/]\x1b"]) == 0
        assert server.requests == 1
    out, err = capsys.readouterr()
    assert "ok   model openai:m[/]\\x1b: answers " in out
    assert err == "asking openai:m[/]\\x1b once; bounds: 1 call, 1,000 tokens, 0.05 USD, 1 min\n"
