"""What the tree says of a node is true over all sessions of the run."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from corpus.events import ScanStarted, WindowFinished
from executors.events import Event
from executors.ids import NodeId
from rlm import Incomplete, count, resume
from rlm.cli.app import main
from rlm.events import NodeFinished, NodeStarted, RunFinished, RunStarted
from rlm.receipts.receipts import NodeReceipt, ReceiptFold, Receipts
from rlm.render.lines import as_text
from rlm.render.text import result_block, spend_of, tree
from rlm.testing import FakeServer, ScriptedModel, judge_script
from tests.support.killing import Asked, counting, kill_group, resuming, wait_for, write_corpus

START = datetime(2026, 1, 1, tzinfo=UTC)
ROOT, JUDGE, PASS = NodeId("root"), NodeId("root.2"), NodeId("root.2.0")


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def began(session: int, seconds: int) -> list[Event]:
    run = RunStarted(
        node=ROOT, at=at(seconds), run="r", task="?", options={}, version="1", session=session
    )
    return [run, NodeStarted(node=ROOT, at=at(seconds), name="count")]


def judging(
    seconds: int, name: str = "judge by m", restored: tuple[int, ...] = (), passes: bool = True
) -> list[Event]:
    scan = ScanStarted(
        node=JUDGE, at=at(seconds), judge="m", items=24, passes=1, window=8, cap=1,
        restored_in=restored,
    )  # fmt: skip
    first = NodeStarted(node=PASS, at=at(seconds), name="pass 1 of 1")
    begun = NodeStarted(node=JUDGE, at=at(seconds), name=name)
    return [begun, scan, first] if passes else [begun, scan]


def window(seconds: int, items: int = 8, unresolved: int = 0, known: int = 0) -> Event:
    return WindowFinished(
        node=PASS, at=at(seconds), window=0, pass_index=0, items=items, unresolved=unresolved,
        known=known,
    )  # fmt: skip


def ended(seconds: int, error: str | None = None, *, passes: bool = True) -> list[Event]:
    nodes = (PASS, JUDGE, ROOT)[not passes :]
    over: list[Event] = [NodeFinished(node=node, at=at(seconds), error=error) for node in nodes]
    return [*over, RunFinished(node=ROOT, at=at(seconds), blocker=error)]


def folded(*events: Event | Sequence[Event]) -> Receipts:
    fold = ReceiptFold()
    for some in events:
        for event in [some] if isinstance(some, Event) else some:
            fold(event)
    return fold.receipts(Path("run"), {})


def of(receipts: Receipts, id_: str) -> NodeReceipt:
    (found,) = [node for node in receipts.nodes if node.id == id_]
    return found


def shape(node: NodeReceipt) -> tuple[int, int, int]:
    return node.windows, node.items, node.unresolved


# ---------------------------------------------------------------- time


def test_the_time_of_a_node_is_that_of_its_sessions_and_not_of_the_night_between_them() -> None:
    receipts = folded(
        began(1, 0), judging(1), window(4), ended(5, "halted"),
        began(2, 9_000), judging(9_001), window(9_002), ended(9_003),
    )  # fmt: skip
    assert [of(receipts, id_).seconds for id_ in (ROOT, JUDGE, PASS)] == [8, 6, 6]
    assert (of(receipts, PASS).started, of(receipts, PASS).finished) == (at(1), at(9_003))


def test_a_session_that_was_killed_has_worked_until_it_was_last_heard_of() -> None:
    killed = (began(1, 0), judging(1), window(4))
    receipts = folded(*killed, began(2, 9_000), judging(9_001), window(9_002), ended(9_003))
    assert [of(receipts, id_).seconds for id_ in (ROOT, JUDGE, PASS)] == [7, 5, 5]


def test_a_node_that_no_later_session_came_to_has_the_time_until_the_kill() -> None:
    receipts = folded(began(1, 0), judging(1), window(4), began(2, 9_000))
    assert of(receipts, PASS).seconds == 3
    assert of(receipts, ROOT).seconds is None  # open


# ---------------------------------------------------------------- items


def test_what_is_judged_later_is_not_unresolved_and_no_item_counts_twice() -> None:
    first = (began(1, 0), judging(1), window(2), window(2, unresolved=8), window(2, unresolved=1))
    assert shape(of(folded(*first, ended(3)), PASS)) == (3, 24, 9)
    again = (window(11), window(11, known=7))
    receipts = folded(
        *first, ended(3), began(2, 10), judging(10, restored=(15,)), *again, ended(12)
    )
    assert shape(of(receipts, PASS)) == (3, 24, 0)


def test_what_a_session_did_not_come_to_again_is_unresolved_still() -> None:
    first = (began(1, 0), judging(1), window(2, unresolved=8), window(2, unresolved=8), ended(3))
    receipts = folded(*first, began(2, 10), judging(10), window(11), ended(12, "halted"))
    assert shape(of(receipts, PASS)) == (2, 16, 8)


def test_what_is_gone_when_a_pass_is_whole_is_not_unresolved_any_more() -> None:
    first = (began(1, 0), judging(1), window(2, unresolved=8), window(2), ended(3))
    receipts = folded(*first, began(2, 10), judging(10), ended(12))
    assert shape(of(receipts, PASS)) == (1, 8, 0)


def test_verdicts_that_a_killed_session_could_not_tell_are_counted_by_the_next() -> None:
    killed = (began(1, 0), judging(1), window(2))
    receipts = folded(
        *killed, began(2, 10), judging(11, restored=(16,)), window(12), ended(13),
        began(3, 20), judging(21, restored=(24,)), ended(22),
    )  # fmt: skip
    assert shape(of(receipts, PASS)) == (3, 24, 0)
    made = [(session.verdicts, session.taken_over) for session in receipts.sessions]
    assert [verdicts for verdicts, _ in made] == [16, 8, 0]


@pytest.mark.anyio
async def test_a_resumed_count_has_each_item_of_each_pass_once(tmp_path: Path) -> None:
    records = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(40)]
    script = judge_script(lambda text: "fire" in text, lambda n: "leave-out" if n < 9 else None)
    run = tmp_path / "run"
    first = await count("fire?", records, model=ScriptedModel(script), run=run, concurrency=1)
    assert isinstance(first, Incomplete)
    assert sum(node.unresolved for node in first.receipts.nodes) > 0
    good = ScriptedModel(judge_script(lambda text: "fire" in text))
    again = await resume(run, model=good)
    passes = [node for node in again.receipts.nodes if node.windows]
    assert [shape(node) for node in passes] == [(5, 40, 0)] * 2
    assert [node.sessions for node in passes] == [(1, 2)] * 2
    assert Receipts.load(run).nodes == again.receipts.nodes


# ---------------------------------------------------------------- another judge


def test_where_the_judge_changed_the_work_of_each_stands_apart_with_its_sessions() -> None:
    receipts = folded(
        began(1, 0), judging(1, "judge by m"), window(2), ended(3),
        began(2, 10), judging(10, "rank by e", passes=False), ended(12, passes=False),
        began(3, 20), judging(20, "judge by m"), window(21), ended(22),
    )  # fmt: skip
    assert (
        as_text(tree(receipts))
        == """\
count  7.0 s
├─ judge by m  4.0 s
│  │  in sessions 1, 3
│  └─ pass 1 of 1  4.0 s, 2 windows, 16 items
└─ rank by e  2.0 s
      in session 2
"""
    )


@pytest.mark.anyio
async def test_calls_of_a_chat_judge_are_not_shown_under_an_encoder(tmp_path: Path) -> None:
    records = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(16)]
    chat = ScriptedModel(judge_script(lambda text: "fire" in text))
    run = tmp_path / "run"
    await count("fire?", records, model=chat, run=run)
    ruled = await count("fire?", records, terms=("fire",), run=run)
    calls = {node.name: node.totals.calls for node in ruled.receipts.nodes if node.totals.calls}
    assert calls == {"judge by chat scripted:scripted": 4}


# ---------------------------------------------------------------- killed in the middle


def test_a_count_that_was_killed_and_resumed_tells_all_windows_and_what_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    corpus, run = tmp_path / "reports.jsonl", tmp_path / "data" / "rlm" / "runs" / "run"
    run.parent.mkdir(parents=True)
    write_corpus(corpus, 240)
    asked = Asked(after=0.05)
    with FakeServer(asked) as server:
        process = counting(corpus, run, server.base_url, "--price", "1,1")
        wait_for(lambda: server.requests > 30, process)
        kill_group(process)
        assert main(["runs", "list", "--json"]) == 0
        (entry,) = json.loads(capsys.readouterr().out)["runs"]
        assert entry["state"] == "killed"
        assert entry["calls"] is not None
        out, _ = resuming(run).communicate()
    spend = json.loads(out)["spend"]
    receipts = Receipts.load(run)
    passes = [node for node in receipts.nodes if node.windows]
    assert [shape(node) for node in passes] == [(30, 240, 0)] * 2
    totals = receipts.totals
    assert spend["lost"] == totals.lost == receipts.sessions[0].lost > 0
    assert totals.lost_tokens > 0
    assert Decimal(spend["lost_usd"]) == totals.lost_usd == Decimal(totals.lost_tokens) / 1_000_000
    said = f"more for {totals.lost} call{'s' if totals.lost > 1 else ''} that w"
    assert said in spend_of(totals)
    shown = as_text(result_block(receipts))
    assert f"at {server.base_url.removesuffix('/v1')}, 2 passes" in shown
