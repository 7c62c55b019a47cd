"""What a worker is: a model, tools, and the bounds that end it by themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from executors.calls.calls import Calls
from executors.engine.stop import Stop
from executors.errors import ValidationError
from executors.gate.decisions import Decision
from executors.gate.governor import Governor
from executors.ids import NodeId
from executors.messages import CallRole
from executors.models.base import Model
from executors.replies import JsonValue
from executors.tools.base import Arguments, Tool

__all__ = [
    "AskPerson",
    "Guards",
    "Policy",
    "Question",
    "ToolRequest",
    "Tools",
    "Worker",
    "check_tools",
]

_SWITCHED: Final = ("denials", "identical_errors", "identical_calls", "malformed", "seconds_a_tool")
_LEAST: Final = {"rounds": 1, "result_characters": 200}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A call that a model wants run. It never holds a model or a key: it may be written down."""

    tool: str
    arguments: Arguments
    """They fit the tool's schema."""
    context: Mapping[str, JsonValue]
    """The caller's own, as given to the worker."""
    node: NodeId
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked before a call runs."""

    request: ToolRequest
    rule: str
    question: str


Policy = Callable[[ToolRequest], Awaitable[Decision] | Decision]
"""Decides about one call. What raises, or returns anything but a decision, denies. A plain function
runs in a thread."""
AskPerson = Callable[[Question], Awaitable[str]]
"""Returns a person's answer; only yes, y, approve and approved, in any case, allow."""
Tools = Sequence[Tool] | Callable[[], Sequence[Tool]]
"""Tools, or a function that gives them anew before each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What ends a worker by itself. 0 and infinity turn a guard off where its line says so.

    Raises:
        ValidationError: a bound that is negative, no number, or below its least value.
    """

    rounds: int = 100
    """Model calls; always on."""
    denials: float = 3
    """Denied calls in a row, whatever the tool; 0 or infinity: off."""
    identical_errors: float = 3
    """Calls in a row that fail with the same name and arguments; 0 or infinity: off."""
    identical_calls: float = 0
    """Calls in a row that succeed with the same name, arguments and result; 0 or infinity: off."""
    malformed: float = 3
    """Rounds in a row whose tool calls cannot be read; 0 or infinity: off."""
    result_characters: int = 16_000
    """Of one result; a longer one keeps its head and its tail. At least 200."""
    seconds_a_tool: float = 600
    """Of one call; 0 or infinity: off. Tools that replay are bounded by the calls they make."""

    def __post_init__(self) -> None:
        for name in _SWITCHED:
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ValidationError(
                    f"{name}={value!r} bounds nothing",
                    hint="give a number from 0 on; 0 and infinity turn this guard off",
                )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValidationError(
                    f"{name}={value!r} bounds nothing", hint=f"give a whole number from {least} on"
                )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worker:
    """A model with tools, at a node of the tree.

    Node and ordinal together name one piece of work: what its tools did is filed under them.

    Raises:
        ValidationError: what stands among the tools is none, or two share a name.
    """

    calls: Calls
    model: Model
    node: NodeId
    depth: int
    system: str
    """The system prompt; blank: none is sent."""
    tools: Tools = ()
    role: CallRole = "worker"
    ordinal: int = 0
    policy: Policy | None = None
    """None allows every call."""
    ask: AskPerson | None = None
    """None denies what a person would have to decide."""
    governor: Governor | None = None
    """Decides about what the policy allows, and hears what came of it; None allows every call."""
    context: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    temperature: float | None = None
    max_tokens: int = 4096
    """Of the output of one round."""
    guards: Guards = field(default_factory=Guards)
    on_text: Callable[[str], None] | None = None
    """Hears the text of each round as it comes."""
    stop: Stop | None = None

    def __post_init__(self) -> None:
        if not callable(self.tools):
            check_tools(self.tools)
        if self.max_tokens < 1:
            raise ValidationError(f"max_tokens={self.max_tokens!r} leaves no room for an answer")
        for name in ("policy", "ask", "on_text"):
            value: object = getattr(self, name)
            if value is not None and not callable(value):
                raise ValidationError(f"{name}={value!r}"[:200], hint="give a function")


def check_tools(tools: Sequence[Tool]) -> None:
    """Refuse what is no tool, and names that stand twice.

    Raises:
        ValidationError: which one, and why.
    """
    seen: set[str] = set()
    for tool in cast("Sequence[object]", tools):
        if not isinstance(tool, Tool):
            raise ValidationError(
                f"{tool!r} is no tool"[:200], hint="make one of a function: rlm.tool(function)"
            )
        if tool.name in seen:
            raise ValidationError(
                f"two tools are named {tool.name!r}", hint="give each a name of its own"
            )
        seen.add(tool.name)
