"""Which texts of a run went to which server. A fold over its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from executors.events import CallFailed, CallFinished, ModelMet, ToolFinished

__all__ = ["SentFold", "SentReceipt"]

# Errors of calls that never reached their server.
_NEVER_LEFT = frozenset({"circuit-open", "connect", "connect-timeout"})


@dataclass(slots=True, kw_only=True)
class SentReceipt:
    """What one server was sent, in all sessions."""

    origin: str
    """scheme://host:port."""
    calls: int = 0
    """Answered or not; each counts for every server that it may have reached."""
    tokens: int = 0
    """Of the prompts, as far as they were reported."""
    unmetered: int = 0
    """Calls whose prompts nobody counted: without an answer, or without a reported usage."""
    texts: int = 0
    """Texts of the corpus that a judge was shown, each once; the parts of a long one count each."""
    roles: tuple[str, ...] = ()
    """What the calls were for."""
    models: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    """Kinds of personal data that were masked in everything that it was sent."""
    prices: tuple[str, ...] = ()
    """Tables of published prices that its prices are from."""


@dataclass(slots=True)
class _Sent:
    receipt: SentReceipt
    roles: set[str] = field(default_factory=set[str])
    models: set[str] = field(default_factory=set[str])
    judged_at: set[str] = field(default_factory=set[str])
    """Nodes whose texts a judge was shown there."""
    masks: set[str] | None = None
    prices: set[str] = field(default_factory=set[str])


class SentFold:
    """Adds up what leaves this machine."""

    def __init__(self) -> None:
        self._met: dict[str, list[ModelMet]] = {}
        self._sent: dict[str, _Sent] = {}
        self._tools: set[str] = set()

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that ran."""
        return tuple(sorted(self._tools))

    def take(self, event: ModelMet | ToolFinished) -> None:
        """Take where a model is, or that a tool ran."""
        if isinstance(event, ToolFinished):
            if event.source == "run" and not event.stays:
                self._tools.add(event.tool)
            return
        known = self._met.setdefault(event.model, [])
        if all(_where(one) != _where(event) for one in known):
            known.append(event)

    def call(self, event: CallFinished | CallFailed, place: str) -> None:
        """Take a call.

        Args:
            place: id of the receipt of its node.
        """
        known = self._met.get(event.model)
        if known is None or not _left(event):
            return
        for one in known:
            for origin in dict.fromkeys(_reached(one, event)):
                self._count(origin, event, place, one)

    def receipts(self, texts: Mapping[str, int]) -> tuple[SentReceipt, ...]:
        """Return what each server was sent, by its origin.

        Args:
            texts: by the id of a node, how many it showed a judge.
        """
        return tuple(_finished(self._sent[origin], texts) for origin in sorted(self._sent))

    def _count(
        self, origin: str, event: CallFinished | CallFailed, place: str, met: ModelMet
    ) -> None:
        sent = self._sent.get(origin)
        if sent is None:
            sent = self._sent[origin] = _Sent(SentReceipt(origin=origin))
        receipt = sent.receipt
        receipt.calls += 1
        prompt = event.usage.prompt if isinstance(event, CallFinished) else None
        receipt.tokens += prompt or 0
        receipt.unmetered += prompt is None
        sent.roles.add(event.role)
        sent.models.add(event.model)
        masks = set(met.masks)
        sent.masks = masks if sent.masks is None else sent.masks & masks
        sent.prices |= {met.prices} - {""}
        if event.role == "judge":
            sent.judged_at.add(place)


def _where(met: ModelMet) -> tuple[object, ...]:
    return met.ways, met.masks, met.prices


def _left(event: CallFinished | CallFailed) -> bool:
    """Whether a request may have left for it, by this event: others tell of the same ones again."""
    if isinstance(event, CallFinished):
        return event.source == "paid"
    return event.attempts > 0 and event.error not in _NEVER_LEFT


def _reached(met: ModelMet, event: CallFinished | CallFailed) -> list[str]:
    """Return the origins that a call may have reached; none of this machine."""
    ways = list(met.ways)
    if isinstance(event, CallFinished):
        titles = [title for title, _ in ways]
        by = event.answered_by
        last = 0 if by is None else titles.index(by) if by in titles else len(ways) - 1
        ways = ways[: last + 1]
    return [origin for _, origin in ways if origin]


def _finished(sent: _Sent, texts: Mapping[str, int]) -> SentReceipt:
    receipt = sent.receipt
    most = dict.fromkeys(sent.judged_at, 0)
    for (
        node,
        shown,
    ) in texts.items():  # a scan asks, and each of its passes shows the same texts again
        for place in (node, node.rpartition(".")[0]):
            if place in most:
                most[place] = max(most[place], shown)
    receipt.texts = sum(most.values())
    receipt.roles = tuple(sorted(sent.roles))
    receipt.models = tuple(sorted(sent.models))
    receipt.masks = tuple(sorted(sent.masks or ()))
    receipt.prices = tuple(sorted(sent.prices))
    return receipt
