"""Chat completions as JSON, on the way out: requests, and what a server takes of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import orjson

from executors.errors import NotEncodable
from executors.messages import ModelRequest
from executors.models.openai.errors import ServerSays
from executors.models.openai.turns import as_sent
from executors.models.tool_calls import CHOICES, check_tools

__all__ = ["Dialect", "LimitName", "Part", "encode", "refused_part"]

LimitName = Literal["max_tokens", "max_completion_tokens"]
Part = Literal["temperature", "schema", "limit", "tools"]
"""A part of a request that some servers refuse, and that an answer can do without."""

# How servers say that they do not take a parameter at all, as against a bad value of it.
_NOT_TAKEN = re.compile(
    r"unsupported|not support|unknown|unrecognized|unrecognised|not permitted|not allowed|"
    r"deprecated|extra inputs|only (the )?default|only (supports? )?1\b|"
    r"requires --(enable-auto-tool-choice|tool-call-parser|jinja)",
    re.IGNORECASE,
)
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
    tools: bool = True
    """Whether it knows of tools; without, they are taught in words."""

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
            case "tools":
                return replace(self, tools=False)
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
    if request.tools and used.tools and (says.names("tools") or "tool" in says.message.lower()):
        return "tools"
    if not used.limit_fixed and says.names(used.limit):
        return "limit"
    return None


def encode(
    name: str, request: ModelRequest, dialect: Dialect, *, stream: bool, where: str
) -> bytes:
    """Return the body of a request.

    Raises:
        NotEncodable: a text holds a lone surrogate; no retry can help.
        ValidationError: two tools share a name, or the choice is none.
    """
    check_tools(request)
    document: dict[str, object] = {
        "model": name,
        "messages": [as_sent(message, name) for message in request.messages],
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
    if request.tools:
        document |= _tools(request)
    if stream:
        document |= {"stream": True, "stream_options": {"include_usage": True}}
    return _written(document, where)


def _tools(request: ModelRequest) -> dict[str, object]:
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in request.tools
    ]
    choice = request.tool_choice
    if choice is None:
        return {"tools": tools}
    named = {"type": "function", "function": {"name": choice}}
    return {"tools": tools, "tool_choice": choice if choice in CHOICES else named}


def _written(document: dict[str, object], where: str) -> bytes:
    try:
        return orjson.dumps(document)
    except TypeError as error:
        refusal = NotEncodable(
            f"the request cannot be written as UTF-8 JSON: {error}",
            where=where,
            hint="a text holds half of a surrogate pair: replace it when the text is loaded",
        )
        refusal.attempts = 0
        raise refusal from None
