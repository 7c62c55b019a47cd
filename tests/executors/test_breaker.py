"""A model that fails is left alone for a while, and then asked once to see."""

from collections.abc import Sequence

import anyio
import pytest

from executors.clock import VirtualClock
from executors.errors import (
    AuthError,
    CircuitOpen,
    ModelError,
    RateLimited,
    ServerFault,
    TransportFault,
    ValidationError,
)
from executors.messages import ModelReply, ModelRequest
from executors.models.base import StreamingModel
from executors.models.breaker import Breaker, Circuit
from executors.models.fakes.scripted import ScriptedModel, Turn
from tests.executors.asks import ask
from tests.executors.benches import NODE, Bench

pytestmark = [pytest.mark.anyio, pytest.mark.case("R-192")]

DOWN = ServerFault("500")


class Lab:
    """A breaker around a script, with its clock and all that it became."""

    def __init__(self, turns: Sequence[Turn] | str, *, threshold: int = 2) -> None:
        self.clock = VirtualClock()
        self.model = ScriptedModel(turns)
        self.states: list[Circuit] = []
        self.breaker = Breaker(
            self.model,
            threshold=threshold,
            clock=self.clock,
            on_change=self.states.append,
        )

    async def ask(self) -> str:
        """Return what came of one call: its text, or the code of its error."""
        try:
            return (await self.breaker.generate(ask())).text
        except ModelError as error:
            return error.code


async def test_it_opens_after_so_many_outages_in_a_row_and_sends_nothing_more() -> None:
    lab = Lab([DOWN, "ok", DOWN, TransportFault("reset")])
    said = [await lab.ask() for _ in range(6)]
    assert said == [
        "server-fault",
        "ok",
        "server-fault",
        "transport",
        "circuit-open",
        "circuit-open",
    ]
    assert (lab.model.calls, lab.breaker.state, lab.states) == (4, "open", ["open"])


async def test_an_open_circuit_can_be_tried_again_when_its_time_is_over() -> None:
    lab = Lab([DOWN, DOWN])
    await lab.ask()
    await lab.ask()
    await lab.clock.sleep(20)
    with pytest.raises(CircuitOpen, match="the last 2 call") as caught:
        await lab.breaker.generate(ask())
    error = caught.value
    assert (error.retryable, error.maybe_paid, error.attempts) == (True, False, 0)
    assert error.retry_after == 40


@pytest.mark.parametrize(
    ("probe", "after", "states"),
    [
        ("ok", "closed", ["open", "half-open", "closed"]),
        (DOWN, "open", ["open", "half-open", "open"]),
    ],
)
async def test_one_call_sees_whether_it_is_over(
    probe: Turn, after: Circuit, states: list[Circuit]
) -> None:
    lab = Lab([DOWN, DOWN, probe])
    await lab.ask()
    await lab.ask()
    await lab.clock.sleep(60)
    assert lab.breaker.state == "half-open"
    await lab.ask()
    assert (lab.breaker.state, lab.states) == (after, states)


async def test_while_one_call_sees_all_others_wait() -> None:
    lab = Lab([DOWN, DOWN, "ok", "ok"])
    await lab.ask()
    await lab.ask()
    await lab.clock.sleep(60)
    said: list[str] = []

    async def call() -> None:
        said.append(await lab.ask())

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(call)
    assert sorted(said) == ["circuit-open", "circuit-open", "ok"]
    assert await lab.ask() == "ok"


async def test_a_cancelled_look_leaves_room_for_the_next() -> None:
    lab = Lab([DOWN, DOWN, "ok"])
    lab.model._latency = 1.0
    for _ in range(2):
        await lab.ask()
    await lab.clock.sleep(60)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await lab.ask()
    assert await lab.ask() == "ok"


async def test_a_call_of_before_says_nothing_about_the_circuit_of_now() -> None:
    clock, gate = VirtualClock(), anyio.Event()

    class Slow(ScriptedModel):
        async def generate(self, request: ModelRequest) -> ModelReply:
            if request.max_tokens == 1:
                await gate.wait()
                raise DOWN
            return await super().generate(request)

    breaker = Breaker(Slow([DOWN, "ok", "ok"]), threshold=2, clock=clock)

    async def late() -> None:
        with pytest.raises(ServerFault):
            await breaker.generate(ask(max_tokens=1))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(late)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ServerFault):
            await breaker.generate(ask())
        breaker.close()
        gate.set()
    assert breaker.state == "closed"
    assert (await breaker.generate(ask())).text == "ok"


@pytest.mark.parametrize("error", [RateLimited("429"), AuthError("401")])
async def test_what_is_no_outage_opens_nothing(error: ModelError) -> None:
    lab = Lab([DOWN, error, DOWN, error, DOWN, "ok"])
    for _ in range(5):
        await lab.ask()
    assert await lab.ask() == "ok"


async def test_what_counts_can_be_said() -> None:
    model = ScriptedModel([RateLimited("429")] * 2)
    breaker = Breaker(model, threshold=2, counts=lambda _: True, clock=VirtualClock())
    for _ in range(2):
        with pytest.raises(RateLimited):
            await breaker.generate(ask())
    assert breaker.state == "open"


async def test_a_circuit_can_be_closed_by_hand() -> None:
    lab = Lab([DOWN, DOWN, "ok"])
    await lab.ask()
    await lab.ask()
    lab.breaker.close()
    assert (await lab.ask(), lab.states) == ("ok", ["open", "closed"])


async def test_a_breaker_is_known_as_its_model_and_can_be_watched() -> None:
    lab = Lab("ok")
    heard: list[str] = []
    assert lab.breaker.info is lab.model.info
    assert isinstance(lab.breaker, StreamingModel)
    await lab.breaker.generate_streaming(ask(), heard.append)
    await lab.breaker.aclose()


async def test_a_run_waits_for_an_open_circuit_and_goes_on() -> None:
    bench = Bench()
    model = ScriptedModel([DOWN, DOWN, "ok", "ok"])
    breaker = Breaker(model, threshold=2, clock=bench.clock)
    answer = await bench.calls.ask(breaker, ask(), role="worker", node=NODE)
    assert (answer.reply.text, answer.attempts, model.calls) == ("ok", 3, 3)
    assert bench.clock.monotonic() >= 60
    assert (await bench.ask()).reply.text == "ok"


@pytest.mark.parametrize(
    ("threshold", "reset"),
    [
        (0, 1.0),
        (True, 1.0),
        (2.5, 1.0),
        (float("nan"), 1.0),
        ("3", 1.0),
        (None, 1.0),
        (1, -1.0),
        (1, float("nan")),
        (1, "60"),
        (1, None),
        (1, True),
    ],
)
def test_bounds_that_are_none_are_refused(threshold: object, reset: object) -> None:
    with pytest.raises(ValidationError, match="="):
        Breaker(ScriptedModel(), threshold=threshold, reset=reset)  # type: ignore[arg-type]


def test_what_is_no_model_and_no_function_is_refused() -> None:
    for odd in (None, "gpt", 3):
        with pytest.raises(ValidationError, match=r"is no model\nrlm\.Breaker"):
            Breaker(odd)  # type: ignore[arg-type]
    for name in ("counts", "on_change"):
        with pytest.raises(ValidationError, match=f"{name}=3 cannot be called"):
            Breaker(ScriptedModel(), **{name: 3})  # type: ignore[arg-type]
