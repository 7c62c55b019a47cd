"""How a worker ended, and what it did until then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from executors.errors import Halted, ModelError, ToolBroken
from executors.messages import MalformedCall, Message
from executors.usage import Usage

__all__ = ["Ended", "EndedBy", "Finished", "WorkLog", "Worked"]

EndedBy = Literal[
    "broken-tool",
    "denied",
    "stuck",
    "truncated",
    "refused",
    "context-exceeded",
    "empty",
    "malformed",
    "rounds",
    "halted",
    "failed",
    "stopped",
]
"""Why a worker ended without finishing; `Ended.detail` says more:

broken-tool       a tool said that no call of it can succeed any more; its name
denied            calls were denied in a row; the last tool's name, why, and what would change it
stuck             the same call failed, or gave the same, in a row; the tool's name
truncated         the output cap cut a round: nothing that it called for was run; "max_tokens"
refused           the model would not go on; "refusal"
context-exceeded  the prompt has outgrown the model's window; by how much, where that is known
empty             the model stopped and said nothing, or nothing but reasoning
malformed         tool calls could not be read in a row; the tool's name
rounds            the bound on rounds; the bound
halted            a bound of the run, a policy or a tool said stop; which bound
failed            the model or the way to it failed, or it stopped for a reason unknown to us; its code
stopped           somebody asked the run to stop
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLog:
    """What a worker did."""

    messages: tuple[Message, ...]
    """The whole transcript; each call in it has exactly one result."""
    rounds: int
    """Answers of the model."""
    tool_calls: Mapping[str, int]
    """Calls by tool, as the model wrote the name; denied ones and failures included."""
    usage: Usage
    """Sum over the rounds that reported it; None where none did. An answer that an identical call
    in flight paid for adds nothing."""
    unmetered: int
    """Rounds of which the server reported no usage."""
    cost: Decimal | None
    """USD that this session paid, over the rounds with a known price; None where none has one."""
    unpriced: int
    """Rounds without a known price."""
    temperature: float | None
    """The effective one, of the last round."""
    temperature_dropped: bool
    """One was asked for, and the provider did not take it."""
    malformed: tuple[MalformedCall, ...]
    """Calls that could not be read, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The model came to an end by itself, and this is its answer."""

    text: str
    """Never blank, and without the reasoning that it began with."""
    log: WorkLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Something ended the work before it was done."""

    reason: EndedBy
    detail: str
    error: ModelError | Halted | ToolBroken | None
    """What was raised, where the end was an error."""
    text: str
    """The last that the model said, as evidence; "" where it said nothing."""
    log: WorkLog


Worked = Finished | Ended
