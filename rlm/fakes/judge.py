"""Scripts that answer a judge's requests as a rule of yours would, well or badly.

For a `ScriptedModel` in this process or a `FakeServer` on loopback: both take the same rule, so
that a count with known answers can be run through every layer without a model.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final, Literal, assert_never

import orjson

from corpus.prompts import read_items
from executors.errors import ServerFault, ValidationError
from executors.makers import maker
from executors.messages import ModelReply, ModelRequest, StopReason
from executors.models.fakes.acts import Act, Completion, Received, Reply
from executors.models.fakes.scripted import Turn
from executors.usage import Usage

__all__ = ["Decide", "Fault", "Faults", "judge_script", "judge_server"]

Decide = Callable[[str], bool | str | None]
"""From a text to yes or no, a label, or None for "unsure"."""
Fault = Literal[
    "leave-out",
    "change-case",
    "quote-alias",
    "invent",
    "prose",
    "fence",
    "empty",
    "refuse",
    "truncate",
    "fail",
]
"""What can go wrong with one reply; each is what models and servers do.

leave-out    the last item gets no answer
change-case  answers in capitals
quote-alias  aliases in quotes and brackets
invent       a further answer for an item that was never shown
prose        a sentence instead of JSON
fence        JSON in a Markdown fence
empty        no text at all
refuse       a refusal
truncate     cut at the token limit
fail         a server error
"""
Faults = Callable[[int], Fault | None]
"""From the number of the request (from 0, in order of coming) to its fault, None for a good reply."""

_REFUSAL: Final = "I cannot help with that."
_OTHER: Final = "ok"
_model_reply, _usage = maker(ModelReply), maker(Usage)


def judge_script(decide: Decide, faults: Faults | None = None) -> Callable[[ModelRequest], Turn]:
    """Return a script for `ScriptedModel` that judges by a rule."""
    numbers = count()

    def answer(request: ModelRequest) -> Turn:
        fault = faults(next(numbers)) if faults else None
        if fault == "fail":
            return ServerFault("the scripted model failed, as told")
        text, stop = _reply(request, decide, fault)
        prompt = sum([len(message.content) for message in request.messages])
        return _model_reply(
            text=text,
            stop=stop,
            usage=_usage(input=prompt // 3 + 1, output=len(text) // 3 + 1),
            temperature=request.temperature,
        )

    return answer


def judge_server(decide: Decide, faults: Faults | None = None) -> Callable[[Received], Act]:
    """Return a script for `FakeServer` that judges by a rule."""
    finish: dict[StopReason, str] = {"end": "stop", "max_tokens": "length", "refusal": "stop"}

    def answer(received: Received) -> Act:
        fault = faults(received.index) if faults else None
        if fault == "fail":
            return Reply(status=500, body=b'{"error":{"message":"failed, as told"}}')
        text, stop = _reply(received.request, decide, fault)
        refused = stop == "refusal"
        return Completion(
            text=None if refused else text, refusal=text if refused else None, finish=finish[stop]
        )

    return answer


def _reply(request: ModelRequest, decide: Decide, fault: Fault | None) -> tuple[str, StopReason]:
    items = _items(request)
    if items is None:
        return _OTHER, "end"
    return _told(request, {alias: _word(decide(text)) for alias, text in items}, fault)


def _told(
    request: ModelRequest, answers: dict[str, str], fault: Fault | None
) -> tuple[str, StopReason]:
    """Return the answers as text, with their fault."""
    quotes = '"quote"' in request.messages[0].content
    match fault:
        case None:
            pass
        case "leave-out":
            answers.popitem()
        case "change-case":
            answers = {alias: answer.upper() for alias, answer in answers.items()}
        case "quote-alias":
            answers = {f'["{alias}"]': answer for alias, answer in answers.items()}
        case "invent":
            answers |= {str(len(answers) + 1): "yes", "zzz": "yes"}
        case "prose":
            return "All of these look as if they match, more or less.", "end"
        case "fence":
            return f"```json\n{_json(request, answers, quotes=quotes)}\n```", "end"
        case "empty":
            return "", "end"
        case "refuse":
            return _REFUSAL, "refusal"
        case "truncate":
            whole = _json(request, answers, quotes=quotes)
            return whole[: len(whole) // 2], "max_tokens"
        case "fail":
            raise AssertionError("a failure has no reply")
        case _:
            assert_never(fault)
    return _json(request, answers, quotes=quotes), "end"


def _items(request: ModelRequest) -> list[tuple[str, str]] | None:
    """Return the items that a request shows; None for one that is no judge's, as of a probe."""
    try:
        return read_items(request)
    except ValidationError:
        return None


def _word(decided: bool | str | None) -> str:
    if decided is None:
        return "unsure"
    if isinstance(decided, str):
        return decided
    return "yes" if decided else "no"


def _json(request: ModelRequest, answers: dict[str, str], *, quotes: bool) -> str:
    if not quotes:
        return orjson.dumps(answers).decode()
    texts = dict(read_items(request))
    quoted = {
        alias: {"answer": answer, "quote": " ".join(texts.get(alias, "").split()[:5])}
        for alias, answer in answers.items()
    }
    return orjson.dumps(quoted).decode()
