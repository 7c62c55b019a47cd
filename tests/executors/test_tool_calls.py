"""Tool calls over chat completions: what is sent, and what is made of what comes."""

import json
from collections.abc import Mapping, Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from executors.errors import RequestRejected, ValidationError
from executors.messages import (
    MalformedCall,
    Message,
    ModelReply,
    ModelRequest,
    ProviderBlocks,
    ToolCall,
    ToolSpec,
)
from executors.models.fakes.acts import Act, Completion, FakeCall, Reply, Steps, drip, sse
from executors.models.fakes.received import Received
from executors.models.fakes.scripted import calls_reply
from executors.models.fakes.server import FakeServer, Script
from executors.models.openai.model import OpenAIModel
from executors.models.tool_calls import RawCall, read_calls
from executors.tokens import estimate_request
from tests.executors.asks import ask, error, model_at

pytestmark = pytest.mark.anyio

SEARCH = ToolSpec(
    name="search",
    description="Looks for words.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
)
STOP = ToolSpec(name="stop", description="", parameters={"type": "object"})
TURN = (
    Message(role="user", content="hello"),
    Message(
        role="assistant",
        content="",
        calls=(ToolCall(id="c1", name="search", arguments='{"q":"x"}'),),
        blocks=ProviderBlocks(
            provider="openai",
            model="gpt-x",
            data=json.dumps(
                {"reasoning_content": "hm", "tool_calls": [{"google": {"thought_signature": "s"}}]}
            ),
        ),
    ),
    Message(role="tool", content="found", call_id="c1"),
)


def asking(
    *messages: Message,
    tools: Sequence[ToolSpec] = (SEARCH,),
    choice: str | None = None,
    stream: bool = False,
) -> ModelRequest:
    return ModelRequest(
        messages=messages or (Message(role="user", content="hello"),),
        max_tokens=16,
        tools=tuple(tools),
        tool_choice=choice,
        stream=stream,
    )


async def told(script: Script, request: ModelRequest) -> tuple[ModelReply, Received]:
    """Return the reply and the request as the server got it."""
    async with FakeServer(script) as server:
        model = model_at(server)
        try:
            return await model.generate(request), server.received[-1]
        finally:
            await model.aclose()


async def told_of(act: Completion, *, stream: bool = False) -> ModelReply:
    return (await told(act, asking(stream=stream)))[0]


def arguments_of(reply: ModelReply) -> list[str]:
    return [call.arguments for call in reply.calls]


# ---------------------------------------------------------------- what is sent
async def test_tools_are_sent_as_functions() -> None:
    _, received = await told(Completion(), asking())
    assert received.json == snapshot(
        {
            "model": "gpt-x",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 16,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "search",
                        "description": "Looks for words.",
                        "parameters": {
                            "type": "object",
                            "properties": {"q": {"type": "string"}},
                            "required": ["q"],
                        },
                    },
                }
            ],
        }
    )


@pytest.mark.case("R-197")
@pytest.mark.parametrize(
    ("choice", "shape"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ("search", {"type": "function", "function": {"name": "search"}}),
    ],
)
async def test_each_choice_of_a_tool_has_its_shape(choice: str, shape: object) -> None:
    _, received = await told(Completion(), asking(choice=choice))
    assert received.json["tool_choice"] == shape


@pytest.mark.case("R-197")
@pytest.mark.parametrize("tools", [(SEARCH,), ()], ids=["tools", "none"])
@pytest.mark.parametrize("choice", ["any", "serach", ""])
async def test_a_choice_that_is_none_is_refused_also_without_tools(
    tools: Sequence[ToolSpec], choice: str
) -> None:
    async with FakeServer() as server:
        model = model_at(server)
        with pytest.raises(ValidationError, match=f"tool_choice is {choice!r}"):
            await model.generate(asking(tools=tools, choice=choice))
        assert server.requests == 0
        await model.aclose()


async def test_a_choice_without_tools_is_not_sent() -> None:
    _, received = await told(Completion(), asking(tools=(), choice="auto"))
    assert received.json.keys() == {"model", "messages", "max_tokens"}


async def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValidationError, match="two tools are called 'search'"):
        await told(Completion(), asking(tools=(SEARCH, STOP, SEARCH)))


@pytest.mark.case("R-197")
async def test_a_turn_with_calls_goes_back_as_it_came() -> None:
    _, received = await told(Completion(), asking(*TURN))
    assert received.json["messages"] == snapshot(
        [
            {"role": "user", "content": "hello"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "search", "arguments": '{"q":"x"}'},
                        "extra_content": {"google": {"thought_signature": "s"}},
                    }
                ],
                "reasoning_content": "hm",
            },
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ]
    )


@pytest.mark.parametrize(("provider", "model"), [("openai", "gpt-y"), ("anthropic", "gpt-x")])
async def test_what_one_model_signed_another_never_gets(provider: str, model: str) -> None:
    blocks = ProviderBlocks(provider=provider, model=model, data='{"reasoning_content":"hm"}')
    turn = Message(role="assistant", content="I look.", calls=TURN[1].calls, blocks=blocks)
    _, received = await told(Completion(), asking(TURN[0], turn, TURN[2]))
    assert received.request.messages[1] == Message(
        role="assistant", content="I look.", calls=TURN[1].calls
    )


async def test_a_server_gets_the_request_that_was_made() -> None:
    request = asking(*TURN, tools=(SEARCH, STOP), choice="search")
    reply, received = await told(Completion(), request)
    assert received.request == request
    assert reply.usage.prompt == estimate_request(request)


# ---------------------------------------------------------------- what comes
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("finish", ["tool_calls", "function_call", "stop"])
@pytest.mark.case("R-194")
async def test_calls_come_whole_and_by_deltas_whatever_word_ends_them(
    stream: bool, finish: str
) -> None:
    act = Completion(
        text="I look.",
        calls=[FakeCall("search", '{ "q": "é", "a": 1.0 }', "c1"), FakeCall("stop", "", "c2")],
        finish=finish,
        reasoning="hm",
    )
    reply = await told_of(act, stream=stream)
    assert reply.calls == (
        ToolCall(id="c1", name="search", arguments='{"a":1.0,"q":"é"}'),
        ToolCall(id="c2", name="stop", arguments="{}"),
    )
    assert (reply.stop, reply.stop_raw, reply.text) == ("tool_use", finish, "I look.")
    assert reply.blocks == ProviderBlocks(
        provider="openai", model="gpt-x", data='{"reasoning_content": "hm"}'
    )
    assert (reply.reasoning, reply.malformed) == ("hm", None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("finish", "stop"),
    [("length", "max_tokens"), ("content_filter", "refusal"), ("abort", "other"), (None, "other")],
)
@pytest.mark.case("R-194", "K3-1", "K3-2")
async def test_calls_of_a_turn_that_was_cut_or_refused_are_dropped(
    finish: str | None, stop: str, stream: bool
) -> None:
    act = Completion(
        text=None, calls=[FakeCall("write", '{"path":"a","content":"12', "c1")], finish=finish
    )
    reply = await told_of(act, stream=stream)
    assert (reply.stop, reply.calls, reply.malformed, reply.blocks) == (stop, (), None, None)


@pytest.mark.case("K4-10", "K4-13", "K4-14", "K4-19")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", "{}"),
        ("  ", "{}"),
        (None, "{}"),
        ({"q": "x", "a": [1]}, '{"a":[1],"q":"x"}'),
        ('{"q":"x"}', '{"q":"x"}'),
        ('"5"', '"5"'),
        ("5", "5"),
        ('{"_": {"q": "x"}}', '{"_":{"q":"x"}}'),
        ('{"q": "\\ud83d"}', '{"q":"\\ud83d"}'),
    ],
)
async def test_arguments_have_one_shape_inside_whatever_the_server_wrote(
    written: object, read: str, stream: bool
) -> None:
    reply = await told_of(Completion(calls=[FakeCall("search", written, "c")]), stream=stream)
    assert arguments_of(reply) == [read]
    assert reply.stop == "tool_use"


@pytest.mark.case("R-196", "K4-7", "K4-8", "K4-20", "K4-22")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('{"q": ', "Expecting value, at character 6"),
        ('{"n": NaN}', "NaN is not JSON"),
        ('{"n": -Infinity}', "-Infinity is not JSON"),
        ('{"n": 1e999}', "out of range"),
        ('{"q": 1, "q": 2}', "the key 'q' stands twice"),
        ("{'q': True}", "property name"),
        ('{"n": 1_000.5}', "delimiter"),
        ('{"re": "\\d+"}', "escape"),
        ('```json\n{"q":"x"}\n```', "Expecting value"),
        ('{"q":"x"} and so on', "Extra data"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested more than 100"),
        ("[" * 100_000, "nested"),
    ],
)
async def test_one_call_that_cannot_be_read_voids_its_round_and_nothing_is_repaired(
    written: str, reason: str, stream: bool
) -> None:
    act = Completion(
        text="I look.",
        calls=[FakeCall("stop", "{}", "c1"), FakeCall("search", written, "c2")],
        usage={"prompt_tokens": 3, "completion_tokens": 5},
    )
    reply = await told_of(act, stream=stream)
    assert reply.malformed is not None
    assert (reply.malformed.name, reply.malformed.raw) == ("search", written[:2_000])
    assert reason in reply.malformed.reason
    assert (reply.calls, reply.stop, reply.text, reply.blocks) == ((), "tool_use", "I look.", None)
    assert (reply.usage.input, reply.usage.output, reply.model) == (3, 5, "fake")


@pytest.mark.case("K3-4")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("written", "stop"), [(15, "tool_use"), (16, "max_tokens"), (17, "max_tokens")]
)
async def test_arguments_that_end_at_the_bound_of_the_output_were_cut_there(
    written: int, stop: str, stream: bool
) -> None:
    act = Completion(
        calls=[FakeCall("search", '{"q": "un', "c1")],
        usage={"prompt_tokens": 3, "completion_tokens": written},
    )
    reply = await told_of(act, stream=stream)
    assert (reply.stop, reply.stop_raw, reply.calls) == (stop, "tool_calls", ())
    assert (reply.malformed is None) is (stop == "max_tokens")


async def test_a_whole_call_at_the_bound_is_run() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 16}
    reply = await told_of(Completion(calls=[FakeCall("stop", "{}", "c1")], usage=usage))
    assert (reply.stop, len(reply.calls)) == ("tool_use", 1)


@pytest.mark.parametrize("name", [None, "", "two words", "x" * 129, "zwei\nzeilen"])
async def test_a_call_of_nothing_that_can_be_a_tool_is_malformed(name: str | None) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    reply = await told_of(Completion(calls=[FakeCall(name, "{}", "c1")], usage=usage))
    assert reply.malformed is not None
    assert "no name of a tool" in reply.malformed.reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("given_", "made"),
    [
        (["a", "b"], ["a", "b"]),
        ([None, None], ["call-0", "call-1"]),
        (["a", "a"], ["a", "call-1"]),
        (["", "\u00e9"], ["call-0", "call-1"]),
        (["call-1", None], ["call-1", "call-1-"]),
    ],
)
async def test_missing_and_double_ids_are_made(
    given_: list[str | None], made: list[str], stream: bool
) -> None:
    calls = [FakeCall("stop", "{}", id_) for id_ in given_]
    reply = await told_of(Completion(calls=calls), stream=stream)
    assert [call.id for call in reply.calls] == made


@given(
    st.lists(st.one_of(st.none(), st.integers(), st.sampled_from(["", "a", "call-0", "call-1-"])))
)
def test_ids_of_a_round_are_unique_and_the_same_each_time(ids: list[object]) -> None:
    raw = [RawCall(id=id_, name="f", arguments="") for id_ in ids]
    calls = read_calls(raw)
    assert not isinstance(calls, MalformedCall)
    assert len({call.id for call in calls}) == len(ids)
    assert read_calls(raw) == calls


Json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.one_of(Json, st.text()))
def test_whatever_stands_for_arguments_is_read_or_refused(value: object) -> None:
    calls = read_calls([RawCall(id="c", name="f", arguments=value)])
    if isinstance(calls, MalformedCall):
        assert calls.reason
    else:
        again = read_calls([RawCall(id="c", name="f", arguments=calls[0].arguments)])
        assert again == calls
        calls[0].arguments.encode()


# ---------------------------------------------------------------- how servers stream
def deltas(*parts: Mapping[str, object], finish: str = "tool_calls") -> Steps:
    """Return a stream of deltas of calls."""
    events = [{"choices": [{"delta": {"tool_calls": [part]}}]} for part in parts]
    end = {"choices": [{"finish_reason": finish}]}
    return drip(sse(*events, end) + b"data: [DONE]\n\n", 0.0, size=1_000)


def piece(arguments: object = None, name: str | None = None, **fields: object) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    return {"function": {k: v for k, v in function.items() if v is not None}, **fields}


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        (
            [
                piece("", "f", index=0, id="a"),
                piece("{}", index=0),
                piece("{}", "g", index=1, id="b"),
            ],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        (
            [
                piece('{"a"', "f", index=0, id="a"),
                piece("", "g", index=1, id="b"),
                piece(":1}", index=0),
            ],
            [("a", "f", '{"a":1}'), ("b", "g", "{}")],
        ),
        (
            [piece("{", "f", index=0, id="a"), piece("}", "f", index=0, id="a")],
            [("a", "f", "{}")],
        ),
        ([piece("{", "f", id="a"), piece("}")], [("a", "f", "{}")]),
        (
            [piece("{}", "f", id="a"), piece("{}", "g", id="b")],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        (
            [piece("{}", "f", index=0, id="a"), piece("{}", "f", index=0, id="b")],
            [("a", "f", "{}"), ("b", "f", "{}")],
        ),
        ([piece({"q": 1}, "f", index=0, id="a")], [("a", "f", '{"q":1}')]),
        ([piece("", "se", index=0, id="a"), piece("{}", "arch", index=0)], [("a", "search", "{}")]),
        ([piece("{}", "f", index=3)], [("call-0", "f", "{}")]),
    ],
    ids=[
        "one after another",
        "interleaved",
        "id and name repeated",
        "no index",
        "no index, two",
        "one index, two whole",
        "an object",
        "name in pieces",
        "no id, odd index",
    ],
)
async def test_deltas_add_up_however_a_server_words_them(
    parts: list[dict[str, object]], calls: list[tuple[str, str, str]]
) -> None:
    reply, _ = await told(deltas(*parts), asking(stream=True))
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == calls


async def test_the_older_form_of_a_call_is_read_too() -> None:
    message = {"content": None, "function_call": {"name": "f", "arguments": "{}"}}
    document = {"choices": [{"message": message, "finish_reason": "function_call"}]}
    reply, _ = await told(Reply(body=orjson.dumps(document)), asking())
    assert reply.calls == (ToolCall(id="call-0", name="f", arguments="{}"),)


async def test_signed_thoughts_come_back_by_deltas_as_by_the_whole() -> None:
    extra = {"google": {"thought_signature": "s"}}
    detail = {"type": "reasoning.encrypted", "data": "…"}
    call = {**piece("{}", "f", index=0, id="a"), "extra_content": extra}
    message = {"content": "", "tool_calls": [call], "reasoning_details": [detail]}
    whole = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    begun, ended = {"delta": message}, {"finish_reason": "tool_calls"}
    one, _ = await told(Reply(body=orjson.dumps(whole)), asking())
    stream = drip(
        sse({"choices": [begun]}, {"choices": [ended]}) + b"data: [DONE]\n\n", 0.0, size=1_000
    )
    other, _ = await told(stream, asking(stream=True))
    assert one.blocks is not None
    assert orjson.loads(one.blocks.data) == {"reasoning_details": [detail], "tool_calls": [extra]}
    assert other.blocks == one.blocks


# ---------------------------------------------------------------- round trips
@pytest.mark.case("K4-25")
async def test_what_was_called_for_can_be_sent_back_and_the_next_turn_succeeds() -> None:
    act = Completion(
        text=None, calls=[FakeCall("search", '{"q": "é \\ud83d"}', None)], reasoning="hm"
    )
    first, _ = await told(act, asking())
    turn = Message(role="assistant", content=first.text, calls=first.calls, blocks=first.blocks)
    result = Message(role="tool", content="found", call_id=first.calls[0].id)
    request = asking(ask().messages[0], turn, result)
    second, received = await told(Completion(text="done"), request)
    assert second.text == "done"
    assert received.request == request


def test_a_scripted_turn_has_calls_in_order_with_canonical_arguments() -> None:
    reply = calls_reply(("f", {"b": 1, "a": "é"}), ("g", {}), text="I look.")
    assert reply.calls == (
        ToolCall(id="call-0", name="f", arguments='{"a":"é","b":1}'),
        ToolCall(id="call-1", name="g", arguments="{}"),
    )
    assert (reply.text, reply.stop) == ("I look.", "tool_use")
    assert reply.usage.total


# ---------------------------------------------------------------- servers without tools
@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/small does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "Extra inputs are not permitted: tools",
    ],
)
async def test_a_server_that_takes_no_tools_is_told_of_them_in_words(message: str) -> None:
    turn = '{"calls": [{"name": "search", "arguments": {"q": "x"}}]}'
    warned: list[str] = []
    heard: list[str] = []
    script: list[Act] = [
        error(400, message),
        Completion(text=turn),
        Completion(text='{"answer": "found"}'),
    ]
    async with FakeServer(script) as server:
        model = OpenAIModel("m", base_url=server.base_url, warn=warned.append)
        first = await model.generate_streaming(asking(), heard.append)
        again = await model.generate(asking(*TURN))
        await model.aclose()
        assert [call.arguments for call in first.calls] == ['{"q":"x"}']
        assert (first.stop, first.requests, first.text) == ("tool_use", 2, "")
        assert (again.text, again.stop, again.requests) == ("found", "end", 1)
        told = server.received[2].request
        assert (told.tools, [one.role for one in told.messages]) == (
            (),
            ["system", "user", "assistant", "user"],
        )
    assert heard == []
    assert warned == [
        f"model 'm' at {server.base_url} takes no tools: they are told of in words from now on"
    ]


@pytest.mark.parametrize(
    "message", ["Invalid schema for function 'search': tools[0]", "unknown field 'foo'"]
)
async def test_any_other_refusal_of_a_request_with_tools_is_raised(message: str) -> None:
    async with FakeServer([error(400, message)]) as server:
        model = model_at(server)
        with pytest.raises(RequestRejected):
            await model.generate(asking())
        await model.aclose()
