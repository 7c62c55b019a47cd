"""Where one model fails the next is asked, and what that costs is known."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from executors.calls.calls import Calls, call_key
from executors.clock import VirtualClock
from executors.endpoint.endpoint import RetryPolicy
from executors.errors import (
    AllFailed,
    AuthError,
    ContextExceeded,
    DeadlineExceeded,
    ModelError,
    NoQuota,
    NotEncodable,
    RateLimited,
    RequestRejected,
    ServerFault,
    TransportFault,
    ValidationError,
)
from executors.gate.allowance import Caps, CapsAllowance
from executors.journal.records import Journal
from executors.journal.replay import Replay
from executors.messages import ModelReply
from executors.models.base import Model, ModelInfo, StreamingModel
from executors.models.breaker import Breaker
from executors.models.fakes.acts import Act, Completion, error_event, silent
from executors.models.fakes.scripted import ScriptedModel, Turn
from executors.models.fakes.server import FakeServer
from executors.models.fallback import Fallback
from executors.models.prices import Price, PriceTable
from executors.models.wire.bounds import Bounds
from executors.usage import Usage
from tests.executors.asks import ask, model_at
from tests.executors.benches import NODE
from tests.executors.journals import opened

pytestmark = pytest.mark.anyio

DOWN = ServerFault("500")
RESET = TransportFault("reset")
CHEAP = Price(input=Decimal(1_000), output=Decimal(1_000))
DEAR = Price(input=Decimal(9_000), output=Decimal(9_000))


def scripted(name: str, *turns: Turn) -> ScriptedModel:
    return ScriptedModel(turns, name=name)


def said(text: str = "ok", tokens: int = 10) -> ModelReply:
    return ModelReply(text=text, stop="end", usage=Usage(input=tokens, output=0), model="served")


@pytest.mark.case("R-192")
async def test_models_are_asked_in_order_until_one_answers() -> None:
    one, two, three = scripted("a", DOWN), scripted("b", RESET), scripted("c", said())
    failed: list[tuple[str, str]] = []
    model = Fallback(
        one, two, three, on_fallback=lambda info, error: failed.append((info.name, error.code))
    )
    reply = await model.generate(ask())
    assert (reply.text, reply.model, reply.answered_by) == ("ok", "served", "scripted:c")
    assert (reply.requests, reply.unsettled) == (3, 1)
    assert failed == [("a", "server-fault"), ("b", "transport")]


async def test_the_first_answers_as_itself() -> None:
    first = scripted("a", said())
    assert await Fallback(first, scripted("b")).generate(ask()) == said()


@pytest.mark.case("K2-13")
async def test_a_refusal_is_an_answer_and_never_falls_over() -> None:
    refused = ModelReply(text="no", stop="refusal")
    other = scripted("b", said())
    assert (await Fallback(scripted("a", refused), other).generate(ask())).stop == "refusal"
    assert other.calls == 0


@pytest.mark.parametrize(
    ("error", "falls"),
    [
        (RateLimited("429"), True),
        (AuthError("401"), True),
        (NoQuota("402"), True),
        (DeadlineExceeded("late"), True),
        (ContextExceeded("long"), True),
        (RequestRejected("no such model", status=404), True),
        (RequestRejected("bad schema", status=400), False),
        (NotEncodable("half"), False),
    ],
    ids=lambda value: value.code if isinstance(value, ModelError) else "",
)
async def test_only_what_another_model_may_do_better_falls_over(
    error: ModelError, falls: bool
) -> None:
    other = scripted("b", said())
    model = Fallback(scripted("a", error), other)
    if falls:
        assert (await model.generate(ask())).answered_by == "scripted:b"
    else:
        with pytest.raises(type(error)):
            await model.generate(ask())
    assert other.calls == falls


async def test_which_errors_fall_over_can_be_said() -> None:
    model = Fallback(scripted("a", DOWN), scripted("b"), falls=lambda _: False)
    with pytest.raises(ServerFault):
        await model.generate(ask())


@pytest.mark.parametrize(
    ("errors", "retryable", "paid"),
    [
        ([AuthError("401"), RequestRejected("400")], False, False),
        ([AuthError("401"), RESET], True, True),
    ],
)
async def test_where_all_fail_each_is_listed(
    errors: list[ModelError], retryable: bool, paid: bool
) -> None:
    model = Fallback(*[scripted(f"m{n}", error) for n, error in enumerate(errors)])
    with pytest.raises(AllFailed, match=r"2 model\(s\) were asked") as caught:
        await model.generate(ask())
    failed = caught.value
    assert list(failed.errors) == errors
    assert all(error.what in failed.what for error in errors)
    assert (failed.retryable, failed.maybe_paid, failed.attempts) == (retryable, paid, 2)


@pytest.mark.case("K2-13")
async def test_an_error_inside_a_stream_falls_over_as_what_it_is() -> None:
    script: list[Act] = [error_event("rate_limit_error"), Completion(text="from the second")]
    async with FakeServer(script) as server:
        one, two = model_at(server), model_at(server)
        reply = await Fallback(one, two).generate(ask(stream=True))
        assert reply.text == "from the second"
        assert reply.answered_by == f"openai:gpt-x at {one.info.origin}"
        await one.aclose()
        await two.aclose()


async def test_a_fallback_is_known_as_its_first_and_holds_what_holds_for_all() -> None:
    one = ScriptedModel(name="a", context_window=100, max_concurrency=8)
    two = ScriptedModel(name="b", context_window=200, max_concurrency=4)
    info = Fallback(one, two).info
    assert call_key(info, ask(), 0) == call_key(one.info, ask(), 0)
    assert (info.context_window, info.max_concurrency) == (200, 4)
    assert info.others == (two.info,)
    nested = Fallback(one, Fallback(two, ScriptedModel(name="c"))).info
    assert [other.name for other in nested.others] == ["b", "c"]
    assert nested.context_window is None


async def test_the_innermost_says_who_answered() -> None:
    inner = Fallback(scripted("b", RESET), scripted("c", said()))
    reply = await Fallback(scripted("a", RESET), inner).generate(ask())
    assert (reply.answered_by, reply.requests, reply.unsettled) == ("scripted:c", 3, 2)


async def test_none_at_all_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs models"):
        Fallback()


@pytest.mark.case("R-192")
async def test_what_is_no_model_and_no_function_is_refused() -> None:
    model = ScriptedModel()
    for odd in (None, "gpt", [model], 3):
        with pytest.raises(ValidationError, match=r"is no model\nrlm\.Fallback"):
            Fallback(model, odd)  # type: ignore[arg-type]
    for name in ("falls", "on_fallback"):
        with pytest.raises(ValidationError, match=f"{name}=3 cannot be called"):
            Fallback(model, **{name: 3})  # type: ignore[arg-type]


async def test_an_open_circuit_falls_over_at_once() -> None:
    down = scripted("a", DOWN)
    model = Fallback(Breaker(down, threshold=1, clock=VirtualClock()), ScriptedModel("ok"))
    assert [(await model.generate(ask())).text for _ in range(3)] == ["ok"] * 3
    assert down.calls == 1


# ---------------------------------------------------------------- watched
class Talks(ScriptedModel):
    """Says a piece, then does what its script says."""

    async def generate_streaming(
        self, request: object, on_text: Callable[[str], None]
    ) -> ModelReply:
        on_text("hello")
        return await self.generate(ask())


async def test_what_one_model_said_the_next_does_not_say_again() -> None:
    heard: list[str] = []
    model = Fallback(Talks([DOWN], name="a"), Talks(["hello world"], name="b"))
    assert isinstance(model, StreamingModel)
    await run_of().ask(model, ask(), role="worker", node=NODE, on_text=heard.append)
    assert heard == ["hello", " world"]


# ---------------------------------------------------------------- what it costs
def run_of(caps: Caps | None = None, *, journal: Journal | None = None) -> Calls:
    clock = VirtualClock()
    return Calls(
        allowance=CapsAllowance(caps or Caps(), clock),
        emit=lambda _: None,
        clock=clock,
        retry=RetryPolicy(attempts=1),
        prices=PriceTable({"a": CHEAP, "b": DEAR}),
        journal=journal,
    )


def spent(calls: Calls) -> tuple[int, Decimal]:
    allowance = calls._allowance
    assert isinstance(allowance, CapsAllowance)
    assert allowance._held_tokens == 0
    return allowance._tokens, allowance._usd


PROMPT = 10  # tokens of the request, as they are counted here


async def test_an_answer_costs_what_its_model_costs() -> None:
    calls = run_of()
    model = Fallback(scripted("a", DOWN), scripted("b", said(tokens=10)))
    answer = await calls.ask(model, ask(), role="worker", node=NODE)
    assert answer.cost == Decimal("0.09")
    assert spent(calls) == (10, Decimal("0.09"))


async def test_a_try_that_may_have_been_billed_is_charged_at_its_worst() -> None:
    calls = run_of()
    model = Fallback(scripted("a", RESET), scripted("b", said(tokens=10)))
    answer = await calls.ask(model, ask(), role="worker", node=NODE)
    assert (answer.cost, answer.attempts) == (Decimal("0.09"), 2)
    assert spent(calls) == (10 + PROMPT + 16, Decimal("0.09") + Decimal("0.026"))


async def test_room_is_reserved_for_all_of_them() -> None:
    model = Fallback(scripted("a", RESET), scripted("b", said()))
    most = Decimal("0.001") * 26 + Decimal("0.009") * 26
    with pytest.raises(Exception, match="usd"):
        await run_of(Caps(usd=most - Decimal("0.001"))).ask(model, ask(), role="worker", node=NODE)
    await run_of(Caps(usd=most)).ask(model, ask(), role="worker", node=NODE)


async def test_an_answer_in_place_of_another_is_filed_as_that_of_the_one_asked(
    tmp_path: Path,
) -> None:
    def models() -> Model:
        return Fallback(scripted("a", DOWN), scripted("b", said()))

    async with opened(tmp_path) as journal:
        first = await run_of(journal=journal).ask(models(), ask(), role="worker", node=NODE)
    async with opened(tmp_path) as journal:
        again = await run_of(journal=journal).ask(
            ScriptedModel([], name="a"), ask(), role="worker", node=NODE
        )
    assert again.source == "journal"
    assert (again.reply.answered_by, again.reply.text) == ("scripted:b", "ok")
    assert again.key == first.key == call_key(ScriptedModel(name="a").info, ask(), 0)


async def test_a_replay_repeats_that_all_failed(tmp_path: Path) -> None:
    model = Fallback(scripted("a", AuthError("401")), scripted("b", NoQuota("402")))
    async with opened(tmp_path) as journal:
        with pytest.raises(AllFailed):
            await run_of(journal=journal).ask(model, ask(), role="worker", node=NODE)
    found = Replay(tmp_path).find(call_key(model.info, ask(), 0))
    assert isinstance(found, AllFailed)
    assert [type(error) for error in found.errors] == [AuthError, NoQuota]


def test_titles_tell_servers_apart() -> None:
    vendor = ModelInfo(provider="openai", name="m", origin="https://api.openai.com:443")
    assert (vendor.title, ScriptedModel().info.title) == ("openai:m", "scripted:scripted")


@pytest.mark.case("S27")
async def test_a_server_that_takes_requests_and_says_nothing_is_left_for_another_one() -> None:
    async with (
        FakeServer(lambda _: silent()) as stalled,
        FakeServer(lambda _: Completion(text="here")) as well,
    ):
        first = Breaker(model_at(stalled, bounds=Bounds(headers=0.1)), threshold=2, reset=60)
        both = Fallback(first, model_at(well))
        texts = [(await both.generate(ask(f"{n}?"))).text for n in range(5)]
        await both.aclose()
        assert texts == ["here"] * 5
        assert stalled.requests == 2
