"""The one pipeline: paid once, and each way a call can end is charged and told."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import anyio
import pytest

from executors.calls.calls import Answer, Foreseen
from executors.errors import (
    AuthError,
    ContextExceeded,
    Halted,
    IdleTimeout,
    ModelError,
    RateLimited,
    RetriesExhausted,
)
from executors.events import CallFailed, Retried
from executors.gate.allowance import Caps
from executors.ids import ContentKey
from executors.journal.records import Filed, NoJournal
from executors.messages import ModelReply, ModelRequest, ResponseSchema
from executors.tokens import estimate
from tests.executors.asks import ask
from tests.executors.benches import NOTHING, Bench, reply, reserve_of

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- the good case
async def test_an_answer_is_paid_settled_and_told() -> None:
    bench = Bench(lambda _: reply(10), priced=True)
    answer = await bench.ask()
    assert (answer.reply.text, answer.attempts, answer.source) == ("ok", 1, "paid")
    assert answer.cost == Decimal("0.01")
    assert bench.kinds() == ["call_started", "call_finished"]
    assert bench.spent() == (1, 10, Decimal("0.01"))
    assert bench.held() == NOTHING


async def test_requests_that_an_adapter_added_are_attempts() -> None:
    bench = Bench(lambda _: replace(reply(), requests=2))
    assert (await bench.ask()).attempts == 2


async def test_what_a_journal_holds_is_neither_asked_nor_paid() -> None:
    class Remembers(NoJournal):
        def find(self, key: ContentKey) -> Filed:
            return Filed(reply=reply(text="from the journal"), usd=None)

    bench = Bench(journal=Remembers(), caps=Caps(calls=0))
    answer = await bench.ask()
    assert (answer.reply.text, answer.cost, answer.source) == (
        "from the journal",
        Decimal(0),
        "journal",
    )
    assert bench.model.calls == 0
    assert bench.kinds() == ["call_finished"]


# ---------------------------------------------------------------- single flight
async def test_identical_calls_in_flight_are_asked_and_paid_once() -> None:
    bench = Bench(lambda _: reply(10), latency=1.0)
    answers: list[Answer] = []

    async def one() -> None:
        answers.append(await bench.ask())

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(one)
    assert bench.model.calls == 1
    assert sorted(answer.source for answer in answers) == ["paid"] + ["shared"] * 7
    assert sum(answer.attempts for answer in answers) == 1
    assert bench.spent()[:2] == (1, 10)


async def test_another_ordinal_is_another_sample() -> None:
    bench = Bench(latency=1.0)
    async with anyio.create_task_group() as group:
        for ordinal in range(3):
            group.start_soon(partial(bench.ask, ordinal=ordinal))
    assert bench.model.calls == 3


async def test_twins_share_a_failure_but_not_its_exception_object() -> None:
    bench = Bench(lambda _: AuthError("401"), latency=1.0)
    errors: list[ModelError] = []

    async def one() -> None:
        with pytest.raises(AuthError) as caught:
            await bench.ask()
        errors.append(caught.value)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    assert bench.model.calls == 1
    assert len({id(error) for error in errors}) == 4
    failed = [event for event in bench.events if isinstance(event, CallFailed)]
    assert sorted(event.attempts for event in failed) == [0, 0, 0, 1]


async def test_when_the_leader_is_cancelled_one_of_the_others_leads() -> None:
    bench = Bench(lambda _: reply(10), latency=1.0)
    answers: list[Answer] = []

    async def follow() -> None:
        answers.append(await bench.ask())

    async with anyio.create_task_group() as group:
        leader = anyio.CancelScope()

        async def lead() -> None:
            with leader:
                await bench.ask()

        group.start_soon(lead)
        await anyio.lowlevel.checkpoint()
        for _ in range(3):
            group.start_soon(follow)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        leader.cancel()
    assert bench.model.calls == 2
    assert sorted(answer.source for answer in answers) == ["paid", "shared", "shared"]
    assert bench.held() == NOTHING


async def test_a_failure_is_not_remembered_beyond_its_flight() -> None:
    bench = Bench([AuthError("401"), "ok"])
    with pytest.raises(AuthError):
        await bench.ask()
    assert (await bench.ask()).reply.text == "ok"


# ---------------------------------------------------------------- failures and what they cost
async def test_a_call_that_was_never_billed_costs_nothing_and_counts_as_a_call() -> None:
    bench = Bench(lambda _: RateLimited("429"), attempts=3)
    with pytest.raises(RetriesExhausted):
        await bench.ask()
    assert bench.spent() == (1, 0, Decimal(0))
    assert bench.held() == NOTHING
    assert bench.kinds() == ["call_started", "retried", "retried", "call_failed"]


@pytest.mark.case("K8-8", "K2-5")
async def test_a_try_that_may_have_been_billed_stays_charged_beside_the_answer() -> None:
    bench = Bench([IdleTimeout("idle"), reply(10)])
    answer = await bench.ask()
    assert answer.attempts == 2
    assert bench.spent() == (1, reserve_of(ask()) + 10, Decimal(0))
    (retried,) = [event for event in bench.events if isinstance(event, Retried)]
    assert (retried.possibly_paid, retried.error) == (True, "idle-timeout")
    assert (retried.worst_tokens, retried.worst_usd) == (reserve_of(ask()), Decimal(0))


async def test_a_last_try_that_may_have_been_billed_is_charged() -> None:
    bench = Bench(lambda _: IdleTimeout("idle"), attempts=2)
    with pytest.raises(RetriesExhausted):
        await bench.ask()
    assert bench.spent() == (1, 2 * reserve_of(ask()), Decimal(0))
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert (failed.possibly_paid, failed.attempts) == (True, 2)
    assert failed.worst_tokens == reserve_of(ask())


async def test_tries_that_may_have_been_billed_cannot_pass_the_cap() -> None:
    bound = reserve_of(ask())
    bench = Bench(lambda _: IdleTimeout("idle"), caps=Caps(tokens=2 * bound))
    with pytest.raises(Halted, match="the tokens bound"):
        await bench.ask()
    assert bench.model.calls == 2
    assert bench.spent()[1] == 2 * bound
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert (failed.error, failed.attempts, failed.possibly_paid) == ("halted", 2, False)


async def test_room_for_the_next_try_is_awaited_without_holding_a_slot() -> None:
    """One slot, room for two: the waiter must not block the one whose end makes room."""
    bound = reserve_of(ask())
    turns: dict[str, list[ModelError]] = {
        "first": [IdleTimeout("idle")],
        "second": [RateLimited("429", retry_after=50.0)],
    }

    def script(request: ModelRequest) -> ModelReply | ModelError:
        errors = turns[request.messages[0].content]
        return errors.pop() if errors else reply(1)

    bench = Bench(script, caps=Caps(tokens=2 * bound + 20), concurrency=1)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.ask, ask("second"))
        group.start_soon(bench.ask, ask("first"))
    assert bench.model.calls == 4
    assert bench.held() == NOTHING


@pytest.mark.case("K8-13")
async def test_a_call_cancelled_before_it_left_gives_back_and_one_in_flight_is_charged() -> None:
    bench = Bench(latency=10.0, concurrency=1)
    async with anyio.create_task_group() as group:
        group.start_soon(bench.ask, ask("in flight"))
        group.start_soon(bench.ask, ask("queued"))
        for _ in range(4):
            await anyio.lowlevel.checkpoint()
        assert bench.model.in_progress == 1
        group.cancel_scope.cancel()
    assert bench.spent() == (1, reserve_of(ask("in flight")), Decimal(0))
    assert bench.held() == NOTHING
    failed = [event for event in bench.events if isinstance(event, CallFailed)]
    assert {(event.error, event.possibly_paid) for event in failed} == {
        ("cancelled", True),
        ("cancelled", False),
    }


async def test_a_fault_of_a_model_class_is_charged_told_and_raised() -> None:
    bench = Bench(lambda _: ZeroDivisionError("bug"))
    with pytest.raises(ZeroDivisionError):
        await bench.ask()
    assert bench.held() == NOTHING
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert (failed.error, failed.message) == ("internal", "ZeroDivisionError: bug")


@pytest.mark.case("K15-17")
async def test_an_events_message_holds_no_key() -> None:
    bench = Bench(lambda _: AuthError("bad key sk-abcdefghijklmnopqrst"))
    with pytest.raises(AuthError):
        await bench.ask()
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert failed.message == "bad key [secret]"


# ---------------------------------------------------------------- foreseen
async def test_a_call_is_foreseen_as_it_will_be_made() -> None:
    bench = Bench()
    request = ask(schema=ResponseSchema(name="answers", schema={"type": "object"}))
    foreseen = bench.calls.foresee(bench.model, request, ordinal=3)
    assert bench.model.calls == 0
    assert bench.kinds() == []
    answer = await bench.ask(request, ordinal=3)
    assert foreseen == Foreseen(key=answer.key, prompt=reserve_of(request) - 16, filed=False)


async def test_a_call_that_is_filed_is_foreseen_as_free() -> None:
    class Remembers(NoJournal):
        def find(self, key: ContentKey) -> Filed:
            return Filed(reply=reply(), usd=None)

    bench = Bench(journal=Remembers())
    assert bench.calls.foresee(bench.model, ask()).filed


async def test_a_call_that_would_be_refused_is_refused_when_foreseen() -> None:
    bench = Bench(context_window=32)
    with pytest.raises(ContextExceeded):
        bench.calls.foresee(bench.model, ask("words " * 100))


async def test_a_response_schema_is_reserved_for_too() -> None:
    """Servers that hold a reply to one show it to the model, and bill it."""
    bench = Bench()
    schema = ResponseSchema(name="answers", schema={"type": "object"})
    plain, held = (bench.calls.foresee(bench.model, ask(schema=s)) for s in (None, schema))
    assert held.prompt - plain.prompt == estimate(schema.canonical) > 0
