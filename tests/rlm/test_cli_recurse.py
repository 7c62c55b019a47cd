"""`rlm recurse` whole: from a task to its result, its tree and its exit code; shown and gone on with."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from executors.messages import ModelReply, ModelRequest
from executors.models.fakes.acts import Act
from executors.models.fakes.received import Received
from executors.models.fakes.server import FakeServer
from executors.models.local.weights import PACKAGED
from executors.usage import Usage
from rlm.cli import main
from rlm.cli.plan import EXAMPLES as PLANS
from rlm.cli.recurse import EXAMPLES as RECURSIONS
from rlm.fakes.judge import judge_script
from rlm.fakes.tree import Part, answering, grading, planning, role_of, spawning, tree_server
from rlm.outputs import read_csv

TICKETS = "id,text\nt1,please refund me\nt2,it crashes\nt3,refund missing\nt4,\n"


def examples_in(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  rlm ")]


TASK = "Design and implement the whole system."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TICKETS, encoding="utf-8")


def judging(request: ModelRequest) -> ModelReply | str | Exception | None:
    return (
        judge_script(lambda text: "refund" in text)(request)
        if role_of(request) == "judge"
        else None
    )


def server(*parts: Part) -> FakeServer:
    return FakeServer(tree_server(*parts, judging))


@pytest.fixture
def tree() -> Iterator[FakeServer]:
    with server(spawning(2, depth=1), planning(3), grading("satisfied")) as found:
        yield found


def spec(of: FakeServer) -> list[str]:
    return ["--model", f"openai+{of.base_url}:m", "--price", "1,2"]


def stable(text: str) -> str:
    """Take times, sizes of prompts, random bytes and what is told while it goes on out."""
    text = re.sub(r"\d+ of \d+ nodes? ended.*\n", "", text)
    text = re.sub(r"\d[\d.]* s\b", "T s", text)
    text = re.sub(r"[\d,]+ tokens, [\d.]+ USD", "N tokens, M USD", text)
    return re.sub(r"\b[0-9a-f]{64}\b", "ROOT", text)


def test_the_result_goes_to_standard_output_and_the_rest_beside_it(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recurse", TASK, *spec(tree), "--run", "run"]) == 0
    out, err = capsys.readouterr()
    assert out == "root: answer of 0; answer of 1\n"
    assert stable(err) == snapshot("""\
bounds: 100,000 calls, N tokens, M USD, 24 h
run: run; should it be cut off: rlm resume run
began: [part 0] Design and implement this part of the whole.
began: [part 1] Design and implement this part of the whole.
ended: [part 0] Design and implement this part of the whole.: done, 1 call, N tokens, M USD, T s
ended: [part 1] Design and implement this part of the whole.: done, 1 call, N tokens, M USD, T s
ended: Design and implement the whole system.: done, 2 calls, N tokens, M USD, T s
  completed, nothing had to be verified
  cost: 4 calls, N tokens, M USD
  sent: nothing left this machine
  receipt: run/receipt.json

Design and implement the whole system.  done  2 calls, N tokens, M USD, T s
├─ [part 0] Design and implement this part of the whole.  done  1 call, N tokens, M USD, T s
└─ [part 1] Design and implement this part of the whole.  done  1 call, N tokens, M USD, T s
""")


def test_json_is_one_object_with_verdict_spend_and_place(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [*spec(tree), "--run", "run", "--contract", "two parts", "--json", "--out", "out.md"]
    assert main(["recurse", TASK, *args]) == 0
    out, _ = capsys.readouterr()
    value = json.loads(out)
    assert out.count("\n") == 1
    assert value["outcome"] == "completed"
    assert value["verdict"]["status"] == "satisfied"
    assert value["result"] == "root: answer of 0; answer of 1"
    assert value["spend"]["calls"] == tree.requests == 5
    assert value["out"]["path"] == "out.md"
    assert Path("out.md").read_text(encoding="utf-8") == f"{value['result']}\n"
    assert json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))["run"] == value["run"]


@pytest.mark.case("D14")
@pytest.mark.parametrize(
    ("verdict", "code", "said"),
    [
        ("satisfied", 0, "completed, satisfied"),
        ("needs_revision", 3, "completed, not satisfied: it needs revision: the script says"),
        ("failed", 3, "completed, not satisfied: it failed: the script says"),
        ("no verdict at all", 4, "a model that can grade with --verifier SPEC"),
    ],
)
def test_the_exit_code_says_what_the_grader_said(
    verdict: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(answering(lambda _: "done"), grading(verdict)) as one:
        assert main(["recurse", "say it", *spec(one), "--contract", "it is said"]) == code
    out, err = capsys.readouterr()
    assert out == "done\n"
    assert said in err


@pytest.mark.case("D14")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["recurse"], "Missing argument"),
        (["recurse", " "], "the task is empty"),
        (["recurse", TASK, "--mode", "sideways"], "--mode='sideways'"),
        (["recurse", TASK, "--retrieval", "scan"], "there is no corpus"),
        (["recurse", TASK, "--id", "id"], "--id has no effect: there is no corpus"),
        (["recurse", TASK, "--mode", "partition"], "partitions a corpus, and there is none"),
        (["recurse", TASK, "--count", "0"], "count=0"),
        (["recurse", TASK, "--sensor", "luck"], "--sensor='luck' names no sensor"),
        (["recurse", TASK, "--sensor", "json-schema:none.json"], "'none.json' cannot be read"),
        (["recurse", TASK, "--model", "nobody:x"], "nobody"),
        (["recurse", TASK, "--contract", ""], "--contract is empty"),
        (["recurse", TASK, "--corpus", "none.csv"], "none.csv"),
        (["recurse", TASK, "--out", "no/where.txt"], "no folder"),
        (["recurse", TASK, "--corpus", "t.csv", "--out", "t.csv"], "is the source itself"),
        (["plan", TASK, "--run", "run"], "--run has no effect"),
        (["plan", TASK, "--budget", "usd=3"], "--budget has no effect"),
        (["show", "."], "no receipt"),
    ],
)
def test_wrong_use_is_said_in_three_lines_before_anything_is_spent(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert 1 <= err.count("\n") <= 3
    assert not Path("run").exists()


def test_a_count_by_terms_needs_no_model_that_judges(
    capsys: pytest.CaptureFixture[str], tree: FakeServer
) -> None:
    asked = ["recurse", "How many tickets mention 'refund'?", "--corpus", "t.csv", "--run", "run"]
    assert main([*asked, *spec(tree), "--mode", "partition", "--out", "rows.csv"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 of 4 records match: How many tickets")
    assert "t.csv: 4 records, 1 without text" in err
    assert [row["state"] for row in read_csv("rows.csv")] == [
        "matched", "not_matched", "matched", "empty",
    ]  # fmt: skip
    assert main(["show", "run", "--state", "matched"]) == 0
    out = capsys.readouterr().out
    assert "t3" in out
    assert re.search(r"partition 1 of 1 .* done  2 calls, .*, 6 read, ", out)
    assert "pass 1 of 2" not in out
    assert main(["show", "run", "--check"]) == 0


def test_a_run_is_shown_later_as_it_ended(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    _, told = capsys.readouterr()
    assert main(["show", "run"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("root: answer of 0; answer of 1\n\n  completed, nothing had to be")
    assert out[out.index("  completed") : out.index("\n\n  content root")] in told
    assert main(["show", "run", "--check"]) == 0
    assert "consistent, not authenticated" in capsys.readouterr().out
    assert main(["show", "run", "--out", "o.txt"]) == 0
    assert Path("o.txt").read_text(encoding="utf-8") == "root: answer of 0; answer of 1\n"


def test_a_file_that_was_asked_for_and_has_nothing_to_hold_is_said(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [*spec(tree), "--max-calls", "0", "--out", "out.txt"]
    assert main(["recurse", TASK, *args]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "out: out.txt is not written: there is no result" in err
    assert not Path("out.txt").exists()


def test_text_has_no_rows_for_a_table(tree: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["recurse", TASK, *spec(tree), "--run", "run", "--out", "out.csv"])
    out, err = capsys.readouterr()
    assert code == 4
    assert out == "root: answer of 0; answer of 1\n"
    assert "the result is no count, so there are no rows" in err
    assert "nothing is lost: rlm show run --out FILE" in err


def test_a_run_that_was_killed_says_how_far_its_tree_came(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    Path("run/receipt.json").unlink()
    capsys.readouterr()
    assert main(["show", "run"]) == 2
    assert "3 of 3 nodes ended, 4 calls answered" in capsys.readouterr().err


def test_a_price_that_is_not_known_is_said_to_bind_nothing(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree)[:2]])
    assert capsys.readouterr().err.count("the bound of USD does not count its calls") == 1


@pytest.mark.case("D12")
def test_the_path_of_the_node_that_broke_is_named_above_it_and_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(path: tuple[int, ...]) -> ModelReply | str:
        refuses = path == (1, 0)
        return (
            ModelReply(text="no", stop="refusal", usage=Usage()) if refuses else f"answer of {path}"
        )

    with server(spawning(2, depth=2, answer=answer)) as one:
        assert main(["recurse", TASK, *spec(one), "--run", "run"]) == 4
    _, err = capsys.readouterr()
    assert "  incomplete: refused at root.1.0\n" in err
    assert main(["show", "run"]) == 0
    shown = capsys.readouterr().out
    for line in (
        r"Design and implement the whole system.  incomplete: refused at root.1.0  ",
        r"└─ \[part 1\] Design and implement this part of the whole.  incomplete: refused at root.1.0  ",
        r"   ├─ \[part 1.0\] Design and implement this part of the whole.  incomplete: refused  ",
        r"   └─ \[part 1.1\] Design and implement this part of the whole.  done  ",
    ):
        assert re.search(line, shown), line


def test_a_result_that_was_changed_in_its_file_is_found_out(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    result = Path("run/result.json")
    changed = result.read_text(encoding="utf-8").replace("answer of 0", "answer of 9")
    result.write_text(changed, encoding="utf-8")
    capsys.readouterr()
    assert main(["show", "run", "--check"]) == 3
    assert "another content root" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args", [["show", "run", "--state", "matched"], ["runs", "forget", "run", "t1"]]
)
def test_what_has_no_meaning_for_a_recursion_is_refused_with_its_reason(
    args: list[str], tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    capsys.readouterr()
    assert main(args) == 2
    err = capsys.readouterr().err
    assert "the result of this run is no count" in err or "is a recursion" in err


def test_runs_are_listed_with_their_kind(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree)])
    capsys.readouterr()
    assert main(["runs", "list"]) == 0
    assert "  completed  recurse, " in capsys.readouterr().out
    assert main(["runs", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["kind"] == "recurse"


@pytest.mark.parametrize("example", [*examples_in(RECURSIONS), *examples_in(PLANS)])
def test_each_example_of_the_help_can_be_planned(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("tickets.csv", "offers/a.txt", "offers/b.txt", "offers/c.txt", "mails.jsonl"):
        Path(name).parent.mkdir(exist_ok=True)
        text = "one refund " * 9
        if name.endswith(".csv"):
            text = TICKETS + "".join(f"n{n},ticket {n}\n" for n in range(9))
        rows = "".join(json.dumps({"id": str(n), "text": text}) + "\n" for n in range(9))
        Path(name).write_text(rows if name.endswith(".jsonl") else text, encoding="utf-8")
    model = [] if "--model" in example else ["--model", "openai:m"]
    assert main(["plan", *shlex.split(example)[2:], *model]) == 0
    assert capsys.readouterr().out.startswith("plan: nothing was asked")


# ---------------------------------------------------------------- text from outside


def test_what_a_model_writes_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    def nasty(request: ModelRequest) -> str:
        return "one \x1b[2J two\n\u202ethree\r\nfour"

    with server(answering(nasty)) as one:
        assert main(["recurse", "say \x1b[31mit", *spec(one), "--run", "run"]) == 0
    out, err = capsys.readouterr()
    assert out == "one \\x1b[2J two\n\\u202ethree\nfour\n"
    assert "\x1b" not in err
    main(["show", "run"])
    assert "\x1b" not in capsys.readouterr().out


def test_options_are_checked_before_the_corpus_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unread(_: Received) -> Act:
        raise AssertionError

    with FakeServer(unread) as one:
        args = ["--corpus", "t.csv", "--count", "0", "--run", "run"]
        assert main(["recurse", TASK, *spec(one), *args]) == 2
        assert one.requests == 0


# ---------------------------------------------------------------- with nothing but this machine


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(PACKAGED.find() is None, reason="no weights here")
def test_a_real_text_is_taken_apart_with_no_key_and_no_network(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The small model says little of use; what counts is that each part ran and what is said of it."""
    source = Path(__file__).resolve().parents[2] / "examples" / "data" / "NOTICE.md"
    args = ["--corpus", str(source), "--format", "text", "--count", "2", "--answer-tokens", "16"]
    assert main(["recurse", "What is this text about?", *args, "--run", "run"]) in (0, 4)
    out, err = capsys.readouterr()
    assert out.startswith("### Part 1\n")
    assert "rules plan and route, and checks in code grade" in err
    assert "the corpus was sliced by rules, in its order" in err
    receipt = json.loads(Path("run/receipt.json").read_text(encoding="utf-8"))
    assert receipt["totals"]["calls"] == 2
    assert main(["show", "run", "--check"]) == 0
