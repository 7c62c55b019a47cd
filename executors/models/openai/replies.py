"""Chat completions as JSON, on the way in: replies, whole or by deltas.

Read leniently where servers differ in harmless ways and refused where they break the protocol.
Reasoning is kept apart and never becomes the text of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn, cast

import orjson

from executors.errors import MalformedReply
from executors.makers import maker
from executors.messages import MalformedCall, ModelReply, StopReason, TokenLogprob, ToolCall
from executors.models.openai.errors import clipped, error_of_event
from executors.models.openai.shapes import listed, mapping, text_of
from executors.models.openai.turns import Turn, TurnFold, turn_of
from executors.models.tool_calls import read_calls
from executors.models.wire.reading import Heard
from executors.models.wire.sse import END, ServerEvent
from executors.usage import Usage

__all__ = ["Asked", "StreamFold", "read_cost", "read_reply", "read_usage"]

# A reply a call: each of these is made by the thousand a second.
_make_reply = maker(ModelReply)
_make_usage = maker(Usage)
_ABSURD: Final = 1 << 40  # tokens of one call, so that sums of them stay countable
_DEAR: Final = Decimal(1_000_000)  # USD of one call
_STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
# Where the server says anything else the turn was cut or refused, and none of its calls is run.
_RUNS: Final[tuple[StopReason, ...]] = ("end", "tool_use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What of a request is needed to read its reply."""

    where: str
    model: str
    max_tokens: int
    temperature: float | None
    """As it was sent."""


def read_reply(body: bytes, asked: Asked) -> ModelReply:
    """Return the reply in a JSON body.

    Raises:
        MalformedReply: it is no completion.
        ModelError: it is an error in the clothes of a success.
    """
    where = asked.where
    document = _object(body, where)
    if document.get("error"):
        raise error_of_event("", document, where=where, paid=False)
    choices = listed(document.get("choices"))
    if not choices:
        raise _malformed("a completion without choices", body, where)
    choice = mapping(choices[0])
    message = mapping(choice.get("message"))
    if not message:
        raise _malformed("a choice without a message", body, where)
    return _reply(
        asked,
        turn_of(message),
        text=text_of(message.get("content")),
        refusal=text_of(message.get("refusal")),
        reasoning=_reasoning(message),
        finish=choice.get("finish_reason"),
        usage=read_usage(document.get("usage")),
        cost=read_cost(document.get("usage")),
        model=document.get("model"),
        logprobs=_logprobs(choice.get("logprobs")),
    )


class StreamFold:
    """Adds up the deltas of a stream.

    Args:
        on_text: called with each piece of the answer's text as it comes.
    """

    def __init__(self, asked: Asked, on_text: Callable[[str], None] | None = None) -> None:
        self._asked = asked
        self._on_text = on_text
        self._half = ""
        self._turn = TurnFold()
        self._done = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._scored = False
        self._finish: object = None
        self._usage = Usage()
        self._cost: Decimal | None = None
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
        document = _object(event.data, self._asked.where)
        if event.name == "error" or document.get("error"):
            paid = bool(self._text or self._reasoning)
            raise error_of_event(event.name, document, where=self._asked.where, paid=paid)
        self._model = document.get("model") or self._model
        if document.get("usage"):
            self._usage = read_usage(document["usage"])
            self._cost = read_cost(document["usage"])
        choices = listed(document.get("choices"))
        return "content" if choices and self._add(mapping(choices[0])) else "nothing"

    def _add(self, choice: Mapping[str, object]) -> bool:
        """Add a delta and return whether anything was in it."""
        delta = mapping(choice.get("delta"))
        text, refusal = text_of(delta.get("content")), text_of(delta.get("refusal"))
        reasoning, finish = _reasoning(delta) or "", choice.get("finish_reason")
        self._text.append(text)
        if text and self._on_text is not None:
            self._hand_on(text, self._on_text)
        self._refusal.append(refusal)
        self._reasoning.append(reasoning)
        self._finish = finish or self._finish
        found = _logprobs(choice.get("logprobs"))
        if found is not None:
            self._logprobs.extend(found)
            self._scored = True
        called = self._turn.add(delta)
        return bool(text or refusal or reasoning or finish or found or called)

    def _hand_on(self, text: str, on_text: Callable[[str], None]) -> None:
        """Hand a piece on; half a character waits for its other half."""
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        if whole := _joined(text[: len(text) - len(self._half)]):
            on_text(whole)

    def reply(self) -> ModelReply | None:
        """Return the whole; None when the stream ended before its answer did."""
        if not self._done and self._finish is None:
            return None
        return _reply(
            self._asked,
            self._turn.turn(),
            text="".join(self._text),
            refusal="".join(self._refusal),
            reasoning="".join(self._reasoning) or None,
            finish=self._finish,
            usage=self._usage,
            cost=self._cost,
            model=self._model,
            logprobs=tuple(self._logprobs) if self._scored else None,
        )


def read_usage(value: object) -> Usage:
    """Return four disjoint tiers; the prompt count of this protocol contains the cached tokens."""
    usage = mapping(value)
    prompt = _count(usage.get("prompt_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = None if details is None else _count(mapping(details).get("cached_tokens"))
    if prompt is not None and cached is not None and cached > prompt:
        cached = None  # nonsense; all of it at the full price is the safe reading
    fresh = prompt if prompt is None else prompt - (cached or 0)
    return _make_usage(
        input=fresh, cache_read=cached, output=_count(usage.get("completion_tokens"))
    )


def read_cost(value: object) -> Decimal | None:
    """Return the USD that a server says it took, where it is one that says so.

    Where the customer's own account at another provider paid for the tokens, that is added.
    """
    usage = mapping(value)
    cost = usage.get("cost", usage.get("estimated_cost"))
    if isinstance(cost, dict):
        cost = mapping(cast(object, cost)).get("total_cost")
    total = _usd(cost)
    if total is None or usage.get("is_byok") is not True:
        return total
    upstream = _usd(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
    return None if upstream is None else total + upstream


def _usd(value: object) -> Decimal | None:
    """Return an amount; None for what is none: negative, not finite, or beyond what anybody bills."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        usd = Decimal(str(value))
    except ArithmeticError:
        return None
    return usd if usd.is_finite() and 0 <= usd < _DEAR else None


def _reply(
    asked: Asked,
    turn: Turn,
    *,
    text: str,
    refusal: str,
    reasoning: str | None,
    finish: object,
    usage: Usage,
    cost: Decimal | None,
    model: object,
    logprobs: tuple[TokenLogprob, ...] | None,
) -> ModelReply:
    raw = finish if isinstance(finish, str) else None
    stop: StopReason = _STOPS.get(raw, "other") if raw is not None else "other"
    if refusal and stop == "end":
        stop = "refusal"
    calls: tuple[ToolCall, ...] = ()
    malformed = None
    if turn.calls and stop in _RUNS:
        stop, calls, malformed = _round(turn, usage, asked)
    return _make_reply(
        text=_joined(text or refusal),
        stop=stop,
        stop_raw=raw,
        usage=usage,
        model=model if isinstance(model, str) else None,
        calls=calls,
        malformed=malformed,
        blocks=turn.blocks(asked.model) if calls else None,
        reasoning=reasoning and _joined(reasoning),
        token_logprobs=logprobs,
        temperature=asked.temperature,
        cost=cost,
    )


def _round(
    turn: Turn, usage: Usage, asked: Asked
) -> tuple[StopReason, tuple[ToolCall, ...], MalformedCall | None]:
    """Return how a turn with calls ended, its calls, and the first that cannot be read.

    One that cannot be read at the very bound of the output was cut there, whatever the server says.
    """
    calls = read_calls(turn.calls)
    if not isinstance(calls, MalformedCall):
        return "tool_use", calls, None
    if usage.output is not None and usage.output >= asked.max_tokens:
        return "max_tokens", (), None
    return "tool_use", (), calls


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


def _reasoning(message: Mapping[str, object]) -> str | None:
    return text_of(message.get("reasoning_content") or message.get("reasoning")) or None


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
    content = mapping(value).get("content")
    if not isinstance(content, list):
        return None
    return tuple(
        TokenLogprob(token=token, logprob=logprob, top=_alternatives(entry))
        for entry in listed(cast(object, content))
        for token, logprob in _pairs(entry)
    )


def _alternatives(entry: object) -> tuple[tuple[str, float], ...]:
    found = listed(mapping(entry).get("top_logprobs"))
    return tuple(pair for other in found for pair in _pairs(other))


def _pairs(entry: object) -> tuple[tuple[str, float], ...]:
    """Return (token, log-probability) once, or nothing when either is missing."""
    token, logprob = mapping(entry).get("token"), mapping(entry).get("logprob")
    if isinstance(token, str) and isinstance(logprob, int | float):
        return ((token, float(logprob)),)
    return ()
