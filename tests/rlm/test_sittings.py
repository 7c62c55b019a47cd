"""The receipt says what each session of a run paid, judged and took over."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corpus.events import ScanStarted, WindowFinished
from executors.events import CallFailed, CallFinished, Event
from executors.ids import NodeId
from executors.usage import Usage
from rlm import count, resume
from rlm.events import RunFinished, RunStarted
from rlm.receipts.receipts import ReceiptFold, Receipts
from rlm.receipts.sittings import SessionReceipt
from rlm.render.lines import as_text
from rlm.render.text import result_block
from rlm.testing import ScriptedModel, judge_script

NODE = NodeId("root")
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def began(session: int, seconds: int = 0) -> RunStarted:
    return RunStarted(
        node=NODE,
        at=at(seconds),
        run="r",
        task="?",
        options={},
        version=f"0.{session}",
        session=session,
    )


def scanning(restored: int = 0) -> ScanStarted:
    return ScanStarted(
        node=NODE, at=START, judge="j", items=9, passes=1, window=3, cap=1, restored=restored
    )


def window(items: int, unresolved: int = 0, known: int = 0) -> WindowFinished:
    return WindowFinished(
        node=NODE,
        at=START,
        window=0,
        pass_index=0,
        items=items,
        unresolved=unresolved,
        known=known,
    )


def call(source: str = "paid") -> CallFinished:
    return CallFinished(
        node=NODE,
        at=START,
        key="k",
        role="judge",
        model="m",
        stop="end",
        usage=Usage(),
        cost=None,
        attempts=1,
        seconds=0.1,
        source="journal" if source == "journal" else "paid",
    )


def lost() -> CallFailed:
    return CallFailed(
        node=NODE,
        at=START,
        key="k",
        role="judge",
        model="m",
        error="lost",
        message="",
        attempts=1,
        seconds=0.0,
        possibly_paid=True,
    )


def ended(blocker: str | None, seconds: int) -> RunFinished:
    return RunFinished(node=NODE, at=at(seconds), blocker=blocker)


def receipts_of(events: Sequence[Event]) -> Receipts:
    fold = ReceiptFold()
    for event in events:
        fold(event)
    return fold.receipts(Path("run"), {})


HALTED = [began(1), scanning(), call(), window(3), window(3, unresolved=2), ended("halted", 5)]
RESUMED = [began(2, 10), scanning(4), call("journal"), call(), window(5, known=2), ended(None, 12)]


@pytest.mark.case("S11")
def test_each_session_says_what_it_paid_judged_and_took_over() -> None:
    first = SessionReceipt(
        number=1, version="0.1", started=at(0), ended=at(5), blocker="halted", calls=1, verdicts=4
    )
    second = SessionReceipt(
        number=2, version="0.2", started=at(10), ended=at(12), calls=1, verdicts=3, taken_over=4
    )
    assert receipts_of([*HALTED, *RESUMED]).sessions == (first, second)


def test_what_a_killed_session_could_not_tell_is_told_of_it_by_the_next() -> None:
    killed = [began(1), scanning(), call(), window(3)]
    told = [began(2, 10), call(), lost(), scanning(3), call(), ended(None, 12)]
    one, other = receipts_of([*killed, *told]).sessions
    assert (one.ended, one.calls, one.lost, one.seconds) == (None, 2, 1, None)
    assert (other.calls, other.lost, other.seconds) == (1, 0, 2)


def test_a_session_that_was_refused_before_it_spent_is_none() -> None:
    refused = [began(2, 8), ended("failed", 9)]
    assert [s.blocker for s in receipts_of([*HALTED, *refused, *RESUMED]).sessions] == [
        "halted",
        None,
    ]


def test_sessions_are_shown_where_there_are_several() -> None:
    shown = as_text(result_block(receipts_of([*HALTED, *RESUMED]))).splitlines()
    assert "  sessions: 2; cost and calls are of all" in shown
    assert "    1  2026-01-01 00:00:00 UTC, 5.0 s  halted: 1 call, 4 verdicts made" in shown
    assert (
        "    2  2026-01-01 00:00:10 UTC, 2.0 s  completed: 1 call, 3 verdicts made, 4 taken over"
        in shown
    )
    assert "session" not in as_text(result_block(receipts_of(HALTED)))


@pytest.mark.anyio
async def test_verdicts_that_were_made_and_taken_over_add_up(tmp_path: Path) -> None:
    """Of a window that is asked again for one item, only that item's verdict is new."""
    records = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(16)]
    script = judge_script(lambda text: "fire" in text, lambda n: "leave-out" if n < 3 else None)
    run = tmp_path / "run"
    await count("fire?", records, model=ScriptedModel(script), run=run, passes=1, concurrency=1)
    good = ScriptedModel(judge_script(lambda text: "fire" in text))
    outcome = await resume(run, model=good)
    made = [(s.verdicts, s.taken_over) for s in outcome.receipts.sessions]
    assert made == [(15, 0), (1, 15)]
