"""Replay: a count whose calls are all answered by a recorded run."""

import hashlib
import sys
from pathlib import Path

import pytest

from executors.models.fakes.acts import Act, Received, Reply
from rlm import (
    Caps,
    ConfigError,
    Incomplete,
    ReplayMiss,
    RunDirError,
    ValidationError,
    count,
    load_result,
    resume,
)
from rlm.cli import main
from rlm.counting import CountOutcome
from rlm.runs.home import data_home
from rlm.runs.manifest import Manifest
from rlm.testing import FakeServer, Fault, ScriptedModel, judge_script, judge_server

pytestmark = pytest.mark.anyio

CORPUS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(100)]


def fire(text: str) -> bool:
    return "fire" in text


def model() -> ScriptedModel:
    return ScriptedModel(judge_script(fire))


def rows(outcome: CountOutcome) -> list[tuple[str, str, str]]:
    tally = load_result(outcome.receipts.directory)
    return [(row.id, row.state, row.reason) for row in tally.rows()]


def contents(run: Path) -> dict[str, str]:
    files = sorted(path for path in run.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def test_each_call_is_answered_by_the_recorded_run_and_none_by_a_server(
    tmp_path: Path,
) -> None:
    """The server counts its sockets; the recorded run is as it was to the last byte."""
    recorded = tmp_path / "recorded"
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        first = await count("fire?", CORPUS, model=spec, run=recorded)
        accepted, before = server.accepted, contents(recorded)
        again = await count("fire?", CORPUS, model=spec, replay=recorded, run=tmp_path / "again")
        assert server.accepted == accepted
    assert rows(again) == rows(first)
    assert contents(recorded) == before
    totals = again.receipts.totals
    assert (totals.calls, totals.replayed, totals.attempts) == (0, 26, 0)


async def test_no_key_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that is named decides the keys of the calls, and is never asked."""
    recorded = tmp_path / "recorded"
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        monkeypatch.setenv("SOME_KEY", "sk-canary-0123456789")
        first = await count("fire?", CORPUS, model=spec, key_env="SOME_KEY", run=recorded)
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ConfigError):
        await count("fire?", CORPUS, model=spec, key_env="SOME_KEY")
    again = await count("fire?", CORPUS, model=spec, key_env="SOME_KEY", replay=recorded)
    assert rows(again) == rows(first)


async def test_failures_refusals_and_repairs_are_replayed_too(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    faults: dict[bytes, Fault] = {b"calm 1": "refuse", b"calm 3": "truncate", b"calm 5": "prose"}

    def script(received: Received) -> Act:
        if b"calm 66" in received.body:
            return Reply(status=400, body=b'{"error":{"message":"no such words"}}')
        found: list[Fault] = [f for text, f in faults.items() if text + b'\\"' in received.body]
        if not found and received.index % 3 == 0:
            found.append("leave-out")
        return judge_server(fire, lambda _: found[0] if found else None)(received)

    async with FakeServer(script) as server:
        spec = f"openai+{server.base_url}:any"
        first = await count("fire?", CORPUS, model=spec, run=recorded, passes=1)
    again = await count("fire?", CORPUS, model=spec, replay=recorded, passes=1)
    assert isinstance(first, Incomplete)
    assert isinstance(again, Incomplete)
    assert rows(again) == rows(first)
    assert len([reason for *_, reason in rows(again) if reason]) >= 4
    assert again.receipts.totals.calls == 0


async def test_other_votes_are_counted_with_no_call(tmp_path: Path) -> None:
    recorded, seen = tmp_path / "recorded", set[str]()

    def once(text: str) -> bool:
        """Yes at the first look alone, so that the passes disagree."""
        first = text not in seen
        seen.add(text)
        return first

    await count("fire?", CORPUS, model=ScriptedModel(judge_script(once)), run=recorded)
    asked = model()
    every = await count("fire?", CORPUS, model=asked, replay=recorded, votes="all")
    some = await count("fire?", CORPUS, model=asked, replay=recorded, votes="any")
    assert asked.calls == 0
    assert [load_result(o.receipts.directory).count for o in (every, some)] == [0, 100]


@pytest.mark.parametrize("changed", ["question", "window", "corpus", "passes", "model"])
async def test_a_call_that_was_not_recorded_is_named_and_nothing_is_left(
    changed: str, tmp_path: Path
) -> None:
    recorded = tmp_path / "recorded"
    await count("fire?", CORPUS, model=model(), run=recorded)
    before = contents(recorded)
    asked = ScriptedModel(judge_script(fire), name="other") if changed == "model" else model()
    with pytest.raises(ReplayMiss, match=r"no answer is recorded for call [0-9a-f]{32}"):
        await count(
            "smoke?" if changed == "question" else "fire?",
            [("new", "new"), *CORPUS] if changed == "corpus" else CORPUS,
            model=asked,
            window=7 if changed == "window" else None,
            passes=3 if changed == "passes" else 2,
            replay=recorded,
        )
    assert asked.calls == 0
    assert contents(recorded) == before
    assert not data_home().exists() or list(data_home().iterdir()) == []


async def test_a_miss_is_loud_also_where_other_verdicts_were_kept(tmp_path: Path) -> None:
    """A repair that was never recorded costs the replay, not only its records."""
    recorded = tmp_path / "recorded"
    script = judge_script(fire, lambda _: "leave-out")
    first = await count("fire?", CORPUS[:8], model=ScriptedModel(script), run=recorded, passes=1)
    assert first.receipts.totals.calls == 2
    (segment,) = (recorded / "journal").iterdir()
    lines = segment.read_bytes().splitlines(keepends=True)
    last = [n for n, line in enumerate(lines) if line[2:3] == b"a"][-1]
    segment.write_bytes(b"".join(lines[:last] + lines[last + 1 :]))
    with pytest.raises(ReplayMiss):
        await count("fire?", CORPUS[:8], model=model(), replay=recorded, passes=1)


async def test_a_replay_that_goes_on_is_a_replay_still(tmp_path: Path) -> None:
    recorded, run = tmp_path / "recorded", tmp_path / "run"
    await count("fire?", CORPUS, model=model(), run=recorded)
    await count("fire?", CORPUS, model=model(), replay=recorded, run=run)
    asked = model()
    again = await resume(run, model=asked, votes="all")
    assert asked.calls == 0
    assert load_result(again.receipts.directory).count == 15


async def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    await count("fire?", CORPUS, model=model(), run=recorded)
    with pytest.raises(ValidationError, match="where nothing is written"):
        await count("fire?", CORPUS, model=model(), run=recorded, replay=recorded)
    with pytest.raises(ValidationError, match="has no effect"):
        await count("fire?", CORPUS, terms=("fire",), replay=recorded)
    with pytest.raises(ValidationError, match="has no effect"):
        await count("fire?", CORPUS, replay=recorded)
    with pytest.raises(RunDirError, match="cannot be replayed"):
        await count("fire?", CORPUS, model=model(), replay=tmp_path / "none")
    assert not data_home().exists() or list(data_home().iterdir()) == []


def test_a_miss_on_the_command_line_is_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2: nothing was spent, and another try ends the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    Path("t.csv").write_text("id,text\n1,a fire\n2,calm\n", encoding="utf-8")
    with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        assert main(["count", "t.csv", "fire?", "--model", spec, "--run", "recorded"]) == 0
    again = ["count", "t.csv", "fire?", "--model", spec, "--replay", "recorded"]
    assert main(again) == 0
    assert "2 answered from the journal" in capsys.readouterr().out
    assert main([*again, "--passes", "3"]) == 2
    assert "no answer is recorded for call" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["halted", "killed"])
async def test_a_miss_names_a_recorded_run_that_had_stopped_early(how: str, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    await count("fire?", CORPUS, model=model(), run=recorded, caps=Caps(calls=9))
    if how == "killed":
        manifest = Manifest.load(recorded)
        manifest.with_last(ended=None, blocker=None).save(recorded)
    with pytest.raises(ReplayMiss, match=rf"this run stopped early itself \({how}\)") as caught:
        await count("fire?", CORPUS, model=model(), replay=recorded)
    assert f"finish it first: rlm resume {recorded}" in str(caught.value)
    await resume(recorded, model=model(), caps=Caps(calls=99))
    with pytest.raises(ReplayMiss) as caught:
        await count("fire?", CORPUS, model=model(), replay=recorded, passes=3)
    assert "stopped early" not in str(caught.value)


def test_a_dry_run_of_a_replay_names_no_option_that_nobody_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    Path("t.csv").write_text("id,text\n1,a fire\n2,calm\n", encoding="utf-8")
    with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        asked = ["count", "t.csv", "fire?", "--model", spec]
        assert main([*asked, "--run", "recorded"]) == 0
        assert main([*asked, "--replay", "recorded", "--run", "again"]) == 0
    assert main(["resume", "again", "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert "asks no server and costs nothing" in said
    assert "leave --dry-run out" in said
