"""A task tree as people see it: folded from events, and never taller than it may be."""

import io
import os
import pty
import threading
import time
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from inline_snapshot import snapshot

from corpus.events import ScanStarted, WindowFinished
from executors.clock import VirtualClock
from executors.events import CallFinished, Event, ToolFinished, ToolStarted, Warned
from executors.gate.allowance import Caps
from executors.ids import NodeId
from executors.usage import Usage
from rlm.cli.watch_tree import TreeWatch
from rlm.events import NodeFinished, NodeStarted, RunStarted, TaskEnded
from rlm.render.lines import as_text
from rlm.render.tree_lines import tree_lines
from rlm.render.tree_state import TreeState

AT = VirtualClock().now()


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def began(node: str, name: str, at: float = 0) -> NodeStarted:
    return NodeStarted(node=NodeId(node), at=later(at), name=name)


def ended(
    node: str, at: float, *, verdict: str | None = None, blocker: str | None = None, by: str = ""
) -> list[Event]:
    broke = None if blocker is None else NodeId(by or node)
    task = TaskEnded(
        node=NodeId(node),
        at=later(at),
        verdict=verdict,
        blocker=blocker,
        blocked_at=broke,
        detail="why it broke" if blocker else "",
    )
    return [task, NodeFinished(node=NodeId(node), at=later(at))]


def called(node: str, tokens: int = 10, cost: str | None = "0.5") -> CallFinished:
    return CallFinished(
        node=NodeId(node), at=AT, key="k", role="worker", model="m", stop="end",
        usage=Usage(input=tokens, output=tokens), cost=None if cost is None else Decimal(cost),
        attempts=1, seconds=1.0, source="paid",
    )  # fmt: skip


def folded(*events: Event) -> TreeState:
    state = TreeState()
    for event in events:
        state(event)
    return state


def drawn(state: TreeState, height: int = 40, *, details: bool = False) -> str:
    return as_text(tree_lines(state, height=height, now=later(9), details=details))


def test_each_node_is_shown_with_its_state_its_spend_and_its_time() -> None:
    state = folded(
        began("root", "the whole"),
        began("root.0", "one"),
        began("root.1", "two", 1),
        began("root.1.0", "three", 2),
        called("root.0"),
        called("root.1.0", cost=None),
        ToolStarted(node=NodeId("root.1"), at=AT, tool="grep", round=0, index=0, arguments="{}"),
        *ended("root.0", 3, verdict="satisfied"),
        *ended("root.1.0", 4, blocker="truncated"),
    )
    assert drawn(state, details=True) == snapshot("""\
the whole  working  9.0 s
├─ one  done, satisfied  1 call, 20 tokens, 0.5000 USD, 3.0 s
└─ two  working  grep, 8.0 s
   └─ three  incomplete: truncated  1 call, 20 tokens, price unknown, 2.0 s
         why it broke
""")


def test_a_scan_inside_a_node_counts_for_the_node() -> None:
    passes = NodeId("root.0.1")
    state = folded(
        began("root", "the whole"),
        began("root.0", "part"),
        ScanStarted(
            node=NodeId("root.0"), at=AT, judge="chat", items=10, passes=2, window=5, cap=1
        ),
        began("root.0.1", "pass 2 of 2"),
        WindowFinished(node=passes, at=AT, window=0, pass_index=1, items=5, unresolved=1),
        called("root.0.1"),
    )
    assert "part  working  1 call, 20 tokens, 0.5000 USD, 5 of 20 read, 1 unresolved, 9.0 s" in (
        drawn(state)
    )
    assert "pass 2" not in drawn(state)


def wide(children: int, *, broken: int, working: int) -> TreeState:
    events: list[Event] = [began("root", "the whole")]
    for n in range(children):
        events.append(began(f"root.{n}", f"part {n}"))
        if n == broken:
            events += ended(f"root.{n}", 1, blocker="refused")
        elif n < working:
            events += ended(f"root.{n}", 1)
    return folded(*events)


def test_of_many_children_those_are_shown_that_broke_or_work_and_the_rest_is_counted() -> None:
    state = wide(1_000, broken=7, working=990)
    text = drawn(state, 12)
    assert text.count("\n") <= 12
    assert "part 7  incomplete: refused" in text
    assert "part 990  working" in text
    assert "… 992 more: " in text
    assert "989 done" in text


def test_of_a_node_that_has_ended_the_first_children_are_shown() -> None:
    events: list[Event] = [began("root", "the whole")]
    for n in range(30):
        events += [began(f"root.{n}", f"part {n}"), *ended(f"root.{n}", 1)]
    text = drawn(folded(*events, *ended("root", 2)), 8)
    assert [line[:9] for line in text.splitlines()] == [
        "the whole", *[f"├─ part {n}" for n in range(5)], "└─ … 25 m",
    ]  # fmt: skip


@pytest.mark.parametrize("height", [1, 2, 5, 24, 200])
def test_a_tree_is_never_taller_than_it_may_be(height: int) -> None:
    events: list[Event] = [began("root", "r")]
    for a in range(12):
        for b in range(12):
            events += [
                began(f"root.{a}", f"{a}"),
                began(f"root.{a}.{b}", f"{a}.{b}"),
                began(f"root.{a}.{b}.0", "leaf"),
            ]
    text = drawn(folded(*events), height, details=True)
    assert text.count("\n") <= height


def test_names_give_way_to_figures_where_a_line_is_short() -> None:
    state = folded(
        began("root", "a task of many words that says what is to be done"), called("root")
    )
    (text,) = as_text(tree_lines(state, height=5, width=70, now=later(9))).splitlines()
    assert len(text) <= 70
    assert text.endswith("…  working  1 call, 20 tokens, 0.5000 USD, 9.0 s")


def test_to_draw_ten_thousand_children_takes_no_time_to_speak_of() -> None:
    state = wide(10_000, broken=7, working=9_000)
    begun = time.perf_counter()
    drawn(state, 24)
    assert time.perf_counter() - begun < 0.5


def test_text_from_outside_steers_nothing() -> None:
    state = folded(
        began("root", "one \x1b[2J two\u202e"),
        Warned(node=NodeId("root"), at=AT, code="x", message="w \x1b[31m"),
        ToolStarted(node=NodeId("root"), at=AT, tool="\x1b[5m", round=0, index=0, arguments="{}"),
    )
    text = drawn(state, details=True)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_node_that_is_worked_at_once_more_is_open_again() -> None:
    state = folded(
        began("root", "r"),
        began("root.0", "one"),
        *ended("root.0", 1, blocker="halted"),
        began("root.0", "one", 2),
        ToolFinished(
            node=NodeId("root.0"), at=AT, tool="t", round=0, index=0, end="done", seconds=0,
            source="run", characters=1,
        ),
        *ended("root.0", 3),
        *ended("root", 4),
    )  # fmt: skip
    assert (state.ended, (len(state.branches) - state.ended)) == (2, 0)
    assert "one  done" in drawn(state)


# ---------------------------------------------------------------- while it grows


def told(*events: Event | float) -> str:
    """Return what is written where there is no terminal; a number lets so many seconds pass."""
    stream, clock = io.StringIO(), VirtualClock()
    with TreeWatch(Caps(), stream=stream, clock=clock) as watch:
        for event in events:
            if isinstance(event, Event):
                watch(event)
            else:
                clock.advance(event)
    return stream.getvalue()


def started() -> RunStarted:
    return RunStarted(
        node=NodeId("root"), at=AT, run="r", task="t", options={}, version="0", session=1
    )


def test_without_a_terminal_starts_and_ends_near_the_root_are_lines() -> None:
    events: list[Event | float] = [started(), began("root", "recurse"), began("root", "whole")]
    events += [began("root.0", "one"), began("root.0.0", "deep"), called("root.0.0"), 1.5]
    events += [*ended("root.0.0", 1), *ended("root.0", 2, blocker="refused", by="root.0.0")]
    events += [*ended("root", 3, verdict="failed")]
    assert told(*events) == snapshot("""\
bounds: 100,000 calls, 200,000,000 tokens, 10 USD, 24 h
run: r; should it be cut off: rlm resume r
began: one
0 of 3 nodes ended, 1 call, 20 tokens, 0.5000 USD, 1.5 s
ended: one: incomplete: refused at root.0.0, 2.0 s
ended: whole: done, not satisfied (failed), 3.0 s
3 of 3 nodes ended, 1 call, 20 tokens, 0.5000 USD, 1.5 s
""")


@pytest.mark.case("K13-4")
def test_plain_lines_are_bounded_however_wide_and_long_the_tree() -> None:
    events: list[Event | float] = [started(), began("root", "whole")]
    for n in range(2_000):
        events += [
            began(f"root.{n}", f"part {n}"),
            0.1,
            *ended(f"root.{n}", 1),
            called(f"root.{n}"),
        ]
    events += [began("root.2000", "bad"), *ended("root.2000", 1, blocker="refused")]
    text = told(*events)
    summaries = [line for line in text.splitlines() if " ended, " in line]
    assert len(summaries) <= 200
    assert len(text.splitlines()) <= 300
    assert "ended: bad: incomplete: refused" in text


def on_a_terminal(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a watch writes to a terminal."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    far, near = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        try:
            while some := os.read(far, 65_536):
                seen.append(some)
        except OSError:  # the near end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    clock = VirtualClock()
    with (
        os.fdopen(near, "w", encoding="utf-8") as stream,
        TreeWatch(Caps(), stream=stream, clock=clock) as watch,
    ):
        for event in (started(), began("root", "whole \x1b[2J [red]x[/INST]")):
            watch(event)
        clock.advance(1)
        watch(began("root.0", "one"))
        watch.say("something odd")
        clock.advance(1)
        watch(called("root.0"))
    reader.join(5)
    os.close(far)
    return b"".join(seen).decode()


@pytest.mark.case("K13-7", "K13-8", "K13-10")
def test_on_a_terminal_the_tree_is_painted_and_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = on_a_terminal({"TERM": "xterm-256color"}, monkeypatch)
    assert "└─ " in text
    assert "whole \\x1b[2J [red]x[/INST]" in text
    assert "something odd" in text
    assert "\x1b[2K" in text
    assert "\x1b[?25l" not in text  # the cursor is never hidden: a process may be ended at once
    assert "began: one" not in text


@pytest.mark.case("K13-5")
@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}])
def test_where_colour_is_not_welcome_a_terminal_gets_plain_lines(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = on_a_terminal(env, monkeypatch)
    assert "\x1b" not in text
    assert "began: one" in text
