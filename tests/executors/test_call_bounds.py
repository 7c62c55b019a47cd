"""The one pipeline: no bound is passed, whatever happens in whatever order."""

from contextlib import suppress
from decimal import Decimal
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.calls.calls import Answer, Calls
from executors.clock import VirtualClock
from executors.engine.local import Done, Result, pull
from executors.errors import (
    ContextExceeded,
    Halted,
    IdleTimeout,
    ModelError,
    PromptCut,
    RateLimited,
    ServerFault,
)
from executors.events import CallFailed, CallFinished, CallStarted, Warned
from executors.gate.allowance import Caps
from executors.ids import ContentKey
from executors.journal.records import NoJournal, Paid
from executors.messages import ModelReply
from executors.models.fakes.scripted import ScriptedModel
from executors.usage import Usage
from tests.executors.asks import ask
from tests.executors.benches import NODE, NOTHING, Bench, reply, reserve_of

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- bounds
@pytest.mark.case("K8-14", "K9-11")
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


async def test_a_call_that_cost_nothing_makes_room_for_one_that_waits() -> None:
    bound = reserve_of(ask("item 0"))
    turns: list[ModelReply | ModelError] = [RateLimited("429"), reply(1)]
    bench = Bench(turns, caps=Caps(tokens=bound), latency=1.0, attempts=1)

    async def refused() -> None:
        with pytest.raises(RateLimited):
            await bench.ask(ask("item 0"))

    async with anyio.create_task_group() as group:
        group.start_soon(refused)
        await anyio.lowlevel.checkpoint()
        group.start_soon(bench.ask, ask("item 1"))
    assert bench.spent()[:2] == (2, 1)  # the refused one was a call, and cost nothing


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
    words = "to " * 5_000  # half of the estimate would fit
    bench = Bench(context_window=8_192)
    with pytest.raises(ContextExceeded, match="window of 8,192 tokens") as caught:
        await bench.ask(ask(words, max_tokens=4_096))
    assert (bench.model.calls, caught.value.attempts) == (0, 0)
    assert bench.kinds() == ["call_failed"]
    assert bench.held() == NOTHING
    await bench.ask(ask("to " * 3_000, max_tokens=4_096))


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


async def test_the_next_window_is_asked_while_an_answer_waits_for_the_disk() -> None:
    """One place, and a disk that takes all answers at once: they wait for it together."""

    class SlowDisk(NoJournal):
        def __init__(self) -> None:
            self.waiting = 0
            self.durable = anyio.Event()

        async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
            self.waiting += 1
            if self.waiting == 3:
                self.durable.set()
            await self.durable.wait()

    bench = Bench(journal=SlowDisk(), latency=1.0)
    results: list[Result[int, Answer]] = []

    async def one(n: int) -> Answer:
        return await bench.ask(ask(f"item {n}"))

    await pull(range(3), one, cap=1, settle=results.append, spare=2)
    assert (len(results), bench.model.peak) == (3, 1)
