"""Chat completions as JSON: requests out, replies in, whole or by deltas.

Replies are read leniently where servers differ in harmless ways and refused where they break the
protocol. Reasoning is kept apart and never becomes the text of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never, cast

import orjson

from executors.errors import MalformedReply, NotEncodable
from executors.messages import ModelReply, ModelRequest, StopReason, TokenLogprob
from executors.models.openai_errors import ServerSays, clipped, error_of_event
from executors.models.sse import ServerEvent
from executors.usage import Usage

__all__ = [
    "Dialect",
    "LimitName",
    "Part",
    "StreamFold",
    "encode",
    "read_reply",
    "read_usage",
    "refused_part",
]

LimitName = Literal["max_tokens", "max_completion_tokens"]
Part = Literal["temperature", "schema", "limit"]
"""A part of a request that some servers refuse, and that an answer can do without."""

_DONE = b"[DONE]"
# How servers say that they do not take a parameter at all, as against a bad value of it.
_NOT_TAKEN = re.compile(
    r"unsupported|not support|unknown|unrecognized|unrecognised|not permitted|not allowed|"
    r"deprecated|extra inputs|only (the )?default|only (supports? )?1\b",
    re.IGNORECASE,
)
_STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
_OTHER: Mapping[LimitName, LimitName] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server takes, as far as it has told us; learned once for each model object."""

    limit: LimitName
    """The parameter that bounds the output."""
    limit_fixed: bool = False
    """Whether the other name was the refused one."""
    temperature: bool = True
    """Whether it takes a temperature at all."""
    schema: bool = True
    """Whether it can be held to a schema; without, the prompt alone asks for a form."""

    def takes(self, part: Part) -> bool:
        """Whether the server has not yet refused a part."""
        return not self.limit_fixed if part == "limit" else getattr(self, part) is True

    def without(self, part: Part) -> Dialect:
        """Return how to ask after a part was refused."""
        match part:
            case "temperature":
                return replace(self, temperature=False)
            case "schema":
                return replace(self, schema=False)
            case "limit":
                return replace(self, limit=_OTHER[self.limit], limit_fixed=True)
            case _:
                assert_never(part)


def refused_part(used: Dialect, says: ServerSays, request: ModelRequest) -> Part | None:
    """Return what of a request a 400 does not take and we can do without; None for anything else."""
    if not _NOT_TAKEN.search(f"{says.code} {says.message}"):
        return None
    if request.temperature is not None and used.temperature and says.names("temperature"):
        return "temperature"
    if request.schema is not None and used.schema and says.names("response_format"):
        return "schema"
    if not used.limit_fixed and says.names(used.limit):
        return "limit"
    return None


def encode(
    name: str, request: ModelRequest, dialect: Dialect, *, stream: bool, where: str
) -> bytes:
    """Return the body of a request.

    Raises:
        NotEncodable: a text holds a lone surrogate; no retry can help.
    """
    document: dict[str, object] = {
        "model": name,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        dialect.limit: request.max_tokens,
    }
    if request.temperature is not None and dialect.temperature:
        document["temperature"] = request.temperature
    if request.seed is not None:
        document["seed"] = request.seed
    if request.stop:
        document["stop"] = request.stop
    if request.top_logprobs is not None:
        document |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if request.schema is not None and dialect.schema:
        schema = {"name": request.schema.name, "strict": True, "schema": request.schema.schema}
        document["response_format"] = {"type": "json_schema", "json_schema": schema}
    if stream:
        document |= {"stream": True, "stream_options": {"include_usage": True}}
    try:
        return orjson.dumps(document)
    except TypeError as error:
        raise NotEncodable(
            f"the request cannot be written as UTF-8 JSON: {error}",
            where=where,
            hint="a text holds half of a surrogate pair: replace it when the text is loaded",
        ) from None


def read_reply(body: bytes, *, where: str, temperature: float | None) -> ModelReply:
    """Return the reply in a JSON body.

    Raises:
        MalformedReply: it is no completion.
        ModelError: it is an error in the clothes of a success.
    """
    document = _object(body, where)
    if document.get("error"):
        raise error_of_event("", document, where=where, paid=False)
    choices = _list(document.get("choices"))
    if not choices:
        raise _malformed("a completion without choices", body, where)
    choice = _mapping(choices[0])
    message = _mapping(choice.get("message"))
    if not message:
        raise _malformed("a choice without a message", body, where)
    return _reply(
        text=_text(message.get("content")),
        refusal=_text(message.get("refusal")),
        reasoning=_reasoning(message),
        finish=choice.get("finish_reason"),
        usage=read_usage(document.get("usage")),
        model=document.get("model"),
        logprobs=_logprobs(choice.get("logprobs")),
        temperature=temperature,
    )


class StreamFold:
    """Adds up the deltas of a stream."""

    def __init__(self, *, where: str, temperature: float | None) -> None:
        self._where = where
        self._temperature = temperature
        self._done = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._logprobs: tuple[TokenLogprob, ...] | None = None
        self._finish: object = None
        self._usage = Usage()
        self._model: object = None

    def feed(self, event: ServerEvent) -> bool:
        """Take an event; True at the end marker.

        Raises:
            ModelError: the event reports an error.
            MalformedReply: it is no JSON object.
        """
        if event.data.strip() == _DONE:
            self._done = True
            return True
        document = _object(event.data, self._where)
        if event.name == "error" or document.get("error"):
            paid = bool(self._text or self._reasoning)
            raise error_of_event(event.name, document, where=self._where, paid=paid)
        self._model = document.get("model") or self._model
        if document.get("usage"):
            self._usage = read_usage(document["usage"])
        for choice in _list(document.get("choices"))[:1]:
            self._add(_mapping(choice))
        return False

    def _add(self, choice: Mapping[str, object]) -> None:
        delta = _mapping(choice.get("delta"))
        self._text.append(_text(delta.get("content")))
        self._refusal.append(_text(delta.get("refusal")))
        self._reasoning.append(_reasoning(delta) or "")
        self._finish = choice.get("finish_reason") or self._finish
        found = _logprobs(choice.get("logprobs"))
        if found is not None:
            self._logprobs = (*(self._logprobs or ()), *found)

    def reply(self) -> ModelReply | None:
        """Return the whole; None when the stream ended before its answer did."""
        if not self._done and self._finish is None:
            return None
        return _reply(
            text="".join(self._text),
            refusal="".join(self._refusal),
            reasoning="".join(self._reasoning) or None,
            finish=self._finish,
            usage=self._usage,
            model=self._model,
            logprobs=self._logprobs,
            temperature=self._temperature,
        )


def read_usage(value: object) -> Usage:
    """Return four disjoint tiers; the prompt count of this protocol contains the cached tokens."""
    usage = _mapping(value)
    prompt = _count(usage.get("prompt_tokens"))
    cached = _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    if prompt is not None and cached is not None and cached > prompt:
        cached = None  # nonsense; all of it at the full price is the safe reading
    fresh = prompt if prompt is None else prompt - (cached or 0)
    return Usage(input=fresh, cache_read=cached, output=_count(usage.get("completion_tokens")))


def _reply(
    *,
    text: str,
    refusal: str,
    reasoning: str | None,
    finish: object,
    usage: Usage,
    model: object,
    logprobs: tuple[TokenLogprob, ...] | None,
    temperature: float | None,
) -> ModelReply:
    raw = finish if isinstance(finish, str) else None
    stop: StopReason = _STOPS.get(raw, "other") if raw is not None else "other"
    if refusal and stop == "end":
        stop = "refusal"
    return ModelReply(
        text=text or refusal,
        stop=stop,
        stop_raw=raw,
        usage=usage,
        model=model if isinstance(model, str) else None,
        reasoning=reasoning,
        token_logprobs=logprobs,
        temperature=temperature,
    )


def _object(body: bytes, where: str) -> Mapping[str, object]:
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _malformed("no JSON", body, where) from None
    if not isinstance(value, dict):
        raise _malformed("JSON that is no object", body, where)
    return cast(Mapping[str, object], value)


def _malformed(what: str, body: bytes, where: str) -> MalformedReply:
    return MalformedReply(
        f"the server answered 200 with {what}: {clipped(body)!r}",
        where=where,
        hint="check that the base URL is that of a chat-completions server",
    )


def _mapping(value: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[object]:
    return cast(Sequence[object], value) if isinstance(value, list) else ()


def _text(value: object) -> str:
    """Return a text, whatever form it has: a string, parts of text, or nothing."""
    if isinstance(value, str):
        return value
    parts = (_mapping(part).get("text") for part in _list(value))
    return "".join(part for part in parts if isinstance(part, str))


def _reasoning(message: Mapping[str, object]) -> str | None:
    return _text(message.get("reasoning_content") or message.get("reasoning")) or None


def _count(value: object) -> int | None:
    """Return a count of tokens; None for what is none, a negative one included."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def _logprobs(value: object) -> tuple[TokenLogprob, ...] | None:
    content = _mapping(value).get("content")
    if not isinstance(content, list):
        return None
    return tuple(
        TokenLogprob(token=token, logprob=logprob, top=_alternatives(entry))
        for entry in _list(cast(object, content))
        for token, logprob in _pairs(entry)
    )


def _alternatives(entry: object) -> tuple[tuple[str, float], ...]:
    found = _list(_mapping(entry).get("top_logprobs"))
    return tuple(pair for other in found for pair in _pairs(other))


def _pairs(entry: object) -> tuple[tuple[str, float], ...]:
    """Return (token, log-probability) once, or nothing when either is missing."""
    token, logprob = _mapping(entry).get("token"), _mapping(entry).get("logprob")
    if isinstance(token, str) and isinstance(logprob, int | float):
        return ((token, float(logprob)),)
    return ()
