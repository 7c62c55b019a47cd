"""Progress is heard in a pipe, repainted on a terminal, and always has a last word."""

import io
import threading
import time
from decimal import Decimal

import anyio
import pytest
from inline_snapshot import snapshot

from executors.clock import VirtualClock
from rlm.render.progress import Progress, Standing, describe, duration, say


def pipe() -> tuple[io.StringIO, VirtualClock]:
    return io.StringIO(), VirtualClock()


@pytest.mark.case("K13-4")
def test_a_pipe_gets_a_plain_line_every_few_seconds_and_a_last_one() -> None:
    stream, clock = pipe()
    with Progress("judging", stream=stream, clock=clock, live=False) as progress:
        for done in range(1, 13):
            clock.advance(1.0)
            progress.update(
                Standing(
                    done=done * 10,
                    total=120,
                    unresolved=done // 4,
                    calls=done,
                    cost=Decimal("0.001") * done,
                )
            )
    assert stream.getvalue() == snapshot("""\
judging 50 of 120 records (41 %), 10/s, 7.0 s left, 1 unresolved, 5 calls, 0.0050 USD
judging 100 of 120 records (83 %), 10/s, 2.0 s left, 2 unresolved, 10 calls, 0.0100 USD
judging 120 of 120 records (100 %), 10/s, 12 s, 3 unresolved, 12 calls, 0.0120 USD
""")


@pytest.mark.anyio
@pytest.mark.case("K13-4")
async def test_slow_calls_are_no_reason_for_silence() -> None:
    stream, clock = pipe()
    with Progress("judging", stream=stream, clock=clock, live=False) as progress:
        async with anyio.create_task_group() as group:
            group.start_soon(progress.ticking)
            await clock.sleep(74)
            group.cancel_scope.cancel()
    # Every 5 seconds at first, then ever more rarely; the last line always.
    assert stream.getvalue().count("judging, ") == 9


def test_a_last_line_comes_however_the_work_ended() -> None:
    stream, clock = pipe()
    with (
        pytest.raises(KeyboardInterrupt),
        Progress("reading", stream=stream, clock=clock, live=False),
    ):
        raise KeyboardInterrupt
    assert stream.getvalue() == "reading, 0.0 s, stopped\n"


def test_a_terminal_has_one_line_that_is_repainted() -> None:
    stream, clock = pipe()
    with Progress("judging", stream=stream, clock=clock, live=True) as progress:
        clock.advance(1.0)
        progress.add(5, unresolved=1)
        progress.say("a server asked to wait\x1b[2J")
        clock.advance(0.01)
        progress.add(1)
    assert stream.getvalue() == snapshot("""\
\r\x1b[2Kjudging 5 records, 5.0/s, 1 unresolved\r\x1b[2Ka server asked to wait\\x1b[2J
judging 5 records, 5.0/s, 1 unresolved\r\x1b[2Kjudging 6 records, 5.9/s, 1.0 s, 1 unresolved
""")


def test_a_long_name_leaves_room_for_the_figures() -> None:
    stream, clock = pipe()
    name = "judge by encoder minilm-int8, head taught by 80 labels"
    with Progress(name, stream=stream, clock=clock, live=True) as progress:
        clock.advance(2.0)
        progress.update(Standing(done=60_000, total=100_000, unresolved=7))
    live, last = stream.getvalue().split("\r\x1b[2K")[1:]
    assert live.startswith("judge 60,000 of 100,000 records")
    assert live.endswith("7 unresolved")
    assert last.startswith(name)


@pytest.mark.case("S54")
def test_a_second_live_display_writes_plain_lines() -> None:
    first, second = io.StringIO(), io.StringIO()
    clock = VirtualClock()
    with Progress("one", stream=first, clock=clock, live=True):
        with Progress("two", stream=second, clock=clock, live=True) as inner:
            clock.advance(10)
            inner.add(1)
        assert "\x1b" not in second.getvalue()
        assert second.getvalue().count("\n") == 2
    with Progress("three", stream=second, clock=clock, live=True):
        pass
    assert "\x1b" in second.getvalue()


@pytest.mark.case("S54")
def test_displays_side_by_side_have_one_live_line_and_plain_ones_above_it() -> None:
    stream, clock = pipe()
    with Progress("judge one", stream=stream, clock=clock, live=True) as first:
        clock.advance(1)
        first.add(1)
        with Progress("read two", stream=stream, clock=clock, live=True) as inner:
            inner.say("from inside")
        say("from a run without a display", stream)
        clock.advance(1)
        first.add(1)
    assert stream.getvalue().replace("\r\x1b[2K", "<") == snapshot("""\
<judge 1 records, 1.0/s, 0 unresolved<from inside
judge 1 records, 1.0/s, 0 unresolved<read two, 0.0 s
judge 1 records, 1.0/s, 0 unresolved<from a run without a display
judge 1 records, 1.0/s, 0 unresolved<judge 2 records, 1.0/s, 0 unresolved<judge one 2 records, 1.0/s, 2.0 s, 0 unresolved
""")


@pytest.mark.case("S54")
def test_displays_that_overlap_hand_the_live_line_on() -> None:
    stream, clock = pipe()
    first = Progress("one", stream=stream, clock=clock, live=True)
    second = Progress("two", stream=stream, clock=clock, live=True)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with Progress("three", stream=stream, clock=clock, live=True) as third:
        clock.advance(1)
        third.add(1)
        second.__exit__(None, None, None)
    assert stream.getvalue().replace("\r\x1b[2K", "<") == snapshot("""\
<one, 0.0 s
<three 1 records, 1.0/s, 0 unresolved<two, 1.0 s
three 1 records, 1.0/s, 0 unresolved<three 1 records, 1.0/s, 1.0 s, 0 unresolved
""")


@pytest.mark.case("S54")
def test_displays_of_several_threads_never_write_into_each_others_lines() -> None:
    class Torn(io.StringIO):
        def write(self, text: str) -> int:
            half = len(text) // 2
            super().write(text[:half])
            time.sleep(0)  # another thread may go on here
            return half + super().write(text[half:])

    stream = Torn()

    def run(name: str) -> None:
        with Progress(name, stream=stream, live=True) as progress:
            for n in range(300):
                progress.say(f"{name} says {n}")
                progress.update(Standing(done=n))

    threads = [threading.Thread(target=run, args=(name,)) for name in ("ab", "cd", "ef")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line.split("\r\x1b[2K")[-1] for line in stream.getvalue().split("\n")[:-1]]
    said = [line for line in lines if "says" in line]
    assert sorted(said) == sorted(
        f"{name} says {n}" for name in ("ab", "cd", "ef") for n in range(300)
    )
    assert len(lines) == len(said) + 3


@pytest.mark.parametrize(
    ("standing", "seconds", "ended", "text"),
    [
        (Standing(), 0.0, False, snapshot("judging, 0.0 s")),
        (
            Standing(done=999, total=1_000),
            2.0,
            False,
            snapshot("judging 999 of 1,000 records (99 %), 500/s, 0.0 s left, 0 unresolved"),
        ),
        (
            Standing(done=2_225, total=2_225),
            17.3,
            True,
            snapshot("judging 2,225 of 2,225 records (100 %), 129/s, 17 s, 0 unresolved"),
        ),
        (
            Standing(done=3, total=10, calls=2, cost=None),
            60.0,
            False,
            snapshot(
                "judging 3 of 10 records (30 %), 0.1/s, 2 min 20 s left, 0 unresolved, 2 calls, price unknown"
            ),
        ),
        (
            Standing(done=0, total=0),
            0.0,
            True,
            snapshot("judging 0 of 0 records, 0.0 s, 0 unresolved"),
        ),
        (
            Standing(done=1, note="waits for [red]\x07"),
            1.0,
            False,
            snapshot("judging 1 records, 1.0/s, 0 unresolved, waits for [red]\\x07"),
        ),
    ],
)
def test_a_line_says_rate_time_left_unresolved_and_cost(
    standing: Standing, seconds: float, ended: bool, text: str
) -> None:
    assert describe("judging", standing, seconds, ended=ended) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (3_660, "1 h 1 min"),
        (86_400, "24 h"),
        (-1, "0.0 s"),
    ],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
