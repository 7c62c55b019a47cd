"""Server-sent events from bytes that are cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.models.fakes.acts import (
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


# ---------------------------------------------------------------- helpers
def _one_line(text: str) -> str:
    return text.replace("\n", "").replace("\r", "").lstrip(" ")
