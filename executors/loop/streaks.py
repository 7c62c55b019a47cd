"""What happens again and again: denials, the same failing call, the same call without progress."""

from __future__ import annotations

from math import inf

__all__ = ["Streak", "Streaks"]


class Streak:
    """Counts how often in a row the same thing happened; a bound of 0 never trips."""

    def __init__(self, bound: float) -> None:
        self._bound = bound or inf
        self._what: object = None
        self._times = 0

    def again(self, what: object) -> bool:
        """Note that it happened; return whether that was once too often."""
        self._times = self._times + 1 if what == self._what else 1
        self._what = what
        return self._times >= self._bound

    def broken(self) -> None:
        """Begin anew."""
        self._what, self._times = None, 0


class Streaks:
    """The streaks of one worker, over all its rounds."""

    def __init__(self, *, denials: float, identical_errors: float, identical_calls: float) -> None:
        self._denials = Streak(denials)
        self._errors = Streak(identical_errors)
        self._calls = Streak(identical_calls)

    def allowed(self) -> None:
        """A call may run."""
        self._denials.broken()

    def denied(self) -> bool:
        """Return whether this denial, of whatever tool, is one too many."""
        return self._denials.again("denied")

    def failed(self, name: str, arguments: str) -> bool:
        """Return whether this failure repeats the same call once too often."""
        self._calls.broken()
        return self._errors.again((name, arguments))

    def succeeded(self, name: str, arguments: str, result: str) -> bool:
        """Return whether this success repeats the same call with the same result too often."""
        self._errors.broken()
        return self._calls.again((name, arguments, result))
