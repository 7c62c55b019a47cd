"""What a fake server can do with a request: answer well, answer badly, or misbehave on the wire.

An act is one of `Completion`, `Reply` and `Steps`. The functions below name the usual misdeeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import orjson

from executors.messages import ToolCall
from executors.models.fakes.received import Received
from executors.tokens import estimate, estimate_request

__all__ = [
    "Act",
    "Close",
    "Completion",
    "FakeCall",
    "Hold",
    "Received",
    "Reply",
    "Reset",
    "Step",
    "Steps",
    "comments_for_ever",
    "cut_short",
    "drip",
    "error_event",
    "headers_only",
    "held_after_done",
    "rate_limited",
    "refused_parameter",
    "silent",
    "sse",
    "steps_of",
]

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole HTTP response, after a pause in seconds."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class FakeCall:
    """A tool call as a server words it, well or badly."""

    name: str | None
    arguments: object = ""
    """JSON as text, or anything else as it is to stand there; None leaves it out."""
    id: str | None = None
    """None leaves it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A chat completion: JSON, or a stream of deltas where the request asks for one."""

    text: str | None = "ok"
    calls: Sequence[FakeCall | ToolCall] = ()
    finish: str | None = "fitting"
    """ "fitting" is "tool_calls" where there are calls, else "stop"."""
    usage: Mapping[str, object] | Literal["counted"] | None = "counted"
    """ "counted" is what `executors.tokens.estimate` makes of both sides; None sends no usage."""
    model: str = "fake"
    reasoning: str | None = None
    refusal: str | None = None
    logprobs: Sequence[Mapping[str, object]] | None = None
    """Entries of `choices[0].logprobs.content`."""
    after: float = 0.0
    """Seconds before the first byte."""
    headers: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep the socket open and say nothing more."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection in the orderly way."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection with a RST."""


Step = bytes | float | Hold | Close | Reset
"""Bytes to write, seconds to pause, or an ending."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Raw steps on the socket. `again` restarts from that index when the steps are used up."""

    steps: tuple[Step, ...]
    again: int | None = None


Act = Completion | Reply | Steps


def steps_of(act: Act, received: Received) -> Steps:
    """Return an act as steps."""
    match act:
        case Steps():
            return act
        case Reply():
            return _paused(act.after, (_response(act.status, act.body, act.headers),))
        case Completion():
            return _completion(act, received)


def sse(*events: bytes | Mapping[str, object]) -> bytes:
    """Return server-sent events as bytes: mappings become JSON data lines."""
    parts = (e if isinstance(e, bytes) else b"data: " + orjson.dumps(e) + b"\n\n" for e in events)
    return b"".join(parts)


def rate_limited(retry_after: str | None = None, **more: str) -> Reply:
    """429, with whatever stands in Retry-After; further headers by name (`_` for `-`)."""
    headers = [] if retry_after is None else [("retry-after", retry_after)]
    headers += [(name.replace("_", "-"), value) for name, value in more.items()]
    return _error(429, "rate_limit_exceeded", "slow down", headers=tuple(headers))


def refused_parameter(name: str, message: str | None = None) -> Reply:
    """400 that names a parameter."""
    text = message or f"Unsupported value: '{name}' does not support this. Only the default is."
    return _error(400, "unsupported_value", text, param=name)


def headers_only() -> Steps:
    """Promise an event stream and send nothing of it."""
    return Steps((_STREAM_HEAD, Hold()))


def silent() -> Steps:
    """Accept the request and never answer."""
    return Steps((Hold(),))


def comments_for_ever(every: float) -> Steps:
    """Keep a stream warm with comment lines, every so many seconds, and never say anything."""
    return Steps((_STREAM_HEAD, b": ping\n\n", every), again=1)


def drip(body: bytes, every: float, *, size: int = 1) -> Steps:
    """Send an event stream's bytes a few at a time."""
    parts: list[Step] = [_STREAM_HEAD]
    for at in range(0, len(body), size):
        parts += [body[at : at + size], every]
    return Steps((*parts, Close()))


def cut_short(body: bytes, *, promised: int) -> Steps:
    """Send less of a JSON body than its length promises, then close."""
    head = _head(200, (("content-type", "application/json"),), length=promised)
    return Steps((head + body, Close()))


def held_after_done(*events: bytes | Mapping[str, object]) -> Steps:
    """Send events and the end marker, and hold the socket open."""
    return Steps((_STREAM_HEAD + sse(*events) + DONE, Hold()))


def error_event(kind: str, message: str = "upstream failed", *, before: bytes = b"") -> Steps:
    """A 200 whose stream turns into an error event."""
    error = orjson.dumps({"error": {"type": kind, "message": message}})
    return Steps((_STREAM_HEAD + before + b"event: error\ndata: " + error + b"\n\n", Close()))


def _error(
    status: int,
    code: str,
    message: str,
    *,
    param: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Reply:
    error = {"message": message, "type": code, "code": code, "param": param}
    return Reply(status=status, body=orjson.dumps({"error": error}), headers=headers)


_REASONS = {200: b"OK", 400: b"Bad Request", 401: b"Unauthorized", 404: b"Not Found"}


def _head(status: int, headers: tuple[tuple[str, str], ...], *, length: int | None) -> bytes:
    lines = [b"HTTP/1.1 %d %s\r\n" % (status, _REASONS.get(status, b"Status"))]
    lines += [f"{name}: {value}\r\n".encode("latin-1") for name, value in headers]
    if length is None:
        lines.append(b"connection: close\r\n")
    else:
        lines.append(b"content-length: %d\r\n" % length)
    return b"".join(lines) + b"\r\n"


_STREAM_HEAD = _head(200, (("content-type", "text/event-stream"),), length=None)
_PLAIN_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_CHUNKED_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def _response(status: int, body: bytes, headers: tuple[tuple[str, str], ...]) -> bytes:
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("content-type", "application/json"))
    return _head(status, headers, length=len(body)) + body


def _paused(after: float, steps: tuple[Step, ...]) -> Steps:
    return Steps((after, *steps)) if after > 0 else Steps(steps)


def _completion(act: Completion, received: Received) -> Steps:
    if received.json.get("stream") is True:
        body = _deltas(act, received)
        raw = _CHUNKED_HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        body = orjson.dumps(_document(act, received))
        raw = _response(200, body, act.headers) if act.headers else _PLAIN_HEAD % len(body) + body
    return _paused(act.after, (raw,))


def _usage(act: Completion, received: Received) -> Mapping[str, object] | None:
    if act.usage != "counted":
        return act.usage
    written = sum(estimate(f"{call.name}{call.arguments}") for call in act.calls)
    prompt, output = _prompt_tokens(received), max(1, estimate(act.text or "") + written)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
    }


def _prompt_tokens(received: Received) -> int:
    """Count a prompt as the estimate of its caller counts it, message by message."""
    try:
        return estimate_request(received.request)
    except (AttributeError, KeyError, TypeError):  # another kind of request, or none at all
        return len(received.body) // 3 + 1


def _finish(act: Completion) -> str | None:
    if act.finish == "fitting":
        return "tool_calls" if act.calls else "stop"
    return act.finish


def _called(call: FakeCall | ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    entry: dict[str, object] = {
        "type": "function",
        "function": {name: value for name, value in function.items() if value is not None},
    }
    if call.id is not None:
        entry["id"] = call.id
    return entry


def _document(act: Completion, received: Received) -> Mapping[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": act.text}
    if act.reasoning is not None:
        message["reasoning_content"] = act.reasoning
    if act.refusal is not None:
        message["refusal"] = act.refusal
    if act.calls:
        message["tool_calls"] = [_called(call) for call in act.calls]
    choice: dict[str, object] = {"index": 0, "message": message, "finish_reason": _finish(act)}
    if act.logprobs is not None:
        choice["logprobs"] = {"content": act.logprobs}
    document: dict[str, object] = {
        "id": f"fake-{received.index}",
        "object": "chat.completion",
        "model": act.model,
        "choices": [choice],
    }
    usage = _usage(act, received)
    if usage is not None:
        document["usage"] = usage
    return document


def _deltas(act: Completion, received: Received) -> bytes:
    text = act.text or ""
    middle = (len(text) + 1) // 2
    deltas: list[Mapping[str, object]] = [{"role": "assistant", "content": ""}]
    if act.reasoning is not None:
        deltas.append({"reasoning_content": act.reasoning})
    if act.refusal is not None:
        deltas.append({"refusal": act.refusal})
    deltas += [{"content": part} for part in (text[:middle], text[middle:]) if part]
    for index, call in enumerate(act.calls):
        deltas += [{"tool_calls": [{"index": index, **part}]} for part in _pieces(call)]
    events = [_chunk(act, {"delta": delta}) for delta in deltas]
    last: dict[str, object] = {"delta": {}, "finish_reason": _finish(act)}
    if act.logprobs is not None:
        last["logprobs"] = {"content": act.logprobs}
    events.append(_chunk(act, last))
    usage = _usage(act, received)
    if usage is not None:
        events.append({"model": act.model, "choices": [], "usage": usage})
    return sse(*events) + DONE


def _pieces(call: FakeCall | ToolCall) -> list[dict[str, object]]:
    """Return a call as deltas: its name first, then its arguments in two pieces."""
    if not isinstance(call.arguments, str):
        return [_called(call)]
    head = _called(FakeCall(call.name, "", call.id))
    middle = (len(call.arguments) + 1) // 2
    parts = [part for part in (call.arguments[:middle], call.arguments[middle:]) if part]
    rest: list[dict[str, object]] = [{"function": {"arguments": part}} for part in parts]
    return [head, *rest]


def _chunk(act: Completion, choice: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "object": "chat.completion.chunk",
        "model": act.model,
        "choices": [{"index": 0, "finish_reason": None, **choice}],
    }
