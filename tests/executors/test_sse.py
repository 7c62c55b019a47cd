"""Server-sent events from bytes that are cut anywhere."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.models.fakes.acts import (
    Hold,
    Steps,
    drip,
    sse,
)
from executors.models.fakes.server import FakeServer
from executors.models.wire.sse import EventSplitter, ServerEvent
from tests.executors.asks import ask, model_at

pytestmark = pytest.mark.anyio

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def delta(text: str, finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


# ---------------------------------------------------------------- events
@pytest.mark.case("K7-8")
async def test_a_line_ends_at_lf_alone() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be"
    body = sse(delta(text, "stop")) + b"data: [DONE]\n\n"
    async with FakeServer(drip(body, 0.0, size=7)) as server:
        model = model_at(server)
        assert (await model.generate(ask(stream=True))).text == text
        await model.aclose()


@given(st.lists(st.text(max_size=12), max_size=6), st.integers(1, 9), st.booleans())
def test_events_are_the_same_however_the_bytes_are_cut(
    texts: list[str], size: int, crlf: bool
) -> None:
    wanted = [ServerEvent(name="e", data=one.encode()) for one in map(_one_line, texts) if one]
    raw = b"".join(b"event: e\ndata: " + event.data + b"\n\n: comment\n" for event in wanted)
    raw = raw.replace(b"\n", b"\r\n") if crlf else raw
    splitter = EventSplitter()
    got = [event for at in range(0, len(raw), size) for event in splitter.feed(raw[at : at + size])]
    assert got == wanted
    assert list(splitter.close()) == []


def test_data_lines_are_joined_and_events_without_data_are_none() -> None:
    splitter = EventSplitter()
    raw = b"data: 1\ndata:2\n\nevent: ping\n\ndata:\n\nid: 7\nretry: 5\ndata: last"
    assert list(splitter.feed(raw)) == [ServerEvent(name="", data=b"1\n2")]
    assert list(splitter.close()) == [ServerEvent(name="", data=b"last")]


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
def test_a_byte_order_mark_before_the_first_event_is_none_of_it(size: int) -> None:
    raw = b"\xef\xbb\xbfdata: 1\n\ndata: \xef\xbb\xbf2\n\n"
    splitter = EventSplitter()
    got = [event for at in range(0, len(raw), size) for event in splitter.feed(raw[at : at + size])]
    assert [event.data for event in got] == [b"1", b"\xef\xbb\xbf2"]


@pytest.mark.case("K1-2")
@pytest.mark.parametrize("marker", [b"data: [DONE]\n", b"data: [DONE]", b"data:[DONE]\r\n"])
@pytest.mark.parametrize("size", [1, 1_000])
async def test_the_end_marker_needs_no_blank_line_and_no_end_of_its_own_line(
    marker: bytes, size: int
) -> None:
    body = sse(delta("answer")) + marker
    parts = tuple(body[at : at + size] for at in range(0, len(body), size))
    async with FakeServer(Steps((_HEAD, *parts, Hold()))) as server:
        model = model_at(server)
        with anyio.fail_after(5):
            assert (await model.generate(ask(stream=True))).text == "answer"
        await model.aclose()


def test_the_end_marker_also_ends_an_event_that_no_blank_line_ended() -> None:
    for raw in (b"data: 1\ndata: [DONE]", b"data: 1\ndata: [DONE]\n"):
        splitter = EventSplitter()
        assert [e.data for e in splitter.feed(raw)] == [b"1", b"[DONE]"]
        assert list(splitter.close()) == []
    assert [e.data for e in EventSplitter().feed(b"\xef\xbb\xbfdata: [DONE]")] == [b"[DONE]"]


def test_what_only_looks_like_the_end_marker_is_none() -> None:
    splitter = EventSplitter()
    raw = b"data: [DONE] and more\n\n: data: [DONE]\n\ndata: x [DONE]\n\n"
    got = [event.data for n in range(len(raw)) for event in splitter.feed(raw[n : n + 1])]
    assert got[0] == b"[DONE]"  # its bytes come before those that say otherwise
    assert [e.data for e in EventSplitter().feed(raw)] == [b"[DONE] and more", b"x [DONE]"]


def test_a_line_without_end_costs_its_length_once() -> None:
    """Joining at each chunk would copy a gigabyte for these two megabytes."""
    splitter = EventSplitter()
    piece = b"x" * 2_000
    for _ in range(1_000):
        assert list(splitter.feed(piece)) == []
    assert len(splitter._rest) == 1_000
    assert list(splitter.feed(b"\ndata: 1\n\n")) == [ServerEvent(name="", data=b"1")]


# ---------------------------------------------------------------- helpers
def _one_line(text: str) -> str:
    return text.replace("\n", "").replace("\r", "").lstrip(" ")
