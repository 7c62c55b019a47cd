"""A reply as the fields of a line, and back: whole, so that a replay cannot tell the difference.

What is long (text, reasoning, calls, log-probabilities) can stand in a blob instead of in the line.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Final, cast

from executors.ids import ContentKey
from executors.journal.blobs import read_blob
from executors.journal.json_lines import decode, encode, exact, inexact
from executors.journal.lines import Answered, Fields, paid_fields
from executors.journal.records import Paid
from executors.messages import (
    MalformedCall,
    ModelReply,
    ProviderBlocks,
    StopReason,
    TokenLogprob,
    ToolCall,
)
from executors.usage import Usage

__all__ = ["answer_line", "is_clean", "long_answer", "reply_of", "thaw_reply"]

_LONG: Final = ("x", "r", "l", "o")
_TOLD: Final = ("c", "k")  # long too; that there are any stays in the line, which is clean by them


def is_clean(reply: ModelReply) -> bool:
    """Say whether a reply may be given again: one that ended, or that goes on with its tools."""
    if reply.stop == "tool_use":
        return bool(reply.calls) or reply.malformed is not None
    return reply.stop in ("end", "pause")


def answer_line(key: ContentKey, reply: ModelReply, paid: Paid) -> bytes:
    """Return the line of an answer."""
    return encode(_fields(key, reply, paid))


def long_answer(line: bytes, blob: str) -> bytes:
    """Return the line of an answer whose texts stand in a blob."""
    fields = cast("Fields", decode(line))
    short = {name: value for name, value in fields.items() if name not in (*_LONG, *_TOLD)}
    short |= dict.fromkeys([name for name in _TOLD if name in fields], 0)
    return encode({**short, "b": blob})


def reply_of(line: Answered, blobs: Path) -> ModelReply | None:
    """Return the reply of an answer, from its blob where it has one; None when it is damaged."""
    blob = None
    if line.blob is not None and (blob := read_blob(blobs, line.blob)) is None:
        return None
    try:
        return thaw_reply(line.fields, blob)
    except (LookupError, TypeError, ValueError):
        return None


def thaw_reply(fields: Fields, blob: bytes | None) -> ModelReply:
    """Return the reply of an answer's fields.

    Args:
        blob: the line that stands in its blob, where it has one.

    Raises:
        LookupError, TypeError, ValueError: it is no answer.
    """
    if blob is not None:
        fields = cast("Fields", decode(blob))
    _require_kinds(fields)
    tiers = cast("list[int | None]", fields.get("u", [None] * 4))
    temperature, logprobs = fields.get("t"), fields.get("l")
    return ModelReply(
        text=cast("str", fields["x"]),
        stop=cast("StopReason", fields.get("s", "end")),
        stop_raw=cast("str | None", fields.get("w")),
        usage=Usage(input=tiers[0], cache_read=tiers[1], cache_write=tiers[2], output=tiers[3]),
        model=cast("str | None", fields.get("m")),
        answered_by=cast("str | None", fields.get("y")),
        calls=tuple(_call(parts) for parts in cast("list[object]", fields.get("c", []))),
        malformed=_malformed(fields.get("k")),
        blocks=_blocks(fields.get("o")),
        reasoning=cast("str | None", fields.get("r")),
        token_logprobs=None
        if logprobs is None
        else tuple(map(_logprob, cast("list[list[object]]", logprobs))),
        temperature=None if temperature is None else inexact(temperature),
        cost=_cost(fields.get("d")),
        requests=cast("int", fields.get("q", 1)),
        unsettled=cast("int", fields.get("z", 0)),
    )


def _cost(text: object) -> Decimal | None:
    try:
        return None if text is None else Decimal(cast("str", text))
    except ArithmeticError:
        raise ValueError(f"{text!r} is no amount") from None


def _require_kinds(fields: Fields) -> None:
    """Refuse what a reply would hold and nobody could work with."""
    for name in ("x", "s", "w", "m", "r", "y", "d"):
        if not isinstance(fields.get(name, ""), str):
            raise TypeError(f"{name!r} is no text")
    tiers = cast("list[object]", fields.get("u", [None] * 4))
    if len(tiers) != 4 or not all(n is None or (type(n) is int and n >= 0) for n in tiers):
        raise ValueError("four counts of tokens, or None for each")
    if type(requests := fields.get("q", 1)) is not int or requests < 1:
        raise ValueError("an answer took a request or more")
    if type(unsettled := fields.get("z", 0)) is not int or unsettled < 0:
        raise ValueError("none or more tries were not settled")


def _fields(key: ContentKey, reply: ModelReply, paid: Paid) -> Fields:
    usage = reply.usage
    fields: Fields = {
        "a": key,
        "p": paid_fields(paid),
        "u": [usage.input, usage.cache_read, usage.cache_write, usage.output],
        "x": reply.text,
    }
    if reply.stop != "end":
        fields["s"] = reply.stop
    if reply.stop_raw is not None:
        fields["w"] = reply.stop_raw
    if reply.model is not None:
        fields["m"] = reply.model
    if reply.temperature is not None:
        fields["t"] = exact(reply.temperature)
    if reply.answered_by is not None:
        fields["y"] = reply.answered_by
    if reply.cost is not None:
        fields["d"] = str(reply.cost)
    if reply.unsettled:
        fields["z"] = reply.unsettled
    if reply.requests != 1:
        fields["q"] = reply.requests
    if reply.reasoning is not None:
        fields["r"] = reply.reasoning
    if reply.calls or reply.malformed is not None or reply.blocks is not None:
        fields |= _round(reply)
    if reply.token_logprobs is not None:
        fields["l"] = [
            [one.token, exact(one.logprob), [[token, exact(p)] for token, p in one.top]]
            for one in reply.token_logprobs
        ]
    return fields


def _round(reply: ModelReply) -> Fields:
    """Return what of a turn goes back to the model, or keeps it from going back."""
    fields: Fields = {}
    if reply.calls:
        fields["c"] = [[call.id, call.name, call.arguments] for call in reply.calls]
    if (bad := reply.malformed) is not None:
        fields["k"] = [bad.name, bad.raw, bad.reason]
    if (blocks := reply.blocks) is not None:
        fields["o"] = [blocks.provider, blocks.model, blocks.data]
    return fields


def _call(parts: object) -> ToolCall:
    id_, name, arguments = _texts(parts)
    return ToolCall(id=id_, name=name, arguments=arguments)


def _malformed(parts: object) -> MalformedCall | None:
    if parts is None:
        return None
    name, raw, reason = _texts(parts)
    return MalformedCall(name=name, raw=raw, reason=reason)


def _blocks(parts: object) -> ProviderBlocks | None:
    if parts is None:
        return None
    provider, model, data = _texts(parts)
    return ProviderBlocks(provider=provider, model=model, data=data)


def _texts(parts: object) -> list[str]:
    """Return a list of texts, and of nothing else."""
    if not isinstance(parts, list):
        raise TypeError("it is no list")
    texts: list[str] = []
    for part in cast("list[object]", parts):
        if not isinstance(part, str):
            raise TypeError("it is no text")
        texts.append(part)
    return texts


def _logprob(parts: list[object]) -> TokenLogprob:
    token, logprob, top = parts
    pairs = cast("list[list[object]]", top)
    return TokenLogprob(
        token=cast("str", token),
        logprob=inexact(logprob),
        top=tuple((cast("str", one), inexact(p)) for one, p in pairs),
    )
