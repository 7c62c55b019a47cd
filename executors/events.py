"""The base of all events. Each package declares its own kinds; receipts are folds over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Literal

from executors.ids import NodeId
from executors.messages import CallRole
from executors.usage import Usage

__all__ = [
    "CallFailed",
    "CallFinished",
    "CallStarted",
    "Emit",
    "Event",
    "ModelMet",
    "Retried",
    "ToolEnd",
    "ToolFinished",
    "ToolStarted",
    "Warned",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a node of the run."""

    kind: ClassVar[str] = "event"

    node: NodeId
    at: datetime


Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    """Something the reader of the result has to know."""

    kind: ClassVar[str] = "warned"

    code: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMet(Event):
    """A model is about to be asked for the first time, and some of what it is shown leaves this machine."""

    kind: ClassVar[str] = "model_met"

    model: str
    """As its calls name it."""
    ways: tuple[tuple[str, str], ...]
    """Who may answer, in the order they are asked: the name that calls know it by, and the origin of its
    server; "" where that is this machine."""
    masks: tuple[str, ...] = ()
    """Kinds of personal data that it is not shown."""
    prices: str = ""
    """The table of published prices that its price is from, and how new that is; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted(Event):
    """A model call got its reservation and leaves."""

    kind: ClassVar[str] = "call_started"

    key: str
    role: CallRole
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried(Event):
    """One attempt failed and another follows after `wait` seconds."""

    kind: ClassVar[str] = "retried"

    key: str
    attempt: int
    error: str
    wait: float
    """Seconds."""
    possibly_paid: bool
    """The failed attempt may have been billed: its reservation was charged."""
    worst_tokens: int | None = None
    """What was charged for it: at most what it cost. None where nothing was, or nobody knows."""
    worst_usd: Decimal | None = None
    """Of that; None also where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(Event):
    """A model call was answered and settled."""

    kind: ClassVar[str] = "call_finished"

    key: str
    role: CallRole
    model: str
    stop: str
    usage: Usage
    cost: Decimal | None
    attempts: int
    seconds: float
    source: str
    """Either "paid", "shared" (an identical call in flight) or "journal"."""
    temperature: float | None = None
    """The effective one; None when none was sent, so that the server's own held."""
    answered_by: str | None = None
    """The model that answered in place of the one that was asked; None where it did so itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed(Event):
    """A model call ended without an answer."""

    kind: ClassVar[str] = "call_failed"

    key: str
    role: CallRole
    model: str
    error: str
    message: str
    attempts: int
    seconds: float
    possibly_paid: bool
    worst_tokens: int | None = None
    """What the last attempt was charged for, where it may have been billed."""
    worst_usd: Decimal | None = None
    """Of that; None also where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A worker's model called for a tool."""

    kind: ClassVar[str] = "tool_started"

    tool: str
    """As the model wrote it."""
    round: int
    """Of the worker, from 0."""
    index: int
    """Of the call within its round, from 0."""
    arguments: str
    """JSON, its first 200 characters, without secrets."""


ToolEnd = Literal["done", "failed", "denied", "unfit", "interrupted", "cancelled", "halted"]
"""How a call of a tool ended: "unfit" has no such tool or arguments that do not fit, "interrupted"
began in an earlier session and nobody knows what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """A call of a tool ended, in whatever way."""

    kind: ClassVar[str] = "tool_finished"

    tool: str
    round: int
    index: int
    end: ToolEnd
    seconds: float
    source: Literal["run", "journal", "none"]
    """Where its result is from; "none" where the tool did not run."""
    characters: int
    """Of the result that the model reads."""
    stays: bool = False
    """It sent nothing anywhere but by calls of models; where it may have, nobody knows what."""
