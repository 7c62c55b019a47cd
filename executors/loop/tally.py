"""What a worker used, added up round by round."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from decimal import Decimal
from types import MappingProxyType

from executors.calls.log import Answer
from executors.loop.worked import WorkLog
from executors.messages import MalformedCall, Message
from executors.usage import Usage

__all__ = ["Tally"]


class Tally:
    """Adds up. Unknown stays unknown: None is never counted as zero."""

    def __init__(self, *, temperature: float | None) -> None:
        self._wanted = temperature
        self._effective: float | None = None
        self._dropped = False
        self._rounds = self._unmetered = self._unpriced = 0
        self._usage: Counter[str] = Counter()
        self._cost: Decimal | None = None
        self._calls: Counter[str] = Counter()
        self.malformed: list[MalformedCall] = []

    def answered(self, answer: Answer) -> None:
        """Add one round."""
        reply = answer.reply
        self._rounds += 1
        self._effective = reply.temperature
        self._dropped |= self._wanted is not None and reply.temperature is None
        self._unpriced += answer.cost is None
        if answer.cost is not None:
            self._cost = (self._cost or Decimal(0)) + answer.cost
        self._unmetered += reply.usage.total is None
        if answer.source == "shared":
            return
        for tier in fields(Usage):
            tokens: int | None = getattr(reply.usage, tier.name)
            if tokens is not None:
                self._usage[tier.name] += tokens

    def called(self, name: str) -> None:
        """Add one call of a tool."""
        self._calls[name] += 1

    def log(self, messages: tuple[Message, ...]) -> WorkLog:
        """Return all of it."""
        return WorkLog(
            messages=messages,
            rounds=self._rounds,
            tool_calls=MappingProxyType(dict(self._calls)),
            usage=Usage(**self._usage),
            unmetered=self._unmetered,
            cost=self._cost,
            unpriced=self._unpriced,
            temperature=self._effective,
            temperature_dropped=self._dropped,
            malformed=tuple(self.malformed),
        )
