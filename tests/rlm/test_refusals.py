"""What is refused before anything is read or spent: empty, undecodable or without effect."""

import sys
from pathlib import Path

import pytest

from corpus.questions import OneOf, YesNo
from executors.errors import ValidationError
from rlm.cli import main
from rlm.options.options import CountOptions


@pytest.fixture(autouse=True)
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("id,text\n1,buy\n2,sell\n", encoding="utf-8")


def refusal(capsys: pytest.CaptureFixture[str], *args: str, source: str = "t.csv") -> str:
    before = sorted(Path().rglob("*"))
    assert main(["count", source, "buy?", *args]) == 2
    assert sorted(Path().rglob("*")) == before
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        *("--run", "--out", "--labels", "--id", "--text", "--query", "--format", "--encoding"),
        *("--encoder", "--model", "--key-env", "--judge", "--positive", "--description", "--by"),
    ],
)
def test_an_empty_option_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{option} is empty" in refusal(capsys, option, "")


def test_an_empty_source_is_not_the_working_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert "SOURCE is empty" in refusal(capsys, "--terms", "buy", source="")


@pytest.mark.parametrize("terms", ["", " , ,"])
def test_terms_that_name_nothing_are_refused(
    terms: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "names nothing" in refusal(capsys, "--terms", terms)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ("--terms buy --encoder minilm", "--encoder"),
        ("--terms buy --quotes", "--quotes"),
        ("--terms buy --key-env KEY", "--key-env"),
        ("--terms buy --model openai:gpt-x", "--model"),
        ("--terms buy --judge chat", "--terms"),
        ("--positive spam", "--positive"),
        ("--positive spam --one-of spam,ham", "--positive"),
        ("--key-env KEY", "--key-env"),
    ],
)
def test_an_option_without_effect_is_refused(
    args: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, *args.split())
    assert named in said
    assert "has no effect" in said


@pytest.mark.parametrize("source", [".", "*.csv"])
def test_an_output_that_is_read_as_records_is_refused(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, "--terms", "buy", "--out", "t.csv", source=source)
    assert "lies in the source" in said


def test_a_run_inside_the_source_is_counted_neither_now_nor_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for run in ("first", "second"):
        assert main(["count", ".", "buy?", "--terms", "buy", "--run", run]) == 0
        out, err = capsys.readouterr()
        assert "1 of 2 records match" in out
        assert "run director(ies) of ours passed over" in out + err


def test_stray_bytes_in_what_is_asked_are_refused() -> None:
    for ask in (
        lambda: YesNo(text="is it \udcff?"),
        lambda: OneOf(text="which?", labels=("a", "b\udcff")),
        lambda: CountOptions(description="\udcff"),
        lambda: CountOptions(terms=("\udcff",)),
    ):
        with pytest.raises(ValidationError, match="no character"):
            ask()


def test_stray_bytes_in_paths_end_in_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("l\udcff.csv").write_text("id,label\n1,yes\n2,no\n", encoding="utf-8")
    Path("t.csv").rename("t\udcff.csv")
    args = ["--labels", "l\udcff.csv", "--run", "r\udcff", "--out", "o\udcff.csv", "--json"]
    assert main(["count", "t\udcff.csv", "buy?", "--terms", "buy", *args]) == 0
    assert '"records"' in capsys.readouterr().out
