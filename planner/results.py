"""What comes of the steps of a plan, and how often each is tried. Values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, Literal, TypeGuard, TypeVar, cast

from executors.errors import RlmError, ValidationError
from planner.plan import Step

__all__ = [
    "StepDone",
    "StepFailed",
    "StepResult",
    "StepRetry",
    "StepSkipped",
    "StepState",
    "is_count",
    "is_passing",
]

R = TypeVar("R")

StepState = Literal["running", "done", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone(Generic[R]):
    """A step whose work returned, whatever it returned."""

    step: Step
    value: R


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    """A step whose work raised, after all its tries."""

    step: Step
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSkipped:
    """A step that was not begun, since a step that it waits for failed or was skipped."""

    step: Step
    dependency: str
    """Id of the step that it waits for itself."""
    cause: str
    """Id of the step that failed in the first place."""

    @property
    def reason(self) -> str:
        """Why, in words."""
        return f"dependency {self.dependency!r} failed"


StepResult = StepDone[R] | StepFailed | StepSkipped


def is_passing(error: Exception) -> bool:
    """Whether an error may be gone on the next try: a time-out, a lost connection, or said so."""
    if isinstance(error, RlmError):
        return error.retryable
    return isinstance(error, TimeoutError | ConnectionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRetry:
    """How often a whole step is tried; model calls have their own retries beneath.

    Raises:
        ValidationError: fewer tries than one, a wait that is negative or endless, or a `when` that
            cannot be called.
    """

    attempts: int = 2
    """Tries in all, the first included."""
    wait: float = 0.0
    """Seconds before the second try; doubled before each further one."""
    when: Callable[[Exception], bool] = is_passing
    """Which errors are worth a try more. Halts and cancellation never are."""

    def __post_init__(self) -> None:
        if not is_count(self.attempts):
            raise ValidationError(
                f"attempts={self.attempts!r}", where="rlm.StepRetry", hint="give 1 or more tries"
            )
        if not _is_wait(self.wait):
            raise ValidationError(
                f"wait={self.wait!r}", where="rlm.StepRetry", hint="give seconds, from 0 on"
            )
        if not callable(cast("object", self.when)):
            raise ValidationError(
                f"when={self.when!r} cannot be called"[:200],
                where="rlm.StepRetry",
                hint="give a function of an error",
            )


def _is_wait(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number from 1 on; True is none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
