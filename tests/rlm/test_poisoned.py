"""One record that no model can judge costs its own verdict, and nobody else's."""

import sys
from pathlib import Path

import pytest

from executors.models.fakes.acts import Act, Completion, Received, Reply
from rlm import Completed, Incomplete, Tally, count, resume
from rlm.cli import main
from rlm.testing import FakeServer, judge_server

pytestmark = pytest.mark.anyio

POISON = "r1234"
ACTS: dict[str, Act] = {
    "a 400": Reply(status=400, body=b'{"error":{"message":"your input was flagged"}}'),
    "a 413": Reply(status=413, body=b"too large"),
    "too long": Reply(
        status=400,
        body=b'{"error":{"code":"context_length_exceeded","message":"maximum context length"}}',
    ),
    "a refusal": Completion(text=None, refusal="I cannot help with that."),
    "garbage": Completion(text="\x00 lorem ipsum ]]"),
    "cut": Completion(text='{"1":', finish="length"),
}


def fire(text: str) -> bool:
    return "fire" in text


def corpus(size: int, poison: str) -> list[tuple[str, str]]:
    pairs = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(size)]
    return [(id_, f"{text} POISON" if id_ == poison else text) for id_, text in pairs]


class Server:
    """Judges by a rule, and does something else wherever the poisoned text is shown."""

    def __init__(self, act: Act) -> None:
        self.act: Act | None = act
        self._good = judge_server(fire)

    def __call__(self, received: Received) -> Act:
        if self.act is not None and b"POISON" in received.body:
            return self.act
        return self._good(received)


@pytest.mark.parametrize("kind", ACTS)
async def test_one_poisoned_record_of_2_000_leaves_1_999_resolved(
    kind: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    async with FakeServer(Server(ACTS[kind])) as server:
        spec = f"openai+{server.base_url}:any"
        outcome = await count("fire?", corpus(2_000, POISON), model=spec, run=run)
        asked = server.requests
    assert isinstance(outcome, Incomplete)
    tally = outcome.best
    assert isinstance(tally, Tally)
    assert outcome.blocker == "unresolved-records"
    assert (tally.states["unresolved"], tally.count) == (1, 286)
    (row,) = [row for row in tally.rows() if row.state == "unresolved"]
    assert row.id == POISON
    assert row.reason
    assert asked <= 500 + 2 * 7  # two passes, in each of them one window that is narrowed down


@pytest.mark.case("S02")
async def test_one_over_long_record_of_500_leaves_499_resolved(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with FakeServer(Server(ACTS["too long"])) as server:
        spec = f"openai+{server.base_url}:any"
        outcome = await count("fire?", corpus(500, "r77"), model=spec, run=run)
    assert isinstance(outcome, Incomplete)
    assert isinstance(outcome.best, Tally)
    assert outcome.best.states["unresolved"] == 1


async def test_only_what_failed_is_asked_again_by_the_next_session(tmp_path: Path) -> None:
    """Its neighbours' answers are found, as often as it is tried."""
    run = tmp_path / "run"
    script = Server(ACTS["a refusal"])
    async with FakeServer(script) as server:
        spec = f"openai+{server.base_url}:any"
        await count("fire?", corpus(200, "r50"), model=spec, run=run)
        first = server.requests
        again = await resume(run)
        assert isinstance(again, Incomplete)
        assert server.requests - first == 2 * 4  # in each pass 8, 4, 2 and 1 of them together
        script.act = None
        assert isinstance(await resume(run), Completed)
        assert server.requests - first == 2 * 4 + 2


def test_the_command_line_names_the_record_and_ends_with_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    rows = "".join(f"{id_},{text}\n" for id_, text in corpus(20, "r5"))
    Path("t.csv").write_text(f"id,text\n{rows}", encoding="utf-8")
    with FakeServer(Server(ACTS["a 400"])) as server:
        spec = f"openai+{server.base_url}:any"
        assert main(["count", "t.csv", "fire?", "--model", spec, "--run", "run"]) == 4
    out = capsys.readouterr().out
    assert "1 unresolved" in out
    assert "your input was flagged" in out
