"""What is said to a model and what comes back, in one neutral shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from executors.usage import Usage

__all__ = [
    "CallRole",
    "Message",
    "ModelReply",
    "ModelRequest",
    "ResponseSchema",
    "StopReason",
    "TokenLogprob",
]

CallRole = Literal["worker", "planner", "judge", "verifier", "merge", "summary"]
StopReason = Literal[
    "end", "max_tokens", "refusal", "context_exceeded", "tool_use", "pause", "other"
]
"""Only "end" is a clean finish. "other" keeps the provider's own word in `stop_raw`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of text."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSchema:
    """A JSON Schema that the reply has to fit, where the model can be held to one."""

    name: str
    schema: Mapping[str, object]
    canonical: str = field(init=False, compare=False)
    """The schema as canonical JSON: computed once, since every call key contains it."""

    def __post_init__(self) -> None:
        text = json.dumps(self.schema, sort_keys=True, separators=(",", ":"), allow_nan=False)
        object.__setattr__(self, "canonical", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything that decides an answer. None means: not sent, the provider's default."""

    messages: tuple[Message, ...]
    max_tokens: int
    """Bound on output tokens; always sent, since the worst case is reserved before the call."""
    temperature: float | None = None
    seed: int | None = None
    schema: ResponseSchema | None = None
    top_logprobs: int | None = None
    """How many alternatives to report for each output token."""
    stop: tuple[str, ...] = ()
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One output token with its natural-log probability and the alternatives at its place."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A finished answer. Text of a reply that did not end cleanly is evidence, never a verdict."""

    text: str
    stop: StopReason
    stop_raw: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """The name that the server says answered."""
    reasoning: str | None = None
    """Thinking text, kept apart: it is never an answer."""
    token_logprobs: tuple[TokenLogprob, ...] | None = None
    temperature: float | None = None
    """The effective temperature; None when it was not sent or was dropped."""
    requests: int = 1
    """Requests on the wire that this answer took: more when a refused parameter was dropped."""
