"""`rlm count` and `rlm show`, whole: from a file to a number, a receipt and an exit code."""

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from executors.models.fakes.acts import Act, Completion, Received, Reply
from executors.models.fakes.server import FakeServer
from rlm.cli import main
from rlm.outputs import read_csv

TICKETS = 'id,text\n1,"buy [red]now"\n2,hello\n3,\n4,BUY \x1b[2J it\n5,hello\n'


@pytest.fixture(autouse=True)
def own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("tickets.csv").write_text(TICKETS, encoding="utf-8")
    return "tickets.csv"


def stable(text: str) -> str:
    """Take times, rates and the folder out."""
    text = re.sub(r"\d[\d.]* s\b", "T s", text)
    text = re.sub(r", [\d,.]+/s", ", R/s", text)
    return text.replace(str(Path.cwd()), "HERE")


def test_a_count_by_rule_prints_the_result_and_tells_the_rest_elsewhere(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["count", tickets, "is it an offer?", "--terms", "buy", "--run", "run", "--out", "o.csv"]
    assert main(args) == 0
    out, err = capsys.readouterr()
    assert stable(out) == snapshot("""\
2 of 5 records match: is it an offer?
  2 matched, 2 not matched, 0 unsure, 0 unresolved, 1 empty, 0 left out
  coverage range: every record was decided
  judge: rule any of buy, 1 pass
  identical: 1 record with the text of an earlier one: judged once, counted each
  cost: 0 calls
  sent: nothing left this machine
  receipt: run/receipt.json
  out: o.csv, 5 rows

count  T s
├─ read tickets.csv  T s
│     5 records
│     id column 'id' (named so)
│     text column 'text' (named so)
└─ judge by rule any of buy  T s
   │  3 distinct texts in 1 pass(es)
   └─ pass 1 of 1  T s, 1 window, 3 items
""")
    assert stable(err) == snapshot("""\
tickets.csv: 5 records, 1 without text, 1 with the text of an earlier one
  id column 'id' (named so)
  text column 'text' (named so)
read tickets.csv, T s
rule any of buy: 3 distinct texts in 1 pass, 1000 a window, 1 in flight
judge by rule any of buy 3 of 3 records (100 %), R/s, T s, 0 unresolved
write o.csv 5 of 5 rows (100 %), R/s, T s
""")
    rows = list(read_csv("o.csv"))
    assert [row["state"] for row in rows] == [
        "matched", "not_matched", "empty", "matched", "not_matched",
    ]  # fmt: skip
    assert "\x1b" not in out + err


def test_a_result_is_printed_to_a_stream_that_knows_ascii_alone(tickets: str) -> None:
    command = [sys.executable, "-m", "rlm", "count", tickets, "is it naïve?", "--terms", "buy"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True, timeout=60)
    assert "is it na\\xefve?" in done.stdout
    assert "\\u2514\\u2500 judge by rule" in done.stdout


def test_json_is_one_object_on_standard_output(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["count", tickets, "is it an offer?", "--terms", "buy", "--run", "run", "--json"]
    assert main([*args, "--out", "out.jsonl"]) == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    assert out.count("\n") == 1
    assert value["outcome"] == "completed"
    assert value["result"]["count"] == 2
    assert value["result"]["states"]["empty"] == 1
    assert value["out"]["rows"] == 5
    assert value["spend"] == {
        "calls": 0, "failed": 0, "tokens": 0, "usd": "0", "unpriced_calls": 0,
        "lost": 0, "lost_tokens": 0, "lost_usd": "0",
        "unanswered": 0, "unanswered_tokens": 0, "unanswered_usd": "0",
    }  # fmt: skip
    receipt = json.loads(Path(value["receipt"]).read_text(encoding="utf-8"))
    assert (value["sessions"], value["content_root"]) == (1, receipt["content_root"])
    assert "tickets.csv: 5 records" in err


def test_a_run_can_be_shown_later_with_its_records(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["count", tickets, "is it an offer?", "--terms", "buy", "--run", "run"])
    first = capsys.readouterr().out
    assert main(["show", "run"]) == 0
    shown = capsys.readouterr().out
    receipt = json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))
    roots = [f"{name.replace('_', ' ')}: {receipt[name]}" for name in ("content_root", "log_root")]
    assert shown == f"{first}\n  {roots[0]}\n  {roots[1]}\n"
    assert main(["show", "run", "--state", "matched", "--limit", "1", "--out", "o.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(shown)
    assert out[len(shown) :] == snapshot("""\

matched: 2 records
  1  tickets.csv:2
… 1 more; --limit N, or --out FILE for all
""")
    assert err == "o.jsonl: 5 rows\n"
    assert main(["show", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "is it an offer?"


@pytest.mark.parametrize(
    ("receipt", "message"),
    [
        (None, "holds no receipt that can be read: No such file"),
        ("{", "is not one of this version"),
        ('{"run": 1}', "is not one of this version"),
        ("[1]", "is not one of this version"),
    ],
)
def test_a_directory_without_a_receipt_of_ours_is_wrong_use(
    receipt: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if receipt is not None:
        (tmp_path / "receipt.json").write_text(receipt, encoding="utf-8")
    assert main(["show", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.case("D13", "D14")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--text", "body"], "body"),
        (["--judge", "oracle"], "choose one of chat, logprob, rule, encoder"),
        (["--passes", "0"], "passes=0"),
        (["--votes", "most"], "choose one of any, majority, all"),
        (["--on-duplicate", "drop"], "choose one of refuse, suffix"),
        (["--max-usd", "nan"], "NaN"),
        (["--model", "oracle:x"], "unknown model spec 'oracle:x'"),
        (["--model", "openai:gpt-x"], "OPENAI_API_KEY"),
        (["--judge", "chat"], "the chat judge needs a model"),
        (["--one-of", "a"], "1 label(s) given"),
        (["--out", "x.xlsx"], "'.xlsx'"),
        (["--out", "tickets.csv"], "the source itself"),
        pytest.param(
            ["--label", "40"],
            "standard input is no terminal",
            marks=pytest.mark.case("K13-16", "K13-17"),
        ),
        (["--label", "0"], "label=0"),
        (["--labels", "none.csv"], "none.csv"),
        (["--encoder", "oracle"], "no encoder is called 'encoder:oracle'"),
    ],
)
def test_wrong_options_end_with_2_and_leave_no_run(
    args: list[str],
    message: str,
    tickets: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Path(os.devnull).open(encoding="utf-8") as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        assert main(["count", tickets, "is it an offer?", "--run", "run", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert not list(Path().glob("run/*"))
    assert Path(tickets).read_text(encoding="utf-8") == TICKETS


def test_a_directory_that_holds_no_run_is_refused_as_one(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run").mkdir()
    Path("run/letter.txt").write_text("dear", encoding="utf-8")
    args = ["count", tickets, "is it an offer?", "--terms", "buy", "--run", "run"]
    assert main(args) == 2
    assert "holds something already, and no run" in capsys.readouterr().err
    assert Path("run/letter.txt").exists()


def test_a_run_that_exists_is_gone_on_with(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["count", tickets, "is it an offer?", "--terms", "buy", "--run", "run"]
    assert main(args) == 0
    capsys.readouterr()
    assert main([*args, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert main(["resume", "run", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    assert again["result"] == resumed["result"]
    assert again["run"] == resumed["run"]


@pytest.mark.case("D14")
def test_an_empty_corpus_is_incomplete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.csv").write_text("id,text\n", encoding="utf-8")
    assert main(["count", str(tmp_path / "none.csv"), "is it?", "--terms", "x"]) == 4
    assert "incomplete: empty-corpus" in capsys.readouterr().out


def items(received: Received) -> list[tuple[str, str]]:
    content = json.loads(received.body)["messages"][-1]["content"]
    shown = json.loads(content[content.index("[{") : content.rindex("</items")])
    return [(item["alias"], item["text"]) for item in shown]


def honest(received: Received) -> Act:
    answers = {alias: "yes" if "buy" in text.lower() else "no" for alias, text in items(received)}
    return Completion(text=json.dumps(answers))


def rejecting(received: Received) -> Act:
    if any("hello" in text for _, text in items(received)):
        return Reply(status=400, body=b'{"error": {"message": "no [bold]\\u001b[2J"}}')
    return honest(received)


@pytest.mark.case("S30")
def test_a_server_is_asked_within_bounds_that_are_said_first(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And by the defaults alone: whoever names no bound has some, and reads them before it costs."""
    asked = ["count", tickets, "is it an offer?", "--window", "2", "--run", "run"]
    with FakeServer(honest) as server:
        assert main([*asked, "--model", f"openai+{server.base_url}:m"]) == 0
        out, err = capsys.readouterr()
        assert out.startswith("2 of 5 records match")
        assert "price unknown" in out
        bounds = err.index(
            "bounds: 100,000 calls, 200,000,000 tokens, 10 USD (binds nothing: no price is known)"
        )
        assert bounds < err.index("judge by")
        assert main(["resume", "run", "--price", "1,2", "--rpm", "900", "--tpm", "9000"]) == 0
    err = capsys.readouterr().err
    assert "bounds: 100,000 calls, 200,000,000 tokens, 10 USD, 24 h\n" in err
    assert "limits: 900 requests a minute, 9,000 tokens a minute\n" in err


@pytest.mark.case("D14")
def test_windows_that_fail_leave_the_count_incomplete_with_its_range(
    tickets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer(rejecting) as server:
        model = f"openai+{server.base_url}:m"
        assert main(["count", tickets, "is it an offer?", "--model", model, "--window", "1"]) == 4
    out, err = capsys.readouterr()
    assert "coverage range: 2 to 4" in out
    assert "incomplete: unresolved-records" in out
    assert "2 record(s) unresolved: " in out
    assert "\x1b" not in out + err


def test_a_bound_that_is_reached_is_named(tickets: str, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(honest) as server:
        args = ["--model", f"openai+{server.base_url}:m", "--window", "1", "--max-calls", "1"]
        assert main(["count", tickets, "is it an offer?", *args]) == 4
        assert server.requests == 1
    assert "the calls bound of run (1) is reached" in capsys.readouterr().out


@pytest.mark.case("K13-8", "K15-22")
def test_nothing_from_outside_steers_the_terminal_or_the_spreadsheet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files and columns, ids, texts, the question and a model's own words."""
    monkeypatch.chdir(tmp_path)
    nasty = "=x[/INST]\x1b[2J\u202e\u200b\x07[red]"
    source = tmp_path / f"{nasty.replace('/', '-')}.jsonl"
    rows = [{"id": f"{n}{nasty}", nasty: f"buy {nasty}"} for n in ("", "2")]
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def chatty(received: Received) -> Act:
        return Completion(text=f"Sure! {nasty}")

    with FakeServer(chatty) as server:
        args = ["--model", f"openai+{server.base_url}:{nasty}", "--text", nasty, "--run", "run"]
        assert main(["count", str(source), f"is it {nasty}?", *args, "--out", "o.csv"]) == 4
    assert main(["show", "run", "--state", "unresolved"]) == 0
    out, err = capsys.readouterr()
    ink = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    hidden = {c for c in out + err if unicodedata.category(c) in ink}
    assert hidden == {"\n"}
    assert out.count("=x[/INST]\\x1b[2J\\u202e\\u200b\\x07[red]") > 4
    assert next(read_csv("o.csv"))["id"] == nasty
    assert "\n0,'=x" in Path("o.csv").read_text(encoding="utf-8")
