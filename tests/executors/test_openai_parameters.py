"""Chat completions: what a server does not take, and how many requests it sees."""

import anyio
import pytest

from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.endpoint.endpoint import RetryPolicy
from executors.errors import (
    RateLimited,
    RequestRejected,
    RetriesExhausted,
)
from executors.events import CallFinished, Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.messages import ResponseSchema
from executors.models.fakes.acts import (
    Act,
    Completion,
    Received,
    error_event,
    rate_limited,
    refused_parameter,
)
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from executors.models.openai.requests import LimitName
from executors.secrets import Secret
from tests.executors.asks import KEY, ask, error, model_at

pytestmark = pytest.mark.anyio

SCHEMA = ResponseSchema(name="answers", schema={"type": "object", "additionalProperties": False})


# ---------------------------------------------------------------- parameters that a server refuses
@pytest.mark.case("K2-10")
async def test_a_refused_temperature_is_dropped_once_and_said_once() -> None:
    warned: list[str] = []

    def script(received: Received) -> Act:
        message = "Unsupported value: 'temperature' does not support 0. Only the default (1) is."
        taken = "temperature" not in received.json
        return Completion() if taken else refused_parameter("temperature", message)

    async with FakeServer(script) as server:
        model = OpenAIModel("o", base_url=server.base_url, warn=warned.append)
        first = await model.generate(ask(temperature=0.0))
        second = await model.generate(ask(temperature=0.0))
        await model.aclose()
        assert (first.temperature, first.requests) == (None, 2)
        assert (second.temperature, second.requests) == (None, 1)
        assert server.requests == 3
    assert warned == [
        f"model 'o' at {server.base_url} takes no temperature: it is left out from now on"
    ]


@pytest.mark.case("K2-10")
async def test_many_calls_at_once_learn_together_and_warn_once() -> None:
    warned: list[str] = []

    def script(received: Received) -> Act:
        if "temperature" in received.json:
            return refused_parameter("temperature")
        if "max_tokens" in received.json:
            return refused_parameter("max_tokens", "Unsupported: use 'max_completion_tokens'.")
        return Completion(after=0.01)

    async with FakeServer(script) as server:
        model = OpenAIModel("o", base_url=server.base_url, warn=warned.append)
        async with anyio.create_task_group() as group:
            for _ in range(16):
                group.start_soon(model.generate, ask(temperature=0.0))
        before = server.requests
        reply = await model.generate(ask(temperature=0.0))
        await model.aclose()
        assert (reply.requests, server.requests) == (1, before + 1)
    assert len(warned) == 1


@pytest.mark.case("K2-4", "K2-10")
async def test_the_extra_request_is_counted_where_attempts_are() -> None:
    events: list[Event] = []
    clock = VirtualClock()
    async with FakeServer(
        [refused_parameter("temperature"), rate_limited("1"), Completion()]
    ) as server:
        model = OpenAIModel("o", base_url=server.base_url, warn=lambda _: None)
        calls = Calls(allowance=CapsAllowance(Caps(), clock), emit=events.append, clock=clock)
        got = await calls.ask(model, ask(temperature=0.0), role="judge", node=NodeId("root"))
        await model.aclose()
        assert got.attempts == server.requests == 3
    (finished,) = [event for event in events if isinstance(event, CallFinished)]
    assert finished.attempts == 3


@pytest.mark.parametrize(
    ("limit", "first", "then"),
    [
        (None, "max_tokens", "max_completion_tokens"),
        ("max_completion_tokens", "max_completion_tokens", "max_tokens"),
    ],
)
async def test_the_bound_of_the_output_goes_by_the_name_that_the_server_takes(
    limit: LimitName | None, first: str, then: str
) -> None:
    def script(received: Received) -> Act:
        if first in received.json:
            return error(400, f"Unsupported parameter: '{first}'", param=first)
        return Completion()

    async with FakeServer(script) as server:
        model = OpenAIModel("m", base_url=server.base_url, limit=limit)
        assert (await model.generate(ask(max_tokens=9))).requests == 2
        assert server.received[1].json[then] == 9
        await model.aclose()


async def test_openais_own_server_is_asked_by_the_newer_name() -> None:
    assert OpenAIModel("gpt-x", key=Secret(KEY))._dialect.limit == "max_completion_tokens"


async def test_a_refused_schema_is_left_out() -> None:
    warned: list[str] = []
    acts: list[Act] = [
        error(422, "'response_format' of type json_schema is not supported"),
        Completion(),
    ]
    async with FakeServer(acts) as server:
        model = OpenAIModel("m", base_url=server.base_url, warn=warned.append)
        assert (await model.generate(ask(schema=SCHEMA))).text == "ok"
        await model.aclose()
        assert "response_format" not in server.received[1].json
    assert len(warned) == 1


@pytest.mark.parametrize(
    "message",
    ["temperature must be between 0 and 2", "max_tokens is too large: 999", "bad request"],
)
async def test_a_bad_value_is_rejected_and_nothing_is_dropped(message: str) -> None:
    async with FakeServer(error(400, message)) as server:
        with pytest.raises(RequestRejected, match="the server answered 400"):
            await model_at(server).generate(ask(temperature=9.0))
        assert server.requests == 1


async def test_a_server_that_refuses_whatever_is_tried_is_asked_a_bounded_number_of_times() -> None:
    def script(received: Received) -> Act:
        names = ("temperature", "response_format", "max_tokens", "max_completion_tokens")
        named = next((name for name in names if name in received.json), "model")
        return refused_parameter(named)

    async with FakeServer(script) as server:
        model = OpenAIModel("m", base_url=server.base_url, warn=lambda _: None)
        with pytest.raises(RequestRejected) as caught:
            await model.generate(ask(temperature=0.0, schema=SCHEMA))
        await model.aclose()
        assert caught.value.attempts == server.requests == 4


# ---------------------------------------------------------------- the whole way
@pytest.mark.case("K2-2", "K2-4", "K2-5")
@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_requests_at_the_server_are_the_tries_that_were_allowed(attempts: int) -> None:
    clock = VirtualClock()
    async with FakeServer(rate_limited()) as server:
        model = model_at(server)
        calls = Calls(
            allowance=CapsAllowance(Caps(), clock),
            emit=lambda _: None,
            clock=clock,
            retry=RetryPolicy(attempts=attempts),
        )
        with pytest.raises((RateLimited, RetriesExhausted)) as caught:
            await calls.ask(model, ask(), role="judge", node=NodeId("root"))
        await model.aclose()
        assert server.requests == caught.value.attempts == attempts


@pytest.mark.case("K2-11", "K2-13")
@pytest.mark.parametrize("kind", ["overloaded_error", "rate_limit_error"])
async def test_an_error_inside_a_200_is_tried_again_like_its_status(kind: str) -> None:
    clock = VirtualClock()
    async with FakeServer([error_event(kind), error_event(kind), Completion()]) as server:
        model = model_at(server)
        calls = Calls(allowance=CapsAllowance(Caps(), clock), emit=lambda _: None, clock=clock)
        got = await calls.ask(model, ask(stream=True), role="judge", node=NodeId("root"))
        await model.aclose()
        assert (got.reply.text, got.attempts, server.requests) == ("ok", 3, 3)


@pytest.mark.case("K2-1", "K2-14")
async def test_over_the_wire_a_wish_is_waited_out_and_two_requests_are_made() -> None:
    clock = VirtualClock()
    async with FakeServer([rate_limited("30"), Completion()]) as server:
        model = model_at(server)
        calls = Calls(allowance=CapsAllowance(Caps(), clock), emit=lambda _: None, clock=clock)
        await calls.ask(model, ask(), role="judge", node=NodeId("root"))
        await model.aclose()
        assert server.requests == 2
    assert 30.0 <= clock.monotonic() <= 32.0
