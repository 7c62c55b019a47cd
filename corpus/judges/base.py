"""The Judge protocol: what looks at a window of parts and says a verdict for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from corpus.records import Part
from corpus.verdicts import Verdict
from executors.ids import ContentKey
from executors.messages import ModelRequest

__all__ = ["Ask", "AskingJudge", "Judge", "JudgeInfo", "JudgeKind", "Window"]

JudgeKind = Literal["chat", "logprob", "rule", "encoder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeInfo:
    """What a judge is, as far as a reader of its count has to know."""

    kind: JudgeKind
    name: str
    """For people: "chat openai:gpt-x", "encoder minilm-int8, head of 80 labels"."""
    identity: ContentKey
    """Everything that decides its verdicts besides criterion, record and pass."""
    deterministic: bool
    """Runs once, whatever number of passes is asked for."""
    scoring: bool
    """States probabilities; without calibration it ranks and never counts."""
    pools: bool
    """Reads a whole record at once (cut to its own length) and decides once: gets no parts."""
    window: int
    """How many items it wants to see at once, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Parts that are judged together."""

    index: int
    pass_index: int
    items: tuple[Part, ...]
    calls: list[ContentKey] = field(default_factory=list[ContentKey], compare=False)
    """Keys of the calls that were answered about it, filled in by a judge that asks."""


class Judge(Protocol):
    """Judges windows."""

    @property
    def info(self) -> JudgeInfo:
        """Constant for the life of the judge."""
        ...

    async def judge(self, window: Window) -> Sequence[Verdict]:
        """Return one verdict for each item, in the order of the items.

        Raises:
            ModelError: no item could be judged; the scan makes each of them unresolved.
            Halted: a bound was reached.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as a judge will send it, for who wants to know before it is paid for."""

    request: ModelRequest
    ordinal: int
    """Of the sample; decides the call's key with the request."""
    shortest: str
    """The shortest reply that answers for each item."""


class AskingJudge(Judge, Protocol):
    """A judge that asks a model."""

    def asks(self, window: Window) -> Sequence[Ask]:
        """Return what the judge asks about a window where nothing goes wrong. Pure."""
        ...
