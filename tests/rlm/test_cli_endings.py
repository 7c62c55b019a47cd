"""How a command ends when its streams, its disk or its process are taken away."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm import outputs
from rlm.cli import app, main

COUNT = f"{sys.executable} -m rlm count t.csv 'is it an offer?' --terms buy --run run"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("id,text\n1,buy\n2,hello\n", encoding="utf-8")


def shell(script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---------------------------------------------------------------- a disk that is full

ARGS = ["count", "t.csv", "is it an offer?", "--terms", "buy", "--run", "run", "--out", "o.csv"]


def test_a_full_disk_takes_the_file_and_not_the_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "write_csv", full)
    assert main(ARGS) == 4
    out, err = capsys.readouterr()
    assert out.startswith("1 of 2 records match")
    assert "receipt: run/receipt.json" in out
    assert err.endswith(
        "rlm: the output 'o.csv' cannot be written: No space left on device\n  --out\n"
        "  nothing is lost: make room or name another place, then: rlm show run --out FILE\n"
    )


def test_a_full_disk_is_named_inside_the_one_json_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "write_csv", full)
    assert main([*ARGS, "--json"]) == 4
    value = json.loads(capsys.readouterr().out)
    assert (value["result"]["count"], value["error"]["code"]) == (1, "output")
    assert value["out"] is None


def test_a_full_disk_takes_nothing_from_what_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(ARGS)
    capsys.readouterr()
    monkeypatch.setattr(outputs, "write_csv", full)
    assert main(["show", "run", "--out", "o.csv"]) == 4
    out, err = capsys.readouterr()
    assert out.startswith("1 of 2 records match")
    assert err.startswith("rlm: the output 'o.csv' cannot be written: No space left on device\n")


def test_ctrl_c_while_the_file_is_written_takes_nothing_from_the_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs, "write_csv", interrupted)
    assert main(ARGS) == 130
    assert capsys.readouterr().out.startswith("1 of 2 records match")
    assert not Path("o.csv").exists()


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-", "2>&- <&-", "2> >(head -c 1 >&2)"])
def test_a_broken_standard_error_costs_what_is_told_there_and_no_more(where: str) -> None:
    done = shell(f"{COUNT} {where}")
    assert done.returncode == 0
    assert done.stdout.startswith("1 of 2 records match")
    assert Path("run/receipt.json").exists()


def test_a_full_standard_output_is_said_once() -> None:
    done = shell(f"{COUNT} >/dev/full")
    assert done.returncode == 4
    last = done.stderr.splitlines()[-2:]
    assert last[0] == "rlm: standard output cannot be written: No space left on device"
    assert last[1] == "  nothing is lost: rlm show run"


def test_a_closed_standard_output_is_refused_before_anything_is_done() -> None:
    done = shell(f"{COUNT} >&-")
    assert done.returncode == 2
    assert done.stderr.startswith("rlm: standard output is closed")
    assert not Path("run").exists()


@pytest.mark.parametrize("pipe", ["| true", "2>&1 | true", "2>&1 | head -1"])
def test_a_reader_that_went_away_is_code_141_and_no_complaint(pipe: str) -> None:
    done = shell(f"{COUNT} {pipe} >/dev/null; echo ${{PIPESTATUS[0]}}")
    assert done.stdout == "141\n"
    assert "rlm:" not in done.stderr
    assert "Exception" not in done.stderr


# ---------------------------------------------------------------- errors as JSON


@pytest.mark.parametrize(
    ("args", "code", "hint"),
    [
        (
            ["count", "t.csv", "q", "--votes", "x", "--json"],
            "validation",
            "choose one of any, majority, all",
        ),
        (["count", "t.csv", "--json"], "usage", "see: rlm count --help"),
        (["count", "t.csv", "q", "--json", "--out"], "usage", "see: rlm count --help"),
    ],
)
def test_an_error_is_one_json_object_where_json_was_asked_for(
    args: list[str], code: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["code"], error["hint"]) == (code, hint)
    assert err.startswith(f"rlm: {error['what']}\n")


def test_what_nobody_expected_is_json_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(args: list[str]) -> int:
        raise KeyError("x")

    monkeypatch.setattr(app, "_run", fails)
    with pytest.raises(KeyError) as caught:
        main(["count", "--json"])
    sys.excepthook(KeyError, caught.value, None)
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "internal"


# ---------------------------------------------------------------- what is left and what is told


def test_a_run_that_was_killed_shows_what_its_log_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("run").mkdir()
    Path("run/events.jsonl").write_bytes(
        b'{"kind":"run_started","task":"is it?"}\n{"kind":"scan_started","items":2,"passes":2}\n'
        b'{"kind":"window_finished","items":1}\n{"kind":"window_fin'
    )
    assert main(["show", "run"]) == 2
    err = capsys.readouterr().err
    assert "'run' has no receipt: it was killed, or is still running\n" in err
    assert "'is it?', 1 windows finished, 1 of 4 readings, 0 calls answered\n" in err


def test_the_help_of_count_is_in_groups_and_ends_with_examples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["count", "--help"]) == 0
    shown = capsys.readouterr().out
    heads = ("--id", "--judge", "--labels", "--model", "--max-calls", "--run", "Examples:")
    places = [shown.index(f"  {head}") for head in heads]
    assert places == sorted(places)
    assert shown.count("\n    rlm count ") == 3
