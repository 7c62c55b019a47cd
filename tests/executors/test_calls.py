"""The one pipeline: paid once, bounded always, each outcome an event."""

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.call_keys import call_key
from executors.calls import Answer, Calls
from executors.clock import VirtualClock
from executors.endpoint import RetryPolicy
from executors.engine.local import Done, Result, pull
from executors.errors import (
    AuthError,
    ContextExceeded,
    Halted,
    IdleTimeout,
    ModelError,
    PromptCut,
    RateLimited,
    RetriesExhausted,
    ServerFault,
)
from executors.events import CallFailed, CallFinished, CallStarted, Event, Retried, Warned
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import ContentKey, NodeId
from executors.journal.records import NoJournal
from executors.messages import Message, ModelReply, ModelRequest, ResponseSchema
from executors.models.prices import Price, PriceTable
from executors.models.scripted import ModelScript, ScriptedModel
from executors.tokens import estimate_request
from executors.usage import Usage
from tests.executors.asks import ask

pytestmark = pytest.mark.anyio
NODE = NodeId("root")
NOTHING = (0, 0, Decimal(0))
PRICE = Price(input=Decimal(1_000), output=Decimal(1_000))  # 0.001 USD a token


def reply(tokens: int | None = 10, text: str = "ok") -> ModelReply:
    usage = Usage() if tokens is None else Usage(input=tokens, output=0)
    return ModelReply(text=text, stop="end", usage=usage)


class Bench:
    """A pipeline with everything in view."""

    def __init__(
        self,
        script: ModelScript = "ok",
        *,
        caps: Caps | None = None,
        latency: float = 0.0,
        attempts: int = 5,
        priced: bool = False,
        concurrency: int = 16,
        journal: NoJournal | None = None,
        context_window: int | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.model = ScriptedModel(
            script, latency=latency, clock=self.clock, context_window=context_window
        )
        self.events: list[Event] = []
        self.allowance = CapsAllowance(caps or Caps(), self.clock)
        self.calls = Calls(
            allowance=self.allowance,
            emit=self.events.append,
            clock=self.clock,
            retry=RetryPolicy(attempts=attempts),
            prices=PriceTable({"scripted": PRICE}) if priced else None,
            concurrency=concurrency,
            journal=journal,
        )

    async def ask(self, request: ModelRequest | None = None, *, ordinal: int = 0) -> Answer:
        return await self.calls.ask(
            self.model, request or ask(), role="judge", node=NODE, ordinal=ordinal
        )

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def held(self) -> tuple[int, int, Decimal]:
        it = self.allowance
        return it._held_calls, it._held_tokens, it._held_usd

    def spent(self) -> tuple[int, int, Decimal]:
        it = self.allowance
        return it._calls, it._tokens, it._usd


def reserve_of(request: ModelRequest) -> int:
    return estimate_request(request) + request.max_tokens


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
        def find(self, key: ContentKey) -> ModelReply | None:
            return reply(text="from the journal")

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


async def test_a_call_that_was_never_billed_gives_its_reservation_back() -> None:
    bench = Bench(lambda _: RateLimited("429"), attempts=3)
    with pytest.raises(RetriesExhausted):
        await bench.ask()
    assert bench.spent() == NOTHING
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


async def test_a_last_try_that_may_have_been_billed_is_charged() -> None:
    bench = Bench(lambda _: IdleTimeout("idle"), attempts=2)
    with pytest.raises(RetriesExhausted):
        await bench.ask()
    assert bench.spent() == (1, 2 * reserve_of(ask()), Decimal(0))
    (failed,) = [event for event in bench.events if isinstance(event, CallFailed)]
    assert (failed.possibly_paid, failed.attempts) == (True, 2)


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


# ---------------------------------------------------------------- bounds


@pytest.mark.case("K8-14")
async def test_a_bound_is_checked_at_each_call_and_not_between_batches() -> None:
    bench = Bench(caps=Caps(calls=3), concurrency=50)
    halts = 0

    async def one(n: int) -> None:
        nonlocal halts
        try:
            await bench.ask(ask(f"item {n}"))
        except Halted:
            halts += 1

    async with anyio.create_task_group() as group:
        for n in range(50):
            group.start_soon(one, n)
    assert (bench.model.calls, halts) == (3, 47)


async def test_a_call_waits_for_room_while_calls_in_flight_may_still_make_some() -> None:
    bound = reserve_of(ask("item 0"))
    bench = Bench(lambda _: reply(1), caps=Caps(tokens=bound + 5), latency=1.0)
    async with anyio.create_task_group() as group:
        for n in range(4):
            group.start_soon(bench.ask, ask(f"item {n}"))
    assert (bench.model.calls, bench.model.peak) == (4, 1)


@pytest.mark.case("K8-16")
async def test_what_is_in_flight_at_a_halt_ends_and_is_settled() -> None:
    bench = Bench(lambda _: reply(5), caps=Caps(calls=4), latency=1.0)
    results: list[Result[int, Answer]] = []

    async def one(n: int) -> Answer:
        return await bench.ask(ask(f"item {n}"))

    with pytest.raises(Halted, match="the calls bound"):
        await pull(range(1_000), one, cap=6, settle=results.append)
    assert sum(isinstance(result, Done) for result in results) == 4
    assert bench.spent() == (4, 20, Decimal(0))
    assert bench.held() == NOTHING


async def test_the_money_of_a_priced_model_is_reserved_at_its_worst() -> None:
    worst = Decimal(reserve_of(ask("item 0"))) / 1_000
    bench = Bench(lambda _: reply(1), caps=Caps(usd=worst * 2), priced=True, latency=1.0)
    async with anyio.create_task_group() as group:
        for n in range(6):
            group.start_soon(bench.ask, ask(f"item {n}"))
    assert bench.model.peak == 2
    assert bench.spent()[2] == Decimal("0.006")


async def test_a_call_that_used_more_than_reserved_is_told_as_an_overrun() -> None:
    bench = Bench(lambda _: reply(10_000))
    await bench.ask()
    assert [event.code for event in bench.events if isinstance(event, Warned)] == ["overrun"]


@pytest.mark.case("K2-8")
async def test_models_of_one_server_and_key_share_an_endpoint_and_their_own_limit_holds() -> None:
    bench = Bench()
    narrow = ScriptedModel(name="narrow", max_concurrency=1)
    assert bench.calls.endpoint(bench.model) is bench.calls.endpoint(ScriptedModel())
    assert bench.calls.endpoint(narrow) is not bench.calls.endpoint(bench.model)
    assert bench.calls.endpoint(narrow)._slots.width == 1


# ---------------------------------------------------------------- windows


@pytest.mark.case("K12-1", "K12-11")
async def test_prompt_and_reserve_have_to_fit_the_window_together() -> None:
    words = "word " * 5_000
    bench = Bench(context_window=8_192)
    with pytest.raises(ContextExceeded, match="window of 8,192 tokens") as caught:
        await bench.ask(ask(words, max_tokens=4_096))
    assert (bench.model.calls, caught.value.attempts) == (0, 0)
    assert bench.kinds() == ["call_failed"]
    assert bench.held() == NOTHING
    await bench.ask(ask("word " * 3_000, max_tokens=4_096))


@pytest.mark.case("K12-11")
async def test_with_an_exact_counter_the_window_is_exact() -> None:
    bench = Bench(context_window=100)
    exact = Calls(
        allowance=bench.allowance,
        emit=bench.events.append,
        clock=bench.clock,
        count_tokens=lambda text: len(text) - 8,  # the overhead of a message is added to it
    )

    async def one(letters: int) -> Answer:
        request = ask("x" * letters, max_tokens=40)
        return await exact.ask(bench.model, request, role="judge", node=NODE)

    assert (await one(60)).reply.text == "ok"
    with pytest.raises(ContextExceeded):
        await one(61)


@pytest.mark.case("K12-2", "K12-4", "K12-5")
async def test_a_prompt_that_the_server_cut_without_a_word_is_no_answer() -> None:
    """The count that the server reports is the one after the cut: half of it and two."""
    prompt = "the secret stands in the first line of this text " * 400
    cut = ModelReply(text="42", stop="end", usage=Usage(input=4_000 // 2 + 2, output=1))
    bench = Bench(lambda _: cut)
    with pytest.raises(PromptCut, match="read 2,002 tokens of a prompt that holds"):
        await bench.ask(ask(prompt))
    assert bench.spent()[0] == 1


@pytest.mark.case("K12-5")
async def test_a_prompt_that_was_read_whole_passes() -> None:
    prompt = "the secret stands in the first line of this text " * 400
    whole = ModelReply(text="42", stop="end", usage=Usage(input=3_000, cache_read=1_100, output=1))
    assert (await Bench(lambda _: whole).ask(ask(prompt))).reply.text == "42"


@pytest.mark.case("K12-4")
async def test_a_server_that_refuses_a_long_prompt_says_so_once() -> None:
    bench = Bench(lambda _: ContextExceeded("400: maximum context length is 4096"))
    with pytest.raises(ContextExceeded):
        await bench.ask()
    assert bench.model.calls == 1


# ---------------------------------------------------------------- keys


def test_everything_that_decides_an_answer_is_in_its_key() -> None:
    info = ScriptedModel().info
    base = ask(temperature=0.0)
    other = [
        replace(base, max_tokens=17),
        replace(base, temperature=None),
        replace(base, temperature=0.5),
        replace(base, seed=1),
        replace(base, top_logprobs=1),
        replace(base, stop=("x",)),
        replace(base, schema=ResponseSchema(name="s", schema={"type": "object"})),
        replace(base, messages=(Message(role="system", content="hello"),)),
        replace(base, messages=(*base.messages, Message(role="user", content=""))),
    ]
    keys = {call_key(info, request, 0) for request in [base, *other]}
    keys |= {call_key(info, base, 1), call_key(replace(info, identity="v2"), base, 0)}
    keys |= {call_key(replace(info, origin="https://h:1"), base, 0)}
    assert len(keys) == len(other) + 4


def test_how_an_answer_is_fetched_is_not_in_its_key() -> None:
    info = ScriptedModel().info
    key = call_key(info, ask(), 0)
    assert call_key(info, ask(stream=True), 0) == key
    assert call_key(replace(info, key_fingerprint="abcd", max_concurrency=3), ask(), 0) == key


@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=3), st.lists(st.text(max_size=6), max_size=3)
)
def test_no_two_different_requests_meet_in_one_key(one: list[str], other: list[str]) -> None:
    def key(texts: list[str]) -> ContentKey:
        messages = tuple(Message(role="user", content=text) for text in texts)
        return call_key(ScriptedModel().info, ModelRequest(messages=messages, max_tokens=1), 0)

    assert (key(one) == key(other)) == (one == other)


@pytest.mark.case("K5-1")
def test_a_lone_surrogate_has_a_key() -> None:
    assert call_key(ScriptedModel().info, ask("a\udc9db"), 0)


# ---------------------------------------------------------------- whatever happens


@given(
    st.lists(st.sampled_from(["ok", "cheap", "unknown", "429", "idle", "fatal"]), max_size=60),
    st.integers(1, 8),
    st.integers(0, 3),
    st.integers(0, 10_000),
)
def test_spend_never_passes_a_cap_and_every_start_has_one_end(
    outcomes: list[str], concurrency: int, cancel_after: int, seed: int
) -> None:
    """Any mixture of answers, failures and cancellations, in any order of coming."""

    async def scenario() -> None:
        random, turns = Random(seed), iter(outcomes)
        bound = reserve_of(ask("item 00"))
        caps = Caps(calls=15, tokens=6 * bound, usd=Decimal(6 * bound) / 1_000)
        bench = Bench(
            lambda _: _turn(next(turns, "ok"), bound),
            caps=caps,
            latency=1.0,
            priced=True,
            concurrency=concurrency,
        )

        async def one(n: int) -> None:
            with anyio.CancelScope() as scope:
                if cancel_after and n % 5 == 0:
                    group.start_soon(_cancel_later, bench.clock, scope, random.uniform(0, 3))
                with suppress(ModelError, Halted):
                    await bench.ask(ask(f"item {n % 17:02}"))
                assert_within(bench, caps)

        async with anyio.create_task_group() as group:
            for n in range(25):
                group.start_soon(one, n)
        assert_within(bench, caps)
        assert bench.held() == NOTHING
        starts = [event for event in bench.events if isinstance(event, CallStarted)]
        ends = [
            event
            for event in bench.events
            if (isinstance(event, CallFinished) and event.source == "paid")
            or (isinstance(event, CallFailed) and (event.attempts or event.error == "cancelled"))
        ]
        assert len(starts) == len(ends)

    anyio.run(scenario)


def assert_within(bench: Bench, caps: Caps) -> None:
    calls, tokens, usd = bench.spent()
    assert calls <= caps.calls
    assert tokens <= caps.tokens
    assert usd <= caps.usd


def _turn(outcome: str, bound: int) -> ModelReply | ModelError:
    match outcome:
        case "cheap":
            return reply(1)
        case "unknown":
            return reply(None)
        case "429":
            return RateLimited("429", retry_after=1.0)
        case "idle":
            return IdleTimeout("idle")
        case "fatal":
            return ServerFault("500")
        case _:
            return reply(bound)


async def _cancel_later(clock: VirtualClock, scope: anyio.CancelScope, seconds: float) -> None:
    await clock.sleep(seconds)
    scope.cancel()
