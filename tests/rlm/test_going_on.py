"""What a run that is named again holds on to, and what it lets go."""

import csv
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import rlm
from rlm.cli import main
from rlm.runs.manifest import Manifest
from rlm.testing import Act, FakeServer, Received, ScriptedModel, judge_script, judge_server

Q = "is it a refund?"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    _write("a.csv", 40)
    _write("b.csv", 48)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(judge_server(lambda text: "money" in text)) as found:
        yield found


def _write(name: str, rows: int) -> None:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(["id", "text"])
        sheet.writerows([n, f"I want my money back, {n}"] for n in range(rows))


def _origin(server: FakeServer) -> str:
    return server.base_url.removesuffix("/v1")


def _begin(server: FakeServer) -> None:
    named = ["--model", f"openai+{server.base_url}:m", "--price", "1,2", "--max-calls", "12"]
    assert main(["count", "a.csv", Q, *named, "--passes", "1", "--run", "r"]) == 0


def test_a_count_into_a_run_keeps_its_model_price_passes_and_bounds(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the encoder would rank what a model judged, and no bound of USD would bind."""
    _begin(server)
    capsys.readouterr()
    assert main(["count", "b.csv", Q, "--run", "r"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("48 of 48 records match")
    assert f"judge: chat openai:m at {_origin(server)}, 1 pass\n" in out
    assert "unknown price" not in out
    assert "bounds: 12 calls, " in err


def test_what_a_count_names_holds_against_its_run(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _begin(server)
    assert main(["count", "b.csv", Q, "--run", "r", "--max-calls", "99", "--passes", "2"]) == 0
    out, err = capsys.readouterr()
    assert f"judge: chat openai:m at {_origin(server)}, 2 passes" in out
    assert "bounds: 99 calls, " in err
    assert main(["count", "b.csv", Q, "--run", "r", "--terms", "money"]) == 0
    assert "judge: rule any of money" in capsys.readouterr().out


@pytest.mark.parametrize("again", ["count a.csv Q --run", "resume"])
def test_another_model_has_no_price_of_the_one_before_and_it_is_said(
    server: FakeServer, again: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _begin(server)
    capsys.readouterr()
    words = [Q if word == "Q" else word for word in again.split()]
    other = f"openai+{server.base_url}:n"
    told = f"what {other} costs is unknown, and no bound of USD binds it"
    assert main([*words, "r", "--model", other, "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert "cost: unknown" in out
    assert told in err
    assert main([*words, "r", "--model", other]) == 0
    out, err = capsys.readouterr()
    assert "calls of unknown price" in out
    assert told in err
    assert main(["resume", "r", "--votes", "all"]) == 0
    assert told not in capsys.readouterr().err


@pytest.mark.parametrize("again", ["count a.csv Q --run", "resume"])
def test_a_price_that_is_named_with_another_model_is_its_own(
    server: FakeServer, again: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _begin(server)
    capsys.readouterr()
    words = [Q if word == "Q" else word for word in again.split()]
    assert main([*words, "r", "--model", f"openai+{server.base_url}:n", "--price", "3,4"]) == 0
    out, err = capsys.readouterr()
    assert "unknown" not in out + err


def test_a_model_that_is_given_again_keeps_its_price(tmp_path: Path) -> None:
    model = ScriptedModel(judge_script(lambda text: "money" in text))
    price = rlm.Price(input=Decimal(1), output=Decimal(2))
    rlm.count_sync(Q, "a.csv", model=model, prices=price, passes=1, run="r")
    rlm.resume_sync("r", model=model, passes=2)
    rlm.close()
    assert Manifest.load(Path("r")).options["prices"] is not None


@pytest.mark.parametrize("again", ["resume", "count", "python"])
def test_a_key_does_not_follow_to_another_server(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    monkeypatch.setenv("CORP_KEY", "sk-corp-0123456789abcdef")
    named = ["--model", f"openai+{server.base_url}:m", "--key-env", "CORP_KEY"]
    assert main(["count", "a.csv", Q, *named, "--run", "r"]) == 0
    keys: list[str | None] = []
    judge = judge_server(lambda text: "money" in text)

    def heard(received: Received) -> Act:
        keys.append(received.headers.get("authorization"))
        return judge(received)

    with FakeServer(heard) as other:
        model = f"openai+{other.base_url}:m"
        if again == "resume":
            assert main(["resume", "r", "--model", model]) == 0
        elif again == "count":
            assert main(["count", "a.csv", Q, "--run", "r", "--model", model]) == 0
        else:
            rlm.resume_sync("r", model=model)
            rlm.close()
    assert keys
    assert set(keys) == {None}


def test_a_key_stays_with_its_server_under_another_name_of_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CORP_KEY", "sk-corp-0123456789abcdef")
    keys: list[str | None] = []
    judge = judge_server(lambda text: "money" in text)

    def heard(received: Received) -> Act:
        keys.append(received.headers.get("authorization"))
        return judge(received)

    with FakeServer(heard) as server:
        spec = f"openai+{server.base_url}"
        named = ["--model", f"{spec}:m", "--key-env", "CORP_KEY", "--run", "r"]
        assert main(["count", "a.csv", Q, *named]) == 0
        assert main(["resume", "r", "--model", f"{spec}:n"]) == 0
    assert set(keys) == {"Bearer sk-corp-0123456789abcdef"}


def test_a_run_past_its_bound_says_which_one_to_raise(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command without a higher bound would end at once, again."""
    named = ["--model", f"openai+{server.base_url}:m", "--max-calls", "2", "--run", "r"]
    assert main(["count", "a.csv", Q, *named]) == 4
    assert "    go on with: rlm resume r --max-calls MORE\n" in capsys.readouterr().out
    assert main(["show", "r"]) == 0
    assert "    go on with: rlm resume r, with a higher bound\n" in capsys.readouterr().out


def test_a_session_that_goes_on_counts_what_is_left(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    _begin(server)
    capsys.readouterr()
    assert main(["count", "b.csv", Q, "--run", "r"]) == 0
    err = capsys.readouterr().err
    assert "chat openai:m: 48 distinct texts in 1 pass" in err
    assert "40 verdicts stand in the run already\n" in err
    assert "judge by chat openai:m 8 of 8 records (100 %)" in err


def test_a_question_before_its_source_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", Q, "a.csv"]) == 2
    assert "the source comes first: rlm count SOURCE QUESTION" in capsys.readouterr().err


def test_a_receipt_older_than_the_last_session_says_so(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was paid since stands in no receipt yet."""
    _begin(server)
    manifest = Path("r/manifest.json")
    known = json.loads(manifest.read_bytes())
    known["sessions"].append({**known["sessions"][-1], "number": 2, "ended": None})
    manifest.write_text(json.dumps(known), encoding="utf-8")
    capsys.readouterr()
    assert main(["show", "r"]) == 0
    assert "a later one was killed; rlm resume r\n" in capsys.readouterr().err
    Path("r/receipt.json").unlink()
    assert main(["show", "r"]) == 2
    err = capsys.readouterr().err
    assert "has no receipt: it was killed\n" in err
    assert "go on with it: rlm resume r\n" in err
