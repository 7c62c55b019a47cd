"""How many calls may be in flight: fewer where a server holds fewer at once than it is sent.

A refusal says little about slots by itself: the same words tell of calls in flight and of calls a
minute. What tells is how many were in flight. Where the server keeps refusing at numbers that it
has never answered together, with whole rounds of answers in between, it is short of slots, and gets
as many as it has held. From there it is given one more in four rounds. One refusal at a number that
it did hold before is about something else, and all slots are back.
"""

from __future__ import annotations

from executors.errors import ValidationError

__all__ = ["Slots"]

# Refusals beyond what was held before slots are what is short.
_SURE = 3


class Slots:
    """At most `cap` at once."""

    __slots__ = ("_answers", "_beyond", "_cap", "_width", "held", "taken", "width")

    def __init__(self, cap: int) -> None:
        self._cap = _checked(cap)
        self._width = float(cap)
        self._answers = self._beyond = 0
        self.taken = 0
        """Calls in flight."""
        self.width = cap
        """How many may be in flight now."""
        self.held = 0
        """The most that were in flight when a call left that was answered."""

    def resize(self, cap: int) -> None:
        """Go on with another cap; what is in flight beyond it ends by itself."""
        narrowed = self._width < self._cap
        self._cap = _checked(cap)
        self._set(min(self._width, cap) if narrowed else cap)

    def answered(self, flight: int) -> None:
        """Count an answer to a call that left as one of so many in flight."""
        self._answers += 1
        self.held = max(self.held, flight)
        if self._width < self._cap:
            self._set(min(float(self._cap), self._width + 0.25 / self._width))

    def refused(self, flight: int) -> bool:
        """Count a refusal, likewise; True when slots were what was short."""
        if flight <= self.held:
            self.held -= 1  # a server may come to hold fewer
            self._beyond = 0
            self._set(float(self._cap))
            return False
        self._beyond += self._answers >= flight
        self._answers = 0
        if self._beyond < _SURE:
            return False
        self._set(max(1.0, float(self.held)))
        return True

    def _set(self, width: float) -> None:
        self._width = width
        self.width = int(width)


def _checked(cap: int) -> int:
    if cap < 1:
        raise ValidationError(f"cap={cap!r} lets no call through", hint="give 1 or more")
    return cap
