"""A server that limits calls, on a real socket and a real clock, seen through the whole pipeline."""

import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
import pytest

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.endpoint.buckets import Limits
from executors.errors import OutOfQuota
from executors.events import CallFailed, CallFinished, Event, Warned
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.models.fakes.acts import Completion, Reply, rate_limited
from executors.models.fakes.limited import Limited, LimitKind, RetryAfter
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from tests.executors.asks import ask, model_at, received

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def asking(
    server: Limited, events: list[Event], limits: Limits | None = None
) -> AsyncGenerator[tuple[Calls, OpenAIModel]]:
    allowance = CapsAllowance(Caps(), SystemClock())
    calls = Calls(allowance=allowance, emit=events.append, concurrency=64, limits=limits)
    async with FakeServer(server) as fake:
        model = model_at(fake)
        yield calls, model
        await model.aclose()


async def all_of(calls: Calls, model: OpenAIModel, items: int) -> None:
    pending = iter(range(items))

    async def worker() -> None:
        for n in pending:
            await calls.ask(model, ask(f"item {n}"), role="judge", node=NodeId("root"))

    async with anyio.create_task_group() as group:
        for _ in range(64):
            group.start_soon(worker)


@pytest.mark.case("S46")
@pytest.mark.parametrize("limits", [None, Limits(rpm=12_000)], ids=["unknown", "told"])
@pytest.mark.parametrize("retry_after", ["seconds", None])
async def test_of_many_workers_at_a_limited_server_none_loses_an_item(
    limits: Limits | None, retry_after: RetryAfter
) -> None:
    """200 a second; the figures at full size are in the benchmark."""
    events: list[Event] = []
    server = Limited(200, retry_after=retry_after, answer=Completion(after=0.01))
    started = time.monotonic()
    async with asking(server, events, limits) as (calls, model):
        await all_of(calls, model, 500)
    finished = [event for event in events if isinstance(event, CallFinished)]
    assert (len(finished), server.served) == (500, 500)
    assert server.refused <= (0.05 * 500 if limits else 64 + 0.1 * 500)
    assert time.monotonic() - started <= 500 / 200 + 5.0


async def test_the_rate_that_went_through_is_told_where_calls_were_refused() -> None:
    """200 a second are 12,000 a minute; what is told is borne, and not far from it."""
    events: list[Event] = []
    async with asking(Limited(200, answer=Completion(after=0.01)), events) as (calls, model):
        await all_of(calls, model, 500)
        calls.tell_pace()
    (said,) = [event for event in events if isinstance(event, Warned)]
    found = re.fullmatch(
        r"the server refused ([\d,]+) requests; about ([\d,]+) a minute went through: --rpm (\d+)",
        said.message,
    )
    assert said.code == "pace"
    assert found is not None
    assert int(found[2].replace(",", "")) == int(found[3])
    assert 3_000 <= int(found[3]) <= 13_200


@pytest.mark.parametrize("refusals", [0, 2])
async def test_a_refusal_or_two_are_not_told(refusals: int) -> None:
    events: list[Event] = []
    left = iter(range(refusals))

    def answer(_: object) -> Completion | Reply:
        return Completion() if next(left, None) is None else rate_limited("0")

    async with asking(Limited(1_000, answer=answer), events) as (calls, model):
        await ask_twenty(calls, model)
        calls.tell_pace()
    assert not any(isinstance(event, Warned) for event in events)


async def ask_twenty(calls: Calls, model: OpenAIModel) -> None:
    for n in range(20):
        await calls.ask(model, ask(f"one {n}"), role="judge", node=NodeId("root"))


@pytest.mark.case("S50")
async def test_a_quota_that_ends_for_hours_stops_the_calls_and_keeps_what_was_answered() -> None:
    events: list[Event] = []
    left = iter(range(5))

    def answer(_: object) -> Completion | Reply:
        return rate_limited("10800") if next(left, None) is None else Completion()

    server = Limited(1_000, answer=answer)
    async with asking(server, events) as (calls, model):
        before = datetime.now(UTC)
        with pytest.raises(ExceptionGroup) as caught:
            await all_of(calls, model, 200)
    halted = caught.value.exceptions[0]
    assert isinstance(halted, OutOfQuota)
    assert 10_790 <= (halted.resume_after - before).total_seconds() <= 10_810
    assert sum(isinstance(event, CallFinished) for event in events) == 5
    failed = [event for event in events if isinstance(event, CallFailed)]
    assert not any(event.possibly_paid for event in failed if event.error == "out-of-quota")


# ---------------------------------------------------------------- the fake itself


@pytest.mark.parametrize(
    ("kind", "served"),
    [("fixed", [3, 0, 0, 3]), ("sliding", [3, 0, 0, 3]), ("bucket", [3, 1, 1, 1])],
)
def test_the_fake_serves_as_many_as_its_kind_of_limit_lets_through(
    kind: LimitKind, served: list[int]
) -> None:
    now = 0.0
    server = Limited(3, 3.0, kind=kind, now=lambda: now)
    counts: list[int] = []
    for second in range(4):
        now = float(second)
        before = server.served
        for _ in range(5):
            server(received())
        counts.append(server.served - before)
    assert counts == served
    assert server.refused == 20 - sum(served)


@pytest.mark.parametrize("form", ["seconds", "date", None])
def test_the_fake_tells_its_limit_in_each_form(form: RetryAfter) -> None:
    server = Limited(1, 30.0, retry_after=form)
    server(received())
    act = server(received())
    assert isinstance(act, Reply)
    told = dict(act.headers).get("retry-after")
    match form:
        case "seconds":
            assert told == "30"
        case "date":
            left = parsedate_to_datetime(str(told)) - datetime.now(UTC)
            assert 28 <= left.total_seconds() <= 31
        case None:
            assert told is None
