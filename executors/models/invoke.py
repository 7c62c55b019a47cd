"""The call itself. By contract only `executors.calls.calls` imports this module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from executors.errors import ContextExceeded, PromptCut
from executors.messages import ModelReply, ModelRequest
from executors.models.base import Model, StreamingModel
from executors.secrets import mask
from executors.tokens import at_least

__all__ = ["check_window", "invoke"]

# A reported prompt below this share of its own words was cut by the server; some tokenizers
# merge frequent word pairs, so the share leaves room for them.
_CUT_SHARE = 0.8
# Tokens a character from which on a prompt looks whole: counting its words would cost more than
# the rest of the call.
_DENSE = 0.2
# Short prompts are never cut and the ratio is noise there.
_CUT_FLOOR = 256


def check_window(
    model: Model, request: ModelRequest, prompt_tokens: int, *, exact: bool = False
) -> None:
    """Refuse a request that the model's known window cannot hold: prompt + reserve <= window.

    An estimate that is not `exact` is an upper one, so that only what is sure is refused: half of
    it, or the words that stand in the prompt. A model that counts exactly checks again by itself.

    Raises:
        ContextExceeded: the prompt and the reserve do not fit.
    """
    window = model.info.context_window
    if window is None or prompt_tokens + request.max_tokens <= window:
        return
    sure = prompt_tokens if exact else max(prompt_tokens // 2, at_least(request))
    if sure + request.max_tokens <= window:
        return
    raise ContextExceeded(
        f"a prompt of about {prompt_tokens:,} tokens and {request.max_tokens:,} reserved for the "
        f"answer do not fit the window of {window:,} tokens",
        where=f"model {model.info.spec}",
        hint="use fewer items a window (--window) or a model with a longer window",
    )


async def invoke(
    model: Model, request: ModelRequest, on_text: Callable[[str], None] | None = None
) -> ModelReply:
    """Ask once and refuse an answer to a prompt that the server cut without a word.

    Args:
        on_text: hears the text as it comes, where the model can be watched.

    Raises:
        ModelError: what the model raised, or PromptCut.
    """
    if on_text is None or not isinstance(model, StreamingModel):
        reply = await model.generate(request)
    else:
        reply = await model.generate_streaming(request, on_text)
    reply = _masked(reply)
    reported = reply.usage.prompt
    if reported is not None and reported >= _CUT_FLOOR and reported < _letters(request) * _DENSE:
        words = at_least(request)
        if reported < words * _CUT_SHARE:
            raise PromptCut(
                f"the server read {reported:,} tokens of a prompt that holds {words:,} words",
                where=f"model {model.info.spec}",
                hint="raise the server's context length or use fewer items a window (--window)",
            )
    return reply


def _masked(reply: ModelReply) -> ModelReply:
    """Return a reply without secrets of ours: what a server echoes goes into no file and no prompt."""
    text = mask(reply.text)
    if text is not reply.text:
        reply = replace(reply, text=text)
    if reply.reasoning is not None:
        reply = replace(reply, reasoning=mask(reply.reasoning))
    if reply.calls:
        calls = [
            replace(call, id=mask(call.id), name=mask(call.name), arguments=mask(call.arguments))
            for call in reply.calls
        ]
        reply = replace(reply, calls=tuple(calls))
    if (bad := reply.malformed) is not None:
        raw, name, reason = mask(bad.raw), mask(bad.name), mask(bad.reason)
        reply = replace(reply, malformed=replace(bad, raw=raw, name=name, reason=reason))
    if reply.blocks is not None:
        reply = replace(reply, blocks=replace(reply.blocks, data=mask(reply.blocks.data)))
    return reply


def _letters(request: ModelRequest) -> int:
    return sum([len(message.content) for message in request.messages])
