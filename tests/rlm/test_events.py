"""The event log: one record a line, whatever a text holds."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.events import CallFinished, Event, Warned
from executors.ids import NodeId
from executors.usage import Usage
from rlm.events import EventLog

AT = datetime(2026, 1, 1, tzinfo=UTC)
NODE = NodeId("root")


def written(path: Path, *events: Event) -> list[dict[str, object]]:
    with EventLog(path) as log:
        for event in events:
            log(event)
    raw = path.read_bytes()
    assert raw.endswith(b"\n")
    return [json.loads(line) for line in raw.split(b"\n")[:-1]]


@pytest.mark.case("K14-10", "K5-2")
@given(st.text() | st.sampled_from(["a\ud83d", "a\nb", "\u2028", "\x00", "<|endoftext|>"]))
def test_any_text_stays_one_line_and_reloads_equal(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    (line,) = written(path, Warned(node=NODE, at=AT, code="x", message=text))
    assert line["message"] == text
    assert line["kind"] == "warned"


def test_money_is_text_so_that_no_digit_is_lost(tmp_path: Path) -> None:
    event = CallFinished(
        node=NODE,
        at=AT,
        key="k",
        role="judge",
        model="m",
        stop="end",
        usage=Usage(input=1, output=None),
        cost=Decimal("0.000000000000000001"),
        attempts=1,
        seconds=0.5,
        source="paid",
    )
    (line,) = written(tmp_path / "events.jsonl", event)
    assert Decimal(str(line["cost"])) == event.cost
    assert line["usage"] == {"input": 1, "cache_read": None, "cache_write": None, "output": None}


def test_listeners_hear_each_event_in_order_after_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    heard: list[Event] = []

    def listen(event: Event) -> None:
        assert len(path.read_bytes().splitlines()) > len(heard)
        heard.append(event)

    events = [Warned(node=NODE, at=AT, code="x", message=f"{n}") for n in range(200)]
    with EventLog(path, listen) as log:
        for event in events:
            log(event)
        assert 100 < len(heard) < 200  # some at a time, and not all at the end
        log.flush()
        assert heard == events


def test_a_guest_hears_each_event_at_once(tmp_path: Path) -> None:
    heard: list[Event] = []
    event = Warned(node=NODE, at=AT, code="x", message="y")
    with EventLog(tmp_path / "events.jsonl", guest=heard.append) as log:
        log(event)
        assert heard == [event]


@pytest.mark.case("R-202")
def test_a_guest_that_raises_hears_no_more_and_the_log_goes_on(tmp_path: Path) -> None:
    heard: list[Event] = []
    seen: list[Event] = []

    def guest(event: Event) -> None:
        seen.append(event)
        raise KeyError("half\nof it")

    first, second = (Warned(node=NODE, at=AT, code="x", message=text) for text in "ab")
    with EventLog(tmp_path / "events.jsonl", heard.append, guest=guest) as log:
        log(first)
        log(second)
    assert seen == [first]
    told = "on_event raised KeyError: 'half\\nof it'; it heard nothing after that"
    assert heard == [first, Warned(node=NODE, at=AT, code="on-event", message=told), second]
    assert (tmp_path / "events.jsonl").read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_what_is_no_exception_passes_through_a_log(tmp_path: Path, error: BaseException) -> None:
    def guest(_: Event) -> None:
        raise error

    with (
        EventLog(tmp_path / "events.jsonl", guest=guest) as log,
        pytest.raises(type(error)),
    ):
        log(Warned(node=NODE, at=AT, code="x", message="y"))
