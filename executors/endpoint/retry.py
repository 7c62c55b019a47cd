"""How often and how long a call is tried."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from executors.errors import ValidationError

__all__ = ["RetryPolicy"]

# After how many refused tries a wait is four times as long as after the one before.
_STEEP = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to try.

    A wait after a fault is drawn evenly from 0 up to `first * 2**(tries - 1)`, at most `longest`.
    A server's own wish is waited out in full, up to `longest_wait`; one beyond `seconds` ends the
    run, which can go on after it.
    """

    attempts: int = 5
    """Tries of one call, the first included; 1 never tries again."""
    seconds: float = 300.0
    """From the first try on; a wait that would reach beyond it is not begun."""
    first: float = 1.0
    """Seconds."""
    longest: float = 60.0
    """Seconds."""
    longest_wait: float = 120.0
    """The most of a server's own wish that is waited out before it is asked again, in seconds."""

    def __post_init__(self) -> None:
        if isinstance(self.attempts, bool) or self.attempts < 1:
            raise ValidationError(
                f"attempts={self.attempts!r} is no number of tries", hint="give 1 or more"
            )
        for name in ("seconds", "first", "longest", "longest_wait"):
            value: float = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValidationError(
                    f"{name}={value!r} is no time", hint="give a finite number of seconds >= 0"
                )

    def backoff(self, tries: int, random: Random) -> float:
        """Return the wait after so many failed tries, in seconds: full jitter."""
        return random.uniform(0.0, min(self.longest, self.first * 2.0 ** min(tries - 1, 60)))

    def patience(self, tries: int) -> float:
        """Return the least wait after so many refused tries of one call, in seconds.

        With the defaults five tries reach across a window of a minute that is used up.
        """
        if tries < 1:
            return 0.0
        return min(self.longest, self.first * _STEEP ** min(tries - 1, 60))
