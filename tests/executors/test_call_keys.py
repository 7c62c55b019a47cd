"""Call keys: what decides an answer, and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from executors.calls.keys import call_key
from executors.ids import ContentKey
from executors.messages import (
    Message,
    ModelRequest,
    ProviderBlocks,
    ResponseSchema,
    ToolCall,
    ToolSpec,
)
from executors.models.base import ModelInfo
from executors.models.fakes.scripted import ScriptedModel
from tests.executors.asks import ask

pytestmark = pytest.mark.anyio

CALL = ToolCall(id="c", name="f", arguments="{}")
BLOCKS = ProviderBlocks(provider="openai", model="m", data="{}")
TOOL = ToolSpec(name="f", description="", parameters={"type": "object"})


@pytest.mark.case("K14-13")
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


def test_keys_stay_what_they_were_so_that_old_journals_are_found() -> None:
    info = ModelInfo(provider="openai", name="gpt-x", origin="https://api.openai.com:443")
    plain = ModelRequest(
        messages=(Message(role="system", content="Judge."), Message(role="user", content="é")),
        max_tokens=64,
        temperature=0.0,
        seed=7,
        schema=ResponseSchema(name="s", schema={"type": "object"}),
        top_logprobs=2,
        stop=("x",),
    )
    assert call_key(info, plain, 3) == "69767022f952302ea8900fa80ce17e64"
    turn = Message(role="assistant", content="", calls=(CALL,), blocks=BLOCKS)
    result = Message(role="tool", content="found", call_id="c")
    tools = replace(
        plain, tools=(TOOL,), tool_choice="auto", messages=(*plain.messages, turn, result)
    )
    assert call_key(info, tools, 3) == snapshot("e682807265214ff149dcabb3ef731b86")


def test_all_of_a_turn_with_tools_is_in_its_key() -> None:
    info = ScriptedModel().info
    turn = Message(role="assistant", content="", calls=(CALL,), blocks=BLOCKS)
    result = Message(role="tool", content="found", call_id="c")
    turns = [
        (turn, result),
        (turn, replace(result, call_id="d")),
        (turn, replace(result, role="user", call_id=None)),
        (replace(turn, blocks=None), result),
        (replace(turn, blocks=replace(BLOCKS, model="n")), result),
        (replace(turn, calls=()), result),
        (replace(turn, calls=(CALL, CALL)), result),
        (replace(turn, calls=(replace(CALL, id="d"),)), result),
        (replace(turn, calls=(replace(CALL, name="g"),)), result),
        (replace(turn, calls=(replace(CALL, arguments="[]"),)), result),
    ]
    base = replace(ask(), tools=(TOOL,))
    requests = [replace(base, messages=messages) for messages in turns]
    requests += [
        ask(),
        base,
        replace(base, tool_choice="auto"),
        replace(base, tool_choice="none"),
        replace(base, tools=(replace(TOOL, description="else"),)),
        replace(base, tools=(replace(TOOL, parameters={"type": "object", "required": ["x"]}),)),
        replace(base, tools=(TOOL, replace(TOOL, name="g"))),
    ]
    assert len({call_key(info, request, 0) for request in requests}) == len(requests)


@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=3), st.lists(st.text(max_size=6), max_size=3)
)
def test_no_two_different_requests_meet_in_one_key(one: list[str], other: list[str]) -> None:
    def key(texts: list[str]) -> ContentKey:
        messages = tuple(Message(role="user", content=text) for text in texts)
        return call_key(ScriptedModel().info, ModelRequest(messages=messages, max_tokens=1), 0)

    assert (key(one) == key(other)) == (one == other)


def test_a_text_that_looks_like_two_messages_is_one() -> None:
    info = ScriptedModel().info
    two = (Message(role="user", content="a"), Message(role="user", content="b"))
    one = (Message(role="user", content="auserb"),)
    keys = {call_key(info, replace(ask(), messages=messages), 0) for messages in (one, two)}
    assert len(keys) == 2


@pytest.mark.case("K5-1")
def test_a_lone_surrogate_has_a_key() -> None:
    assert call_key(ScriptedModel().info, ask("a\udc9db"), 0)


def test_a_temperature_of_0_and_of_0_point_0_is_one_key() -> None:
    info = ScriptedModel().info
    keys = {call_key(info, replace(ask(), temperature=value), 0) for value in (0, 0.0)}
    assert len(keys) == 1
