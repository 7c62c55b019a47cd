"""What calls used and cost, and what those may have cost of which no answer is known."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Final

from executors.events import CallFailed, CallFinished, Retried

__all__ = ["LOST", "Totals"]

LOST: Final = "lost"
"""Code of a call that was in flight when its process died."""


@dataclass(slots=True, kw_only=True)
class Totals:
    """What calls used. Unknown usage is counted in calls, never as zero tokens."""

    calls: int = 0
    """Answered and paid for."""
    attempts: int = 0
    """Requests sent for them and for those that failed."""
    shared: int = 0
    replayed: int = 0
    failed: int = 0
    possibly_paid: int = 0
    """Attempts without an answer that may have been billed; the budget was charged for them."""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    unmetered: int = 0
    """Paid calls of which the server reported no usage."""
    cost: Decimal = Decimal(0)
    """USD, over the calls whose price is known."""
    unpriced: int = 0
    lost: int = 0
    """Calls in flight when their process died; among those that failed and are possibly paid."""
    lost_tokens: int = 0
    """At most: what the budget was charged for them."""
    lost_usd: Decimal = Decimal(0)
    """At most, where the price is known."""
    unanswered_tokens: int = 0
    """At most: what the budget was charged for the other attempts that are possibly paid."""
    unanswered_usd: Decimal = Decimal(0)
    """At most, where the price is known."""

    @property
    def tokens(self) -> int:
        """All tokens that were reported."""
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def unanswered(self) -> int:
        """Attempts that are possibly paid, without those of calls that were lost."""
        return max(0, self.possibly_paid - self.lost)

    def finished(self, event: CallFinished) -> None:
        """Count an answered call."""
        match event.source:
            case "shared":
                self.shared += 1
                return
            case "journal":
                self.replayed += 1
                return
            case _:
                self.calls += 1
        usage = event.usage
        self.attempts += event.attempts
        self.input += usage.input or 0
        self.cache_read += usage.cache_read or 0
        self.cache_write += usage.cache_write or 0
        self.output += usage.output or 0
        self.unmetered += usage.input is None or usage.output is None
        self.unpriced += event.cost is None
        self.cost += event.cost or 0

    def failed_call(self, event: CallFailed) -> None:
        """Count a call without an answer."""
        self.failed += 1
        self.attempts += event.attempts
        if event.error != LOST:
            self._unanswered(event)
            return
        self.possibly_paid += event.possibly_paid
        self.lost += 1
        self.lost_tokens += event.worst_tokens or 0
        self.lost_usd += event.worst_usd or 0

    def retried(self, event: Retried) -> None:
        """Count an attempt that another one followed."""
        self._unanswered(event)

    def _unanswered(self, event: CallFailed | Retried) -> None:
        if event.possibly_paid:
            self.possibly_paid += 1
            self.unanswered_tokens += event.worst_tokens or 0
            self.unanswered_usd += event.worst_usd or 0

    def add(self, other: Totals) -> None:
        """Take in what others used."""
        for part in fields(Totals):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))
