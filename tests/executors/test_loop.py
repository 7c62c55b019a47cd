"""The worker asks, runs what is called for, and ends in exactly one way."""

from dataclasses import replace
from decimal import Decimal

import pytest

from executors.errors import (
    AuthError,
    ContextExceeded,
    Halted,
    ModelError,
    ToolBroken,
    ValidationError,
)
from executors.ids import NodeId
from executors.journal.records import NoJournal
from executors.loop import Ended, EndedBy, Finished, Guards, Worker, work
from executors.messages import MalformedCall, Message, ModelReply, ProviderBlocks, StopReason
from executors.models.fakes.scripted import Turn
from executors.usage import Usage
from tests.executors.benches import Bench
from tests.executors.workers import Shop, a_tool, call, calls, is_sealed, raising, said

pytestmark = pytest.mark.anyio

MALFORMED = replace(
    said(""),
    stop="tool_use",
    malformed=MalformedCall(name="look", raw="{", reason="it is cut at 1"),
)


async def ended(shop: Shop) -> Ended:
    """Let it work to an end that is no finish; whatever it is, the transcript is sealed."""
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert is_sealed(worked.log.messages)
    return worked


async def finished(shop: Shop) -> Finished:
    worked = await shop.work()
    assert isinstance(worked, Finished), worked
    assert is_sealed(worked.log.messages)
    return worked


# ---------------------------------------------------------------- the good case


@pytest.mark.case("R-185")
@pytest.mark.parametrize(("stop", "raw"), [("end", "stop"), ("end", None), ("other", None)])
async def test_a_clean_or_an_unstated_stop_is_a_finish(stop: StopReason, raw: str | None) -> None:
    shop = Shop([replace(said("four"), stop=stop, stop_raw=raw)])
    worked = await finished(shop)
    assert worked.text == "four"
    assert [turn.role for turn in worked.log.messages] == ["system", "user", "assistant"]


async def test_what_a_tool_gave_is_what_the_model_reads_next() -> None:
    shop = Shop([calls(call("look", {"at": "sky"})), said("blue")], a_tool("look"))
    worked = await finished(shop)
    assert (worked.text, shop.results()) == ("blue", ["look"])
    assert shop.ends() == [("look", "done")]
    assert shop.model.requests[1].messages == worked.log.messages[:-1]


async def test_a_worker_without_a_system_prompt_sends_none() -> None:
    shop = Shop(["ok"])
    worked = await work(replace(shop.worker, system=" "), [Message(role="user", content="go")])
    assert [turn.role for turn in worked.log.messages] == ["user", "assistant"]


async def test_reasoning_that_an_answer_begins_with_is_no_part_of_it() -> None:
    worked = await finished(Shop(["<think>maybe 12</think>\n391"]))
    assert worked.text == "391"


@pytest.mark.case("R-189")
async def test_the_log_adds_up_tokens_in_four_tiers_calls_by_tool_and_cost() -> None:
    tiers = Usage(input=5, cache_read=3, cache_write=2, output=1)
    bench = Bench([replace(calls("look"), usage=tiers), replace(said(), usage=tiers)], priced=True)
    worker = Worker(
        calls=bench.calls,
        model=bench.model,
        node=NodeId("root"),
        depth=0,
        system="",
        tools=[a_tool()],
    )
    log = (await work(worker, [Message(role="user", content="go")])).log
    assert log.usage == Usage(input=10, cache_read=6, cache_write=4, output=2)
    assert (log.rounds, log.tool_calls, log.unmetered, log.unpriced) == (2, {"look": 1}, 0, 0)
    assert log.cost is not None
    assert log.cost > 0


@pytest.mark.case("R-189")
async def test_what_no_server_reported_and_nobody_priced_is_unknown_not_zero() -> None:
    log = (await finished(Shop([ModelReply(text="ok", stop="end")]))).log
    assert (log.usage, log.unmetered, log.cost, log.unpriced) == (Usage(), 1, None, 1)


async def test_a_free_call_costs_nothing_which_is_known() -> None:
    shop = Shop(["ok"], journal=_Remembers())
    assert (await finished(shop)).log.cost == Decimal(0)


class _Remembers(NoJournal):
    def find(self, key: object) -> object:  # type: ignore[override]
        from executors.journal.records import Filed

        return Filed(reply=said("filed"), usd=None)


async def test_the_effective_temperature_is_told_and_whether_ours_was_dropped() -> None:
    kept = await finished(Shop(["ok"], temperature=0.7))
    assert (kept.log.temperature, kept.log.temperature_dropped) == (0.7, False)
    dropped = await finished(Shop([said()], temperature=0.7))
    assert (dropped.log.temperature, dropped.log.temperature_dropped) == (None, True)
    default = await finished(Shop([said()]))
    assert (default.log.temperature, default.log.temperature_dropped) == (None, False)


# ---------------------------------------------------------------- rounds that were cut or refused


@pytest.mark.case("R-184", "K3-1", "K3-2", "K3-5")
@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("max_tokens", "truncated"),
        ("refusal", "refused"),
        ("context_exceeded", "context-exceeded"),
    ],
)
async def test_a_cut_or_refused_round_ends_it_and_its_calls_never_run(
    stop: StopReason, reason: EndedBy
) -> None:
    ran: list[str] = []
    tool = a_tool("write", lambda _, __: ran.append("write"))
    shop = Shop([calls("write", text="half", stop=stop)], tool)
    end = await ended(shop)
    assert (end.reason, end.detail, end.text) == (reason, stop, "half")
    assert ran == []
    assert all(not turn.calls for turn in end.log.messages)
    assert (end.log.rounds, end.log.usage.output) == (1, 2)
    assert shop.model.calls == 1


@pytest.mark.case("K3-7", "K3-8", "K3-10")
@pytest.mark.parametrize(
    "reply",
    [
        said(""),
        said(" \n "),
        replace(said(""), reasoning="maybe 12"),
        said("<think>maybe 12</think>"),
        said("<think>maybe 12, and it never closes"),
    ],
)
async def test_nothing_or_reasoning_alone_is_no_answer(reply: ModelReply) -> None:
    end = await ended(Shop([reply]))
    assert (end.reason, end.text) == ("empty", "")


async def test_a_stop_for_a_reason_unknown_to_us_is_no_finish() -> None:
    reply = replace(said("so far"), stop="other", stop_raw="safety_valve")
    end = await ended(Shop([reply]))
    assert (end.reason, end.detail, end.text) == ("failed", "stop:safety_valve", "so far")


async def test_a_paused_turn_is_kept_with_its_blocks_and_the_model_goes_on() -> None:
    blocks = ProviderBlocks(provider="p", model="m", data="[]")
    shop = Shop([replace(said("wait"), stop="pause", blocks=blocks), said("done")])
    worked = await finished(shop)
    assert worked.text == "done"
    paused = shop.model.requests[1].messages[-1]
    assert (paused.role, paused.content, paused.blocks) == ("assistant", "wait", blocks)


@pytest.mark.case("R-186")
async def test_a_providers_blocks_stay_with_the_turn_that_they_came_with() -> None:
    blocks = ProviderBlocks(provider="p", model="m", data='[{"signature":"x"}]')
    turns = [replace(calls("look"), blocks=blocks), replace(said(), blocks=blocks), said()]
    worked = await finished(Shop(turns, a_tool()))
    kept = [turn.blocks for turn in worked.log.messages if turn.role == "assistant"]
    assert kept == [blocks, blocks]
    bare = await finished(Shop([said()]))
    assert bare.log.messages[-1].blocks is None


# ---------------------------------------------------------------- calls that cannot be read


@pytest.mark.case("R-196", "K4-25")
async def test_a_malformed_call_is_told_to_the_model_and_never_replayed() -> None:
    shop = Shop([MALFORMED, calls("look"), said("done")], a_tool())
    worked = await finished(shop)
    assert worked.log.malformed == (MALFORMED.malformed,)
    told = shop.model.requests[1].messages[-1]
    assert told.role == "user"
    assert "it is cut at 1" in told.content
    assert "Nothing" in told.content
    assert all(turn.calls == () for turn in shop.model.requests[1].messages)


@pytest.mark.case("K10-2")
async def test_three_malformed_rounds_in_a_row_end_it() -> None:
    shop = Shop(lambda _: MALFORMED)
    end = await ended(shop)
    assert (end.reason, end.detail, shop.model.calls) == ("malformed", "look", 3)
    assert len(end.log.malformed) == 3


async def test_a_readable_round_between_malformed_ones_begins_anew() -> None:
    turns = [MALFORMED, MALFORMED, calls("look"), MALFORMED, MALFORMED, said("done")]
    assert (await finished(Shop(turns, a_tool()))).text == "done"


async def test_a_turn_that_calls_for_a_tool_without_naming_one_is_malformed() -> None:
    end = await ended(Shop(lambda _: replace(said("I will look"), stop="tool_use")))
    assert (end.reason, end.text) == ("malformed", "I will look")


# ---------------------------------------------------------------- bounds and faults


@pytest.mark.case("K10-4")
async def test_a_model_that_never_ends_is_ended_by_the_bound_on_rounds() -> None:
    """Its calls differ each time, so that it is not stuck."""
    turns = iter(range(1_000))

    def next_turn(_: object) -> Turn:
        return calls(call("look", {"n": next(turns)}), text=f"step {next(turns)}")

    shop = Shop(next_turn, a_tool(), guards=Guards(rounds=7))
    end = await ended(shop)
    assert (end.reason, end.detail, shop.model.calls) == ("rounds", "7", 7)
    assert end.text == "step 13"


@pytest.mark.case("R-175")
@pytest.mark.parametrize("error", [AuthError("no"), ContextExceeded("too long")])
async def test_a_model_that_fails_ends_it_and_what_was_said_before_is_kept(
    error: ModelError,
) -> None:
    shop = Shop([calls("look", text="so far"), calls("look"), error], a_tool())
    end = await ended(shop)
    reason = "context-exceeded" if isinstance(error, ContextExceeded) else "failed"
    assert (end.reason, end.text) == (reason, "so far")
    assert isinstance(end.error, type(error))
    assert [turn.content for turn in end.log.messages if turn.role == "tool"] == ["look"] * 2


@pytest.mark.case("K10-10")
async def test_a_prompt_that_outgrew_the_window_empties_no_transcript() -> None:
    shop = Shop([calls("look")], a_tool("look", lambda _, __: "word " * 3_000))
    shop.model._info = replace(shop.model.info, context_window=6_000)
    end = await ended(shop)
    assert end.reason == "context-exceeded"
    assert [turn.role for turn in end.log.messages] == ["system", "user", "assistant", "tool"]


@pytest.mark.case("R-180")
async def test_a_halt_from_a_tool_ends_it_once_and_seals_what_hangs() -> None:
    ran: list[str] = []

    async def halting(*_: object) -> None:
        ran.append("halting")
        raise Halted(bound="usd", scope="run", limit="1")

    shop = Shop(
        [calls("halting", "look", "look", text="so far")], a_tool("halting", halting), a_tool()
    )
    end = await ended(shop)
    assert (end.reason, end.detail, end.text, ran) == ("halted", "usd", "so far", ["halting"])
    assert isinstance(end.error, Halted)
    assert shop.results() == ["[halted:usd]"] * 3
    assert shop.ends() == [("halting", "halted")]


async def test_a_halt_from_the_calls_ends_it() -> None:
    end = await ended(Shop([Halted(bound="calls", scope="run", limit="0")]))
    assert (end.reason, end.detail, end.log.rounds) == ("halted", "calls", 0)


@pytest.mark.case("K10-11")
async def test_a_tool_that_is_gone_ends_it_with_its_name() -> None:
    shop = Shop([calls("python")] * 9, a_tool("python", raising(ToolBroken("exit code -9"))))
    end = await ended(shop)
    assert (end.reason, end.detail, shop.model.calls) == ("broken-tool", "python", 1)
    assert isinstance(end.error, ToolBroken)


# ---------------------------------------------------------------- what a worker is made of


@pytest.mark.case("R-181")
@pytest.mark.parametrize("name", ["denials", "identical_errors", "identical_calls", "malformed"])
@pytest.mark.parametrize("value", [-1, "x", float("nan"), None, True])
def test_a_guard_that_bounds_nothing_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        Guards(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("rounds", 0), ("rounds", 1.5), ("rounds", True), ("result_characters", 9)]
)
def test_rounds_and_results_are_always_bounded(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        Guards(**{name: value})  # type: ignore[arg-type]


@pytest.mark.case("R-187")
def test_bad_tools_are_refused_at_wiring() -> None:
    with pytest.raises(ValidationError, match="no tool"):
        Shop([], "look")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="two tools are named 'look'"):
        Shop([], a_tool(), a_tool())


@pytest.mark.case("R-187")
async def test_a_tool_with_a_broken_schema_is_refused_before_anything_is_spent() -> None:
    shop = Shop(["ok"], a_tool(parameters={"type": "object", "properties": {"n": {"type": "int"}}}))
    with pytest.raises(ValidationError, match="no JSON Schema"):
        await shop.work()
    assert shop.model.calls == 0


@pytest.mark.case("R-172")
def test_a_worker_without_room_for_an_answer_or_with_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="model"):
        Worker(calls=Bench().calls, node=NodeId("root"), depth=0, system="")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="max_rounds"):
        Guards(max_rounds=5)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="max_tokens=0"):
        Shop([], max_tokens=0)
    with pytest.raises(ValidationError, match="policy='allow'"):
        Shop([], policy="allow")  # type: ignore[arg-type]
