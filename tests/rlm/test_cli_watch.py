"""What is told while a run goes on, folded from its events."""

import io
from dataclasses import replace
from decimal import Decimal

import anyio
import pytest
from inline_snapshot import snapshot

from corpus.events import ScanStarted, SourceRead, WindowFinished
from executors.clock import VirtualClock
from executors.events import CallFailed, CallFinished, Event, Retried, Warned
from executors.gate.allowance import Caps
from executors.ids import NodeId
from executors.usage import Usage
from rlm.cli.watch import Watch, bounds_of
from rlm.events import NodeFinished, NodeStarted, RunStarted

CLOCK = VirtualClock()
AT = CLOCK.now()
ROOT, READ, JUDGE = NodeId("root"), NodeId("root.0"), NodeId("root.2")


def failed(message: str) -> CallFailed:
    return CallFailed(
        node=JUDGE, at=AT, key="k", role="judge", model="m", error="connect", message=message,
        attempts=5, seconds=1.0, possibly_paid=False,
    )  # fmt: skip


def answered(cost: Decimal | None) -> CallFinished:
    return CallFinished(
        node=JUDGE, at=AT, key="k", role="judge", model="m", stop="end", usage=Usage(),
        cost=cost, attempts=1, seconds=1.0, source="paid",
    )  # fmt: skip


def replayed() -> CallFinished:
    return replace(answered(Decimal(0)), source="journal")


def windows(*counts: tuple[int, int]) -> list[Event]:
    return [
        WindowFinished(
            node=JUDGE, at=AT, window=n, pass_index=0, items=items, unresolved=unresolved
        )
        for n, (items, unresolved) in enumerate(counts)
    ]


def told(*events: Event | float, caps: Caps | None = None) -> str:
    """Return what is written; a number lets so many seconds pass."""
    stream, clock = io.StringIO(), VirtualClock()
    with Watch(caps or Caps(), stream=stream, clock=clock) as watch:
        for event in events:
            if isinstance(event, Event):
                watch(event)
            else:
                clock.advance(event)
    return stream.getvalue()


def test_a_run_is_told_from_reading_to_the_last_window() -> None:
    said = told(
        RunStarted(node=ROOT, at=AT, run="r", task="spam?", options={}, version="0"),
        NodeStarted(node=ROOT, at=AT, name="count"),
        NodeStarted(node=READ, at=AT, name="read t.csv"),
        SourceRead(
            node=READ, at=AT, source="t\u202e.csv", records=20, empty=1, identical=2,
            said=("id column 'id' (named so)",),
        ),
        Warned(node=READ, at=AT, code="c", message="3 torn last line(s)", count=3),
        Warned(node=READ, at=AT, code="c", message="odd [red]\x1b[2J", count=2),
        NodeFinished(node=READ, at=AT),
        NodeStarted(node=JUDGE, at=AT, name="judge by chat m"),
        ScanStarted(node=JUDGE, at=AT, judge="chat m", items=16, passes=1, window=8, cap=4),
        Retried(node=JUDGE, at=AT, key="k", attempt=1, error="rate-limited", wait=7.0, possibly_paid=False),
        6.0,
        answered(Decimal("0.25")),
        *windows((8, 1)),
        6.0,
        failed("cannot connect\x07"),
        *windows((8, 8)),
        NodeFinished(node=JUDGE, at=AT),
        NodeFinished(node=ROOT, at=AT),
    )  # fmt: skip
    assert said == snapshot("""\
t\\u202e.csv: 20 records, 1 without text, 2 with the text of an earlier one
  id column 'id' (named so)
warning: 3 torn last line(s)
warning: odd [red]\\x1b[2J (2 times)
read t.csv, 0.0 s
chat m: 16 distinct texts in 1 pass, 8 a window, 4 in flight
bounds: 100,000 calls, 200,000,000 tokens, 10 USD, 24 h
run: r; should it be cut off: rlm resume r
judge by chat m 0 of 16 records (0 %), 0 unresolved, 1 call, 0.2500 USD
call failed: cannot connect\\x07
judge by chat m 8 of 16 records (50 %), 0.7/s, 12 s left, 1 unresolved, 1 call, 0.2500 USD, 1 failed
judge by chat m 16 of 16 records (100 %), 1.3/s, 12 s, 9 unresolved, 1 call, 0.2500 USD, 1 failed
""")


def test_each_reason_of_failing_calls_is_said_once_and_few_of_them() -> None:
    said = told(*(failed(f"reason {n % 9}") for n in range(100)))
    assert said.count("call failed: ") == 5


@pytest.mark.parametrize(
    ("events", "cost"),
    [
        ([answered(None), answered(None)], "2 calls, price unknown"),
        ([answered(None), answered(Decimal(1))], "2 calls, 1.0000 USD"),
        ([failed("x")], "1 failed"),
        ([replayed(), failed("x")], "1 failed"),
        ([replayed(), answered(None)], "1 call, price unknown"),
    ],
)
def test_a_cost_is_unknown_only_where_no_answer_has_a_price(events: list[Event], cost: str) -> None:
    scan = ScanStarted(node=JUDGE, at=AT, judge="chat", items=9, passes=1, window=8, cap=4)
    said = told(NodeStarted(node=JUDGE, at=AT, name="judge"), scan, *events)
    assert said.rstrip().endswith(f"0 unresolved, {cost}")


def test_progress_is_measured_against_what_is_left() -> None:
    """A session that goes on ends at 100 %, like the first one."""
    scan = ScanStarted(
        node=JUDGE, at=AT, judge="chat", items=9, passes=2, window=8, cap=4, restored=10
    )
    said = told(NodeStarted(node=JUDGE, at=AT, name="judge"), scan, *windows((8, 0)))
    assert "10 verdicts stand in the run already\n" in said
    assert "judge 8 of 8 readings (100 %)" in said


def test_a_run_with_a_directory_of_its_own_is_named_by_it() -> None:
    stream = io.StringIO()
    with Watch(Caps(), stream=stream, directory="my runs/one") as watch:
        watch(RunStarted(node=ROOT, at=AT, run="r", task="spam?", options={}, version="0"))
        watch(ScanStarted(node=JUDGE, at=AT, judge="chat", items=9, passes=1, window=8, cap=4))
    assert "should it be cut off: rlm resume 'my runs/one'\n" in stream.getvalue()


@pytest.mark.anyio
@pytest.mark.case("K13-4")
async def test_time_shows_while_nothing_happens() -> None:
    stream, clock = io.StringIO(), VirtualClock()
    with Watch(Caps(), stream=stream, clock=clock) as watch:
        watch(NodeStarted(node=READ, at=AT, name="read"))
        async with anyio.create_task_group() as group:
            group.start_soon(watch.ticking)
            await clock.sleep(11)
            group.cancel_scope.cancel()
    assert stream.getvalue().startswith("read, 5.0 s\nread, 10 s\n")


def test_bounds_are_said_in_full() -> None:
    assert bounds_of(Caps()) == "100,000 calls, 200,000,000 tokens, 10 USD, 24 h"
    assert bounds_of(Caps(), priced=False) == (
        "100,000 calls, 200,000,000 tokens, 10 USD (binds nothing: no price is known), 24 h"
    )
    small = Caps(calls=1, tokens=10, usd=Decimal("0.05"), seconds=90)
    assert bounds_of(small) == "1 call, 10 tokens, 0.05 USD, 1 min 30 s"
