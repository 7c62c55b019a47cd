"""What is said to a model and what comes back, in one neutral shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from executors.usage import Usage

__all__ = [
    "CallRole",
    "MalformedCall",
    "Message",
    "ModelReply",
    "ModelRequest",
    "ProviderBlocks",
    "ResponseSchema",
    "StopReason",
    "TokenLogprob",
    "ToolCall",
    "ToolSpec",
]

CallRole = Literal["worker", "planner", "judge", "verifier", "merge", "summary"]
StopReason = Literal[
    "end", "max_tokens", "refusal", "context_exceeded", "tool_use", "pause", "other"
]
"""Only "end" is a clean finish. "other" keeps the provider's own word in `stop_raw`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What a model wants a tool to do."""

    id: str
    """The provider's name for it; its result carries the same one."""
    name: str
    arguments: str
    """Canonical JSON, whatever the provider wrote; an object unless the model was wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedCall:
    """A tool call that is no JSON: nothing of its round is run or replayed."""

    name: str
    raw: str
    """What stood in place of arguments, its first 2,000 characters."""
    reason: str
    """Why it cannot be read, with the position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderBlocks:
    """What a provider wants back untouched with the turn that it came with, such as signed thinking.

    A signature binds it to its model, so another one never gets it.
    """

    provider: str
    model: str
    data: str
    """JSON as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn. Each call of an assistant's turn has exactly one "tool" turn that answers it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's turn."""
    call_id: str | None = None
    """Of a tool's turn: which call it answers."""
    blocks: ProviderBlocks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a model is told of a tool."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema of an object."""
    canonical: str = field(init=False, compare=False)
    """All of it as canonical JSON, for keys and for counting tokens."""

    def __post_init__(self) -> None:
        whole = [self.name, self.description, self.parameters]
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
        object.__setattr__(self, "canonical", text)


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
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | None = None
    """ "auto", "required", "none", or the name of the one tool to call; sent with tools alone."""
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
    answered_by: str | None = None
    """Which model answered in place of the one that was asked; None when that one did."""
    unsettled: int = 0
    """Tries at other models before this answer that may have been billed."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that it wants run; none where the round was cut or refused, or one was malformed."""
    malformed: MalformedCall | None = None
    """The first tool call that could not be read; its round has no calls at all."""
    blocks: ProviderBlocks | None = None
    reasoning: str | None = None
    """Thinking text, kept apart: it is never an answer."""
    token_logprobs: tuple[TokenLogprob, ...] | None = None
    temperature: float | None = None
    """The effective temperature; None when it was not sent or was dropped."""
    cost: Decimal | None = None
    """USD that the server says it took for this answer; None where it says nothing of it."""
    requests: int = 1
    """Requests on the wire that this answer took: more when a refused parameter was dropped."""

    @property
    def whole(self) -> bool:
        """Whether it came to its end by itself, or its server does not say how, and nothing cut it."""
        return self.stop == "end" or (self.stop == "other" and self.stop_raw is None)
