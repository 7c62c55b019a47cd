"""Counting tokens without a tokenizer: an upper estimate to reserve, a lower one to catch cuts."""

from __future__ import annotations

import re
from collections.abc import Callable

from executors.messages import ModelRequest

__all__ = ["TokenCounter", "at_least", "estimate", "estimate_request"]

TokenCounter = Callable[[str], int]
"""Tokens of a text. Special-token spellings are plain text to every counter of ours."""

_MESSAGE_OVERHEAD = 8
_TOOLS_OVERHEAD = 256  # what chat templates say around the tools: how to call one, in which form
_WORD = re.compile(r"[^\W_]{2,}", re.ASCII)


def estimate(text: str) -> int:
    """Return ceil(UTF-8 bytes / 3): more than common tokenizers need for running text."""
    # The interpreter knows of a text whether it is ASCII, and then its bytes are its characters.
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // 3)


def estimate_request(request: ModelRequest, count: TokenCounter = estimate) -> int:
    """Return the estimated tokens of the prompt, without the output reserve.

    A response schema counts: servers that hold a reply to one show it to the model. So do tools.
    """
    extra = 0 if request.schema is None else count(request.schema.canonical)
    extra += _TOOLS_OVERHEAD if request.tools else 0
    for tool in request.tools:
        extra += count(tool.canonical) + _MESSAGE_OVERHEAD
    for message in request.messages:
        for call in message.calls:
            extra += count(call.name) + count(call.arguments) + _MESSAGE_OVERHEAD
        if message.blocks is not None:
            extra += count(message.blocks.data)
    return extra + sum([count(m.content) + _MESSAGE_OVERHEAD for m in request.messages])


def at_least(request: ModelRequest) -> int:
    """Return a count that no tokenizer in use stays under: ASCII words of two letters or more."""
    return sum(sum(1 for _ in _WORD.finditer(m.content)) for m in request.messages)
