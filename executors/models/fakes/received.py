"""A request as a fake server gets it, and what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import orjson

from executors.messages import Message, ModelRequest, ResponseSchema, ToolCall, ToolSpec
from executors.models.openai.turns import turn_of

__all__ = ["Received"]


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request as it arrived. `index` counts requests from 0."""

    index: int
    method: str
    path: str
    head: bytes
    body: bytes

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """Header fields by lower-case name."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    @cached_property
    def json(self) -> Mapping[str, object]:
        """The body as a JSON object; an empty one when it is none."""
        try:
            value: object = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return {}
        return cast(dict[str, object], value) if isinstance(value, dict) else {}

    @cached_property
    def request(self) -> ModelRequest:
        """What it asks for, as the caller of a model would say it.

        Raises:
            AttributeError, KeyError, TypeError: it is no request for a completion.
        """
        body = cast("dict[str, Any]", self.json)
        model = str(body.get("model", ""))
        held_to = body.get("response_format", {}).get("json_schema")
        tools = [tool["function"] for tool in body.get("tools", ())]
        choice: object = body.get("tool_choice")
        return ModelRequest(
            messages=tuple(_message(m, model) for m in body["messages"]),
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or 1,
            temperature=body.get("temperature"),
            seed=body.get("seed"),
            schema=held_to and ResponseSchema(name=held_to["name"], schema=held_to["schema"]),
            tools=tuple(
                ToolSpec(name=t["name"], description=t["description"], parameters=t["parameters"])
                for t in tools
            ),
            tool_choice=choice if choice is None or isinstance(choice, str) else _named(choice),
            top_logprobs=body.get("top_logprobs"),
            stop=tuple(body.get("stop", ())),
            stream=body.get("stream", False),
        )


def _named(choice: object) -> str:
    return cast("dict[str, dict[str, str]]", choice)["function"]["name"]


def _message(sent: dict[str, Any], model: str) -> Message:
    turn = turn_of(sent)
    return Message(
        role=sent["role"],
        content=sent["content"] or "",
        calls=tuple(
            ToolCall(
                id=call["id"],
                name=call["function"]["name"],
                arguments=call["function"]["arguments"],
            )
            for call in sent.get("tool_calls", ())
        ),
        call_id=sent.get("tool_call_id"),
        blocks=turn.blocks(model),
    )
