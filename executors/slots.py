"""How many calls may be in flight: fewer where a server says "too many", and more again after.

A refusal of a call that left when more were in flight than were ever answered together takes a slot
away: so that what is left is what the server held at once. Each answer then adds a slot up to half
of what was too much, and from there one slot in four rounds, much as TCP does it: what the server
holds is found, and rarely passed. Other refusals say nothing about slots, but about the pace.
"""

from __future__ import annotations

from executors.errors import ValidationError

__all__ = ["Slots"]


class Slots:
    """At most `cap` at once."""

    __slots__ = ("_calm", "_cap", "_width", "held", "taken", "width")

    def __init__(self, cap: int) -> None:
        self._cap = _checked(cap)
        self._width = self._calm = float(cap)
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

    def narrow(self, flight: int, *, anew: bool) -> bool:
        """Count a refusal of a call that is still in flight; True when slots were what it lacked.

        Args:
            flight: calls in flight when it left, itself included.
            anew: False for one that left before the last refusal was known.
        """
        if flight <= self.held:
            self.held -= anew  # a server may come to hold less
            return False
        crowded = flight >= self.width
        left = min(self._width, self.taken)
        if anew:
            self._calm = max(1.0, left / 2)
        self._set(max(1.0, float(self.held), left - 1.0))
        return crowded

    def widen(self) -> None:
        """Count an answer."""
        if self._width < self._cap:
            step = 1.0 if self._width < self._calm else 0.25 / self._width
            self._set(min(float(self._cap), self._width + step))

    def _set(self, width: float) -> None:
        self._width = width
        self.width = int(width)


def _checked(cap: int) -> int:
    if cap < 1:
        raise ValidationError(f"cap={cap!r} lets no call through", hint="give 1 or more")
    return cap
