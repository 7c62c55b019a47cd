"""Chat completions: what is sent, and what is read."""

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from executors.errors import (
    AuthError,
    ContextExceeded,
    MalformedReply,
    ModelError,
    NoQuota,
    NotEncodable,
    RateLimited,
    RequestRejected,
    ServerFault,
)
from executors.messages import Message, ModelReply, ModelRequest, ResponseSchema, TokenLogprob
from executors.models.fakes.acts import (
    Completion,
    Received,
    Reply,
    Steps,
    error_event,
    sse,
)
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import STREAM_ABOVE, OpenAIModel
from executors.models.openai.replies import Asked, read_reply
from executors.tokens import estimate_request
from executors.usage import Usage
from tests.executors.asks import KEY, answer, ask, failure, model_at

pytestmark = pytest.mark.anyio

SCHEMA = ResponseSchema(name="answers", schema={"type": "object", "additionalProperties": False})


# ---------------------------------------------------------------- what is sent
async def sent(request: ModelRequest) -> Received:
    async with FakeServer() as server:
        model = model_at(server)
        await model.generate(request)
        await model.aclose()
        return server.received[0]


async def test_a_request_says_what_was_asked_and_nothing_more() -> None:
    received = await sent(ask())
    assert (received.method, received.path) == ("POST", "/v1/chat/completions")
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.json == snapshot(
        {
            "model": "gpt-x",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 16,
        }
    )


async def test_every_option_of_a_request_has_its_place() -> None:
    request = ModelRequest(
        messages=(Message(role="system", content="s"), Message(role="user", content="u")),
        max_tokens=9,
        temperature=0.0,
        seed=7,
        schema=SCHEMA,
        top_logprobs=5,
        stop=("\n",),
        stream=True,
    )
    assert (await sent(request)).json == snapshot(
        {
            "model": "gpt-x",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
            ],
            "max_tokens": 9,
            "temperature": 0.0,
            "seed": 7,
            "stop": ["\n"],
            "logprobs": True,
            "top_logprobs": 5,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "answers",
                    "strict": True,
                    "schema": {"type": "object", "additionalProperties": False},
                },
            },
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with FakeServer() as server:
        model = OpenAIModel("m", base_url=server.base_url + "/")
        await model.generate(ask())
        await model.aclose()
        assert "authorization" not in server.received[0].headers
        assert model.info.key_fingerprint == ""


@pytest.mark.case("K1-10", "K1-11")
@pytest.mark.parametrize(
    ("max_tokens", "streams"), [(21_333, False), (21_334, True), (32_000, True)]
)
async def test_more_than_21333_output_tokens_are_streamed(max_tokens: int, streams: bool) -> None:
    assert STREAM_ABOVE == 21_333
    received = await sent(ask(max_tokens=max_tokens))
    assert (received.json.get("stream") is True) is streams
    assert (received.headers["accept"] == "text/event-stream") is streams


@pytest.mark.case("K5-1", "K5-5")
async def test_half_a_surrogate_pair_is_refused_before_anything_is_sent() -> None:
    async with FakeServer() as server:
        with pytest.raises(NotEncodable, match="surrogate") as caught:
            await model_at(server).generate(ask("a\udc9db"))
        assert server.accepted == 0
    assert not caught.value.retryable
    assert caught.value.attempts == 0


@pytest.mark.case("K5-7", "K5-13")
@pytest.mark.parametrize(
    "text", ["a\x00b", "<|endoftext|>" * 5, "\u202e\u2028\U0001f600", "\ufeff"]
)
async def test_any_other_text_arrives_as_it_is(text: str) -> None:
    received = await sent(ask(text))
    assert received.json["messages"] == [{"role": "user", "content": text}]


# ---------------------------------------------------------------- what is read
@pytest.mark.parametrize("stream", [True, False])
async def test_whole_or_by_deltas_a_reply_is_the_same(stream: bool) -> None:
    act = Completion(
        text="The answer",
        reasoning="let me see",
        usage={
            "prompt_tokens": 30,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 20},
        },
        model="gpt-x-2026",
        logprobs=[
            {"token": "The", "logprob": -0.5, "top_logprobs": [{"token": "A", "logprob": -1.0}]},
            {"token": " answer", "logprob": -0.25, "top_logprobs": []},
        ],
    )
    assert await answer(act, ask(stream=stream, temperature=0.5)) == ModelReply(
        text="The answer",
        stop="end",
        stop_raw="stop",
        usage=Usage(input=10, cache_read=20, output=4),
        model="gpt-x-2026",
        reasoning="let me see",
        token_logprobs=(
            TokenLogprob(token="The", logprob=-0.5, top=(("A", -1.0),)),
            TokenLogprob(token=" answer", logprob=-0.25),
        ),
        temperature=0.5,
    )


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "end"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("eos", "other"),
        ("__class__", "other"),
        (None, "other"),
    ],
)
async def test_only_a_clean_finish_is_an_end(stream: bool, finish: str | None, stop: str) -> None:
    reply = await answer(Completion(text="x", finish=finish), ask(stream=stream))
    assert (reply.stop, reply.stop_raw) == (stop, finish)


@pytest.mark.case("K2-13")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_is_kept_as_text_and_is_no_end(stream: bool) -> None:
    reply = await answer(Completion(text=None, refusal="I cannot."), ask(stream=stream))
    assert (reply.stop, reply.text) == ("refusal", "I cannot.")


@pytest.mark.case("K3-10", "K3-7")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_reasoning_is_never_promoted_to_the_answer(stream: bool, finish: str) -> None:
    act = Completion(text="", reasoning="maybe 12", finish=finish)
    reply = await answer(act, ask(stream=stream))
    assert (reply.text, reply.reasoning) == ("", "maybe 12")
    assert reply.stop == ("end" if finish == "stop" else "max_tokens")


@pytest.mark.case("K3-8")
@pytest.mark.parametrize("stream", [True, False])
async def test_no_content_is_an_empty_text(stream: bool) -> None:
    assert (await answer(Completion(text=None), ask(stream=stream))).text == ""


@pytest.mark.case("K5-1", "K5-4", "K5-10")
@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        (("a\\ud83d", "\\ude00b"), "a\U0001f600b"),
        (("a\\ud83d b",), "a\ufffd b"),
        (("\\uDC88", "x"), "\ufffdx"),
    ],
)
async def test_half_a_character_in_an_answer_is_joined_or_replaced_and_asked_for_once(
    deltas: tuple[str, ...], text: str
) -> None:
    """Servers that cut at UTF-16 split an emoji between two deltas."""
    body = '{"choices": [{"message": {"content": "%s"}, "finish_reason": "stop"}]}'
    reply = await answer(Reply(body=(body % "".join(deltas)).encode()))
    assert (reply.text, reply.stop) == (text, "end")
    event = 'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n'
    end = 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    stream = "".join(event % delta for delta in deltas) + end
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    reply = await answer(Steps((head + stream.encode(),)), ask(stream=True))
    assert (reply.text, reply.stop) == (text, "end")


async def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    body = orjson.dumps({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})
    assert (await answer(Reply(body=body))).text == "ab"


@pytest.mark.case("K8-8")
@pytest.mark.parametrize("stream", [True, False])
async def test_missing_usage_is_unknown(stream: bool) -> None:
    reply = await answer(Completion(usage=None), ask(stream=stream))
    assert reply.usage == Usage()
    assert reply.usage.total is None


async def test_a_server_that_ignores_the_wish_for_a_stream_is_understood() -> None:
    body = orjson.dumps({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]})
    assert (await answer(Reply(body=body), ask(stream=True))).text == "whole"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><title>Welcome</title></html>",
        b"{}",
        b"[]",
        b"42",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": "x"}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": "a"}}]',
        b'{"n": NaN}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
async def test_a_200_that_is_no_completion_is_malformed(body: bytes) -> None:
    found = await failure(Reply(body=body))
    assert type(found) is MalformedReply
    assert found.maybe_paid
    assert "base URL" in str(found)
    assert len(found.what) < 400


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "usage",
                        "logprobs",
                        "error",
                        "finish_reason",
                        "prompt_tokens",
                        "token",
                        "logprob",
                        "top_logprobs",
                        "model",
                        "x",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_a_reply_or_a_typed_error(document: object) -> None:
    wrapped = {"choices": [{"message": document, "logprobs": document}], "usage": document}
    for value in (document, wrapped):
        try:
            body = orjson.dumps(value)
        except TypeError:  # an integer beyond 64 bits, or half a surrogate pair
            continue
        with suppress(ModelError):
            read_reply(body, Asked(where="here", model="m", max_tokens=8, temperature=None))


# ---------------------------------------------------------------- errors inside a 200
@pytest.mark.case("K2-11", "K2-13")
@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("overloaded_error", ServerFault),
        ("server_error", ServerFault),
        ("what is this", ServerFault),
        ("rate_limit_error", RateLimited),
        ("rate_limit_exceeded", RateLimited),
        ("authentication_error", AuthError),
        ("insufficient_quota", NoQuota),
        ("invalid_request_error", RequestRejected),
        ("context_length_exceeded", ContextExceeded),
    ],
)
async def test_an_error_event_is_the_error_that_its_type_says(
    kind: str, wanted: type[ModelError]
) -> None:
    found = await failure(error_event(kind), ask(stream=True))
    assert type(found) is wanted
    assert not found.maybe_paid


@pytest.mark.case("K3-13")
async def test_an_error_after_some_text_may_have_been_paid_and_is_no_answer() -> None:
    before = sse({"choices": [{"delta": {"content": "half"}}]})
    found = await failure(error_event("server_error", before=before), ask(stream=True))
    assert type(found) is ServerFault
    assert found.maybe_paid


async def test_an_error_in_a_plain_200_is_an_error() -> None:
    body = orjson.dumps({"error": {"message": "slow", "code": 429, "type": "rate_limit"}})
    assert type(await failure(Reply(body=body))) is RateLimited


@pytest.mark.parametrize(
    "data", [b"data: not json\n\n", b"data: [1]\n\n", b"event: x\ndata: 1\n\n"]
)
async def test_an_event_that_is_no_object_is_malformed(data: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    assert type(await failure(Steps((head + data,)), ask(stream=True))) is MalformedReply


async def test_a_fake_server_counts_a_prompt_as_its_caller_does() -> None:
    request = ask('zwölf "Wörter"', schema=SCHEMA)
    reply = await answer(Completion(text="yes"), request)
    assert (reply.usage.input, reply.usage.output) == (estimate_request(request), 1)
