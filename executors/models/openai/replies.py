"""Chat completions as JSON, on the way in: replies, whole or by deltas.

Read leniently where servers differ in harmless ways and refused where they break the protocol.
Reasoning is kept apart and never becomes the text of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, cast

import orjson

from executors.errors import MalformedReply
from executors.makers import maker
from executors.messages import ModelReply, StopReason, TokenLogprob
from executors.models.openai.errors import clipped, error_of_event
from executors.models.wire.reading import Heard
from executors.models.wire.sse import END, ServerEvent
from executors.usage import Usage

__all__ = ["StreamFold", "read_reply", "read_usage"]

# A reply a call: each of these is made by the thousand a second.
_make_reply = maker(ModelReply)
_make_usage = maker(Usage)
_ABSURD: Final = 1 << 40  # tokens of one call, so that sums of them stay countable
_STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


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
        self._logprobs: list[TokenLogprob] = []
        self._scored = False
        self._finish: object = None
        self._usage = Usage()
        self._model: object = None

    def feed(self, event: ServerEvent) -> Heard:
        """Take an event; content is what brings the answer on or ends it.

        Deltas that are empty or name a role alone, and counts of tokens, are signs of life only: a
        server that sends nothing else for ever has no answer.

        Raises:
            ModelError: the event reports an error.
            MalformedReply: it is no JSON object.
        """
        if event.data.strip() == END:
            self._done = True
            return "end"
        document = _object(event.data, self._where)
        if event.name == "error" or document.get("error"):
            paid = bool(self._text or self._reasoning)
            raise error_of_event(event.name, document, where=self._where, paid=paid)
        self._model = document.get("model") or self._model
        if document.get("usage"):
            self._usage = read_usage(document["usage"])
        choices = _list(document.get("choices"))
        return "content" if choices and self._add(_mapping(choices[0])) else "nothing"

    def _add(self, choice: Mapping[str, object]) -> bool:
        """Add a delta and return whether anything was in it."""
        delta = _mapping(choice.get("delta"))
        text, refusal = _text(delta.get("content")), _text(delta.get("refusal"))
        reasoning, finish = _reasoning(delta) or "", choice.get("finish_reason")
        self._text.append(text)
        self._refusal.append(refusal)
        self._reasoning.append(reasoning)
        self._finish = finish or self._finish
        found = _logprobs(choice.get("logprobs"))
        if found is not None:
            self._logprobs.extend(found)
            self._scored = True
        return bool(text or refusal or reasoning or finish or found or delta.get("tool_calls"))

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
            logprobs=tuple(self._logprobs) if self._scored else None,
            temperature=self._temperature,
        )


def read_usage(value: object) -> Usage:
    """Return four disjoint tiers; the prompt count of this protocol contains the cached tokens."""
    usage = _mapping(value)
    prompt = _count(usage.get("prompt_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = None if details is None else _count(_mapping(details).get("cached_tokens"))
    if prompt is not None and cached is not None and cached > prompt:
        cached = None  # nonsense; all of it at the full price is the safe reading
    fresh = prompt if prompt is None else prompt - (cached or 0)
    return _make_usage(
        input=fresh, cache_read=cached, output=_count(usage.get("completion_tokens"))
    )


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
    return _make_reply(
        text=_joined(text or refusal),
        stop=stop,
        stop_raw=raw,
        usage=usage,
        model=model if isinstance(model, str) else None,
        reasoning=reasoning and _joined(reasoning),
        token_logprobs=logprobs,
        temperature=temperature,
    )


def _object(body: bytes, where: str) -> Mapping[str, object]:
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _with_halves(body)
    if value is None:
        raise _malformed("no JSON", body, where)
    if not isinstance(value, dict):
        raise _malformed("JSON that is no object", body, where)
    return cast("Mapping[str, object]", value)


def _with_halves(body: bytes) -> object:
    """Return JSON in which halves of surrogate pairs stand, as servers write that cut at UTF-16.

    None for what is no JSON for another reason.
    """
    if b"\\ud" not in body and b"\\uD" not in body:
        return None
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _joined(text: str) -> str:
    """Join halves of surrogate pairs; one without its other half becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _malformed(what: str, body: bytes, where: str) -> MalformedReply:
    return MalformedReply(
        f"the server answered 200 with {what}: {clipped(body)!r}",
        where=where,
        hint="check that the base URL is that of a chat-completions server",
    )


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def _text(value: object) -> str:
    """Return a text, whatever form it has: a string, parts of text, or nothing."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    parts = (_mapping(part).get("text") for part in _list(value))
    return "".join(part for part in parts if isinstance(part, str))


def _reasoning(message: Mapping[str, object]) -> str | None:
    return _text(message.get("reasoning_content") or message.get("reasoning")) or None


def _count(value: object) -> int | None:
    """Return a count of tokens; None for what is none: negative, or beyond what anybody bills."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _ABSURD else None


def _logprobs(value: object) -> tuple[TokenLogprob, ...] | None:
    if value is None:
        return None
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
