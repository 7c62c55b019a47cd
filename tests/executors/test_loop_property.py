"""Whatever a model says and tools do, a worker ends in one way and its transcript is whole."""

from collections import Counter

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.errors import AuthError, Halted, ToolBroken
from executors.events import ToolFinished, ToolStarted
from executors.gate.decisions import Allow, Deny, Halt
from executors.loop import Ended, Finished, Guards, Worked
from executors.messages import MalformedCall, ModelReply, StopReason, ToolCall
from executors.models.fakes.scripted import Turn
from executors.tools.base import Arguments, ToolContext
from executors.usage import Usage
from tests.executors.workers import Shop, a_tool, is_sealed

NAMES = ["ok", "side", "bad", "gone", "halting", "broken"]
ARGUMENTS = st.one_of(
    st.sampled_from(["", "5", "null", "[]", "{}", '{"path": "a"}', '{"path": "a/b"}', "{", "NaN"]),
    st.text(max_size=6),
)
CALLS = st.builds(
    ToolCall,
    id=st.sampled_from("abc"),
    name=st.sampled_from(NAMES) | st.text(),
    arguments=ARGUMENTS,
)
STOPS: list[StopReason] = [
    "end", "max_tokens", "refusal", "context_exceeded", "tool_use", "pause", "other",
]  # fmt: skip
REPLIES = st.builds(
    ModelReply,
    text=st.sampled_from(["", " ", "text", "<think>x"]),
    stop=st.sampled_from(STOPS),
    stop_raw=st.sampled_from([None, "odd"]),
    calls=st.lists(CALLS, max_size=4).map(tuple),
    malformed=st.none() | st.builds(MalformedCall, name=st.text(), raw=st.text(), reason=st.text()),
    usage=st.just(Usage(input=1, output=1)),
)
TURNS = st.lists(REPLIES | st.sampled_from([AuthError("no")]), max_size=6)
DECISIONS = st.sampled_from([Allow(), Allow(), Allow(), Deny(rule="r", reason=""), None])


async def fails(arguments: Arguments, context: ToolContext) -> None:
    if context.index % 2:
        await anyio.lowlevel.checkpoint()
    raise ValueError("x")


async def halts(arguments: Arguments, context: ToolContext) -> None:
    await anyio.lowlevel.checkpoint()
    raise Halted(bound="usd", scope="run", limit="1")


async def breaks(arguments: Arguments, context: ToolContext) -> None:
    raise ToolBroken("gone")


def worked(shop: Shop) -> Worked:
    return anyio.run(shop.work)


@settings(max_examples=60)
@given(TURNS, st.lists(DECISIONS, min_size=1, max_size=5))
def test_there_is_one_end_one_result_a_call_and_one_end_a_start(
    turns: list[Turn], decisions: list[Allow | Deny | Halt]
) -> None:
    turns = [*turns, "at last"]
    said = iter(turns)
    asked = iter(decisions * 50)

    async def policy(_: object) -> Allow | Deny | Halt:
        return next(asked)

    shop = Shop(
        lambda _: next(said, "at last"),
        a_tool("ok"),
        a_tool("side", parallel=True, paths=lambda arguments: [str(arguments["path"])]),
        a_tool("bad", fails, parallel=True),
        a_tool("halting", halts, parallel=True),
        a_tool("broken", breaks),
        policy=policy,
        guards=Guards(rounds=8),
    )
    end = worked(shop)
    assert isinstance(end, Finished | Ended)
    assert is_sealed(end.log.messages)
    assert all(turn.content for turn in end.log.messages if turn.role == "tool")
    assert (end.text != "") or isinstance(end, Ended)
    starts = Counter((e.round, e.index) for e in shop.bench.events if isinstance(e, ToolStarted))
    ends = Counter((e.round, e.index) for e in shop.bench.events if isinstance(e, ToolFinished))
    assert starts == ends
    assert set(starts.values()) <= {1}
    assert end.log.rounds <= 8
