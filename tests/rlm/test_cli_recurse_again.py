"""`rlm resume` and `--run` of a recursion: it goes on as it was, and pays nothing twice."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.models.fakes.acts import Completion, Reply
from executors.models.fakes.server import FakeServer
from rlm.cli import main
from rlm.fakes.tree import Part, answering, grading, spawning, tree_server

TICKETS = "id,text\nt1,please refund me\nt2,it crashes\n"
TASK = "Design and implement the whole system."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TICKETS, encoding="utf-8")


def server(*parts: Part) -> FakeServer:
    return FakeServer(tree_server(*parts))


@pytest.fixture
def tree() -> Iterator[FakeServer]:
    with server(spawning(2, depth=1), grading("satisfied")) as found:
        yield found


def spec(of: FakeServer) -> list[str]:
    return ["--model", f"openai+{of.base_url}:m", "--price", "1,2"]


def test_a_recursion_that_a_bound_ended_goes_on_and_pays_nothing_twice(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recurse", TASK, *spec(tree), "--run", "run", "--max-calls", "2"]) == 4
    out, err = capsys.readouterr()
    assert "incomplete: halted at root" in err
    assert "go on with: rlm resume run --max-calls MORE" in err
    paid = tree.requests
    assert main(["resume", "run", "--max-calls", "20"]) == 0
    out, err = capsys.readouterr()
    assert out == "root: answer of 0; answer of 1\n"
    assert (paid, tree.requests) == (2, 4)
    assert "sessions: 2; cost and calls are of all" in err


def test_a_record_is_not_looked_up_where_nothing_was_counted(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    assert main(["show", "run", "--record", "t1"]) == 2
    assert "--record has no effect: the result of this run is no count" in capsys.readouterr().err
    asked = ["recurse", "How many mention 'refund'?", "--corpus", "t.csv", "--run", "counted"]
    assert main(asked) == 0
    assert main([*asked[:-1], "exact", "--retrieval", "exact"]) == 0
    assert capsys.readouterr().out.count("1 of 2 records match: How many mention 'refund'?") == 2
    assert main(["show", "counted", "--record", "t1"]) == 0
    assert "is told of counts, not of recursions" in capsys.readouterr().out


def test_a_text_is_not_written_as_what_it_is_not(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recurse", TASK, *spec(tree), "--out", "found.xlsx"]) == 2
    assert "ends in '.xlsx'" in capsys.readouterr().err
    assert tree.requests == 0
    assert main(["recurse", TASK, *spec(tree), "--out", "found.txt"]) == 0
    assert "out: found.txt, 1 line\n" in capsys.readouterr().err


def test_a_call_that_failed_for_good_and_a_cut_answer_say_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with FakeServer(Reply(status=404, body=b"no such model")) as broken:
        assert main(["recurse", "Say hello.", *spec(broken), "--run", "run"]) == 4
    err = capsys.readouterr().err
    assert "incomplete: model-failed at root\n    " in err
    assert "404" in err.partition("incomplete: model-failed at root")[2].splitlines()[1]
    assert "ask again with: rlm resume run\n" in err
    with FakeServer(Completion(text="so far", finish="length")) as cut:
        assert main(["recurse", "Say hello.", *spec(cut), "--run", "cut"]) == 4
    assert "the answer was cut at its limit (max_tokens)" in capsys.readouterr().err


def test_records_that_were_not_judged_say_why_and_are_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["recurse", "Is this a refund?", "--corpus", "t.csv", "--mode", "partition"]
    with server(answering(lambda _: "no JSON at all")) as prose:
        assert main([*asked, *spec(prose), "--run", "run"]) == 4
    err = capsys.readouterr().err
    assert "    2 record(s) unresolved: " in err
    assert "    ask again with: rlm resume run\n" in err


def test_an_empty_corpus_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert main(["audit", "empty", "Find errors.", "--model", "openai+http://127.0.0.1:9:m"]) == 4
    assert "see --include and --exclude" in capsys.readouterr().err


def test_the_same_command_with_its_run_goes_on_as_the_run_was(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run", "--persona", "You are terse."])
    paid = tree.requests
    assert main(["recurse", TASK, "--run", "run"]) == 0
    assert tree.requests == paid
    assert "calls: 4 answered from the journal" in capsys.readouterr().err
    options = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))["options"]
    assert options["persona"] == "You are terse."
    assert options["prices"]["each"]["input"] == "1"


def test_another_task_is_not_the_run_that_is_there(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    capsys.readouterr()
    assert main(["recurse", "Another one.", *spec(tree), "--run", "run"]) == 2
    assert "name another directory with --run" in capsys.readouterr().err


def test_a_count_and_a_recursion_do_not_go_on_with_each_other(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run"])
    capsys.readouterr()
    assert main(["count", "t.csv", TASK, "--terms", "a", "--run", "run"]) == 2
    assert "is a recurse, and this is a count" in capsys.readouterr().err
    for option in (["--engine", "dask"], ["--dry-run"]):
        assert main(["resume", "run", *option]) == 2
        assert "has no effect: the run" in capsys.readouterr().err


def test_a_run_with_a_sensor_is_gone_on_with_by_naming_the_sensor_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("s.json").write_text('{"type": "array"}', encoding="utf-8")
    with server(answering(lambda _: "[1]")) as one:
        sensor = ["--sensor", "json-schema:s.json"]
        assert main(["recurse", "list it", *spec(one), *sensor, "--run", "run"]) == 0
        assert main(["resume", "run"]) == 2
        err = capsys.readouterr().err
        assert "refine_leaf" in err
        assert "rlm recurse TASK --run run --sensor" in err
        assert main(["recurse", "list it", *sensor, "--run", "run"]) == 0
        assert one.requests == 1


def test_a_sensor_that_does_not_hold_leaves_the_best_and_says_how_often_it_was_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with server(answering(lambda _: '[{"record": "t1", "quote": "never", "finding": "x"}]')) as one:
        args = ["--corpus", "t.csv", "--retrieval", "read", "--sensor", "citations"]
        code = main(["recurse", "What is amiss?", *spec(one), *args, "--run", "run"])
    out, err = capsys.readouterr()
    assert code in (3, 4)
    assert '"quote": "never"' in out
    assert "the sensor does not hold after 3 tries" in err


def test_a_run_that_was_made_elsewhere_asks_for_its_model_and_for_what_workers_trust(
    tree: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["recurse", TASK, *spec(tree), "--run", "run", "--persona", "You are terse."])
    shutil.copytree("run", "other")
    manifest = Path("other/manifest.json")
    text = re.sub(r'"mark": "\w+"', '"mark": "00"', manifest.read_text(encoding="utf-8"))
    manifest.write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["resume", "other"]) == 2
    assert "neither its models nor the name of a key" in capsys.readouterr().err
    assert main(["resume", "other", *spec(tree)]) == 2
    assert "has a persona of its own" in capsys.readouterr().err
    asked = ["recurse", TASK, "--run", "other", "--persona", "You are terse."]
    paid = tree.requests
    assert main([*asked, *spec(tree)]) == 0
    assert tree.requests == paid
