"""Rows of the reference about providers, each by the way through the whole wire."""

from dataclasses import replace
from random import Random
from time import monotonic
from typing import Any

import pytest

from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.endpoint.retry import RetryPolicy
from executors.errors import (
    DeadlineExceeded,
    HeadersTimeout,
    IdleTimeout,
    ModelError,
    RequestRejected,
    TransportFault,
    ValidationError,
)
from executors.events import CallFinished, Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.models.fakes.acts import (
    Act,
    Completion,
    Reply,
    cut_short,
    drip,
    headers_only,
    refused_parameter,
    silent,
    sse,
)
from executors.models.fakes.server import FakeServer
from executors.models.wire.bounds import Bounds
from tests.executors.asks import answer, ask, error, failure, model_at
from tests.executors.benches import NODE

pytestmark = pytest.mark.anyio


async def asked(script: list[Act]) -> tuple[int, ModelError | None, list[Event]]:
    """Return requests, error and events of one call through the pipeline."""
    clock, events = VirtualClock(), list[Event]()
    allowance = CapsAllowance(Caps(), clock)
    calls = Calls(allowance=allowance, emit=events.append, clock=clock)
    async with FakeServer(script) as server:
        model = model_at(server)
        failed = None
        try:
            await calls.ask(model, ask(), role="worker", node=NODE)
        except ModelError as raised:
            failed = raised
        await model.aclose()
        return server.requests, failed, events


@pytest.mark.case("R-190")
async def test_what_may_pass_is_tried_again_until_it_does() -> None:
    requests, failed, events = await asked([error(500), error(500), Completion()])
    assert (requests, failed) == (3, None)
    assert [event.attempts for event in events if isinstance(event, CallFinished)] == [3]


@pytest.mark.case("R-190")
async def test_what_can_never_pass_is_asked_once() -> None:
    requests, failed, _ = await asked([error(400)])
    assert requests == 1
    assert isinstance(failed, RequestRejected)
    assert not failed.retryable


@pytest.mark.case("R-191")
async def test_a_server_that_is_too_slow_is_worth_another_try() -> None:
    async with FakeServer(silent()) as server:
        model = model_at(server, bounds=Bounds(headers=0.05))
        with pytest.raises(HeadersTimeout) as caught:
            await model.generate(ask())
        await model.aclose()
    assert caught.value.retryable


@pytest.mark.case("R-191")
@pytest.mark.parametrize(("tries", "most"), [(1, 1.0), (2, 2.0), (3, 4.0)])
def test_waits_are_drawn_evenly_up_to_one_two_and_four_seconds(tries: int, most: float) -> None:
    drawn = [RetryPolicy().backoff(tries, Random(seed)) for seed in range(500)]
    assert 0 <= min(drawn) < most * 0.02
    assert most * 0.98 < max(drawn) <= most


_RANGE = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 9."
_TEMPERATURE = [
    "Unsupported value: 'temperature' does not support 0.2 here. Only the default (1) is supported.",
    "`temperature` is deprecated for this model.",
    "Unsupported parameter: 'temperature' is not supported with this model.",
    "temperature: Extra inputs are not permitted",
]


@pytest.mark.case("R-195")
@pytest.mark.parametrize("message", _TEMPERATURE)
async def test_a_temperature_that_is_not_taken_is_left_out_once(message: str) -> None:
    script: list[Act] = [refused_parameter("temperature", message), Completion(text="done")]
    reply = await answer(script, ask(temperature=0.2))
    assert (reply.text, reply.temperature, reply.requests) == ("done", None, 2)


@pytest.mark.case("R-195")
@pytest.mark.parametrize(
    ("refusal", "temperature"),
    [
        (error(400, _RANGE, code="decimal_above_max_value", param="temperature"), 9.0),
        (refused_parameter("temperature", _TEMPERATURE[0]), None),
        (error(400, "x " * 500_000 + "temperature"), 0.2),
    ],
    ids=["out of range", "none was sent", "a megabyte of text"],
)
async def test_any_other_refusal_is_raised_as_it_is_and_at_once(
    refusal: Reply, temperature: float | None
) -> None:
    begun = monotonic()
    raised = await failure([refusal], ask(temperature=temperature))
    assert isinstance(raised, RequestRejected)
    assert monotonic() - begun < 2


@pytest.mark.case("R-199")
async def test_a_body_that_is_cut_is_a_fault_of_the_way_and_soon_known() -> None:
    begun = monotonic()
    raised = await failure(cut_short(b'{"choices": [', promised=500))
    assert isinstance(raised, TransportFault)
    assert (raised.retryable, raised.maybe_paid) == (True, True)
    assert monotonic() - begun < 4


@pytest.mark.case("R-200")
async def test_a_body_that_trickles_ends_at_the_deadline_for_good() -> None:
    event = sse({"choices": [{"delta": {"content": "x"}}]})
    async with FakeServer(drip(event * 100, 0.05, size=len(event))) as server:
        model = model_at(server, bounds=Bounds(idle=0.3, total=0.4))
        with pytest.raises(DeadlineExceeded) as caught:
            await model.generate(ask(stream=True))
        await model.aclose()
    assert not caught.value.retryable


@pytest.mark.case("R-200")
async def test_a_silent_socket_trips_the_idle_bound_first() -> None:
    async with FakeServer(headers_only()) as server:
        model = model_at(server, bounds=Bounds(idle=0.1, total=5.0))
        with pytest.raises(IdleTimeout):
            await model.generate(ask(stream=True))
        await model.aclose()


@pytest.mark.case("R-200")
@pytest.mark.parametrize("name", ["connect", "headers", "idle", "total"])
@pytest.mark.parametrize("value", [-1.0, 0.0, float("nan"), float("inf")])
def test_bounds_are_finite_and_garbage_is_refused(name: str, value: float) -> None:
    """R-200 / D3: the reference takes its default instead, and has none for the deadline."""
    assert all(0 < getattr(Bounds(), bound) < 3_600 for bound in ("idle", "total"))
    knob: dict[str, Any] = {name: value}
    with pytest.raises(ValidationError, match=name):
        replace(Bounds(), **knob)
