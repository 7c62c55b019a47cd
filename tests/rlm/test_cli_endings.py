"""How a command ends when its streams, its disk or its process are taken away."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from executors.models.fakes.acts import Act, Received, Reply
from executors.models.fakes.server import FakeServer
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


# ---------------------------------------------------------------- signals


def slow(received: Received) -> Act:
    return Reply(after=30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_run_leaves_a_receipt(number: signal.Signals) -> None:
    with FakeServer(slow) as server:
        model = f"openai+{server.base_url}:m"
        process = running(model, server)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert f"incomplete: cancelled\n    stopped by {number.name}\n" in out
    assert err.endswith(f"\nstopped by {number.name}\n")
    assert (
        json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))["blocker"] == "cancelled"
    )


def test_a_terminal_that_hung_up_costs_neither_the_receipt_nor_the_code() -> None:
    with FakeServer(slow) as server, Path("/dev/full").open("w", encoding="utf-8") as nobody:
        process = running(f"openai+{server.base_url}:m", server, out=nobody)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGHUP
    assert Path("run/receipt.json").exists()


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


def test_ctrl_c_while_the_program_loads_is_no_traceback() -> None:
    code = (
        "import os, signal, sys\n"
        "class Stops:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'rlm.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stops())\n"
        "from rlm.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def running(
    model: str, server: FakeServer, out: int | IO[str] = subprocess.PIPE
) -> "subprocess.Popen[str]":
    """Start a count that waits for its model."""
    command = [sys.executable, "-m", "rlm", "count", "t.csv", "is it?", "--model", model]
    process = subprocess.Popen(
        [*command, "--run", "run"], stdout=out, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


def test_the_help_of_count_is_in_groups_and_ends_with_examples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["count", "--help"]) == 0
    shown = capsys.readouterr().out
    heads = ("--id", "--judge", "--labels", "--model", "--max-calls", "--run", "Examples:")
    places = [shown.index(f"  {head}") for head in heads]
    assert places == sorted(places)
    assert shown.count("\n    rlm count ") == 3
