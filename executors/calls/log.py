"""The events of one model call: each start has exactly one end."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from executors.clock import Clock
from executors.errors import Halted, InternalError, ModelError
from executors.events import CallFailed, CallFinished, CallStarted, Emit, Retried, Warned
from executors.gate.allowance import Estimate
from executors.ids import ContentKey, NodeId
from executors.makers import maker
from executors.messages import CallRole, ModelReply
from executors.secrets import scrub

__all__ = ["Answer", "CallLog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply with what it cost. `cost` is None when the price or the usage is unknown."""

    reply: ModelReply
    key: ContentKey
    cost: Decimal | None
    attempts: int
    """Requests that it took; 0 when it came from a journal or an identical call in flight."""
    source: Literal["paid", "shared", "journal"]


_call_started = maker(CallStarted)
_call_finished = maker(CallFinished)


class CallLog:
    """Emits what happens to one call; the tag of its reservations as well."""

    __slots__ = ("_clock", "_emit", "key", "model", "node", "role")

    def __init__(
        self, emit: Emit, clock: Clock, *, key: ContentKey, model: str, role: CallRole, node: NodeId
    ) -> None:
        self._emit = emit
        self._clock = clock
        self.key = key
        self.model = model
        self.role: CallRole = role
        self.node = node

    def started(self) -> None:
        """The call got its reservation and leaves."""
        self._emit(
            _call_started(
                node=self.node,
                at=self._clock.now(),
                key=self.key,
                role=self.role,
                model=self.model,
            )
        )

    def retried(self, attempt: int, error: ModelError, wait: float, worst: Estimate | None) -> None:
        """A try failed, and another follows after `wait` seconds.

        Args:
            worst: what it was charged for, where it may have been billed.
        """
        self._emit(
            Retried(
                node=self.node,
                at=self._clock.now(),
                key=self.key,
                attempt=attempt,
                error=error.code,
                wait=wait,
                possibly_paid=error.maybe_paid,
                worst_tokens=None if worst is None else worst.tokens,
                worst_usd=None if worst is None else worst.usd,
            )
        )

    def finished(self, answer: Answer, seconds: float) -> None:
        """The call was answered and settled."""
        self._emit(
            _call_finished(
                node=self.node,
                at=self._clock.now(),
                key=self.key,
                role=self.role,
                model=self.model,
                stop=answer.reply.stop,
                usage=answer.reply.usage,
                cost=answer.cost,
                attempts=answer.attempts,
                seconds=seconds,
                source=answer.source,
                temperature=answer.reply.temperature,
                answered_by=answer.reply.answered_by,
            )
        )

    def failed(
        self, error: BaseException, *, attempts: int, worst: Estimate | None, seconds: float
    ) -> None:
        """The call ended without an answer.

        Args:
            worst: what its last try was charged for, where it may have been billed.
        """
        code, message = _named(error)
        self._emit(
            CallFailed(
                node=self.node,
                at=self._clock.now(),
                key=self.key,
                role=self.role,
                model=self.model,
                error=code,
                message=scrub(message),
                attempts=attempts,
                seconds=seconds,
                possibly_paid=worst is not None,
                worst_tokens=None if worst is None else worst.tokens,
                worst_usd=None if worst is None else worst.usd,
            )
        )

    def refused(self, error: ModelError | Halted) -> None:
        """The call ended without a request of its own; a halt is no failure of the call."""
        if isinstance(error, ModelError):
            self.failed(error, attempts=0, worst=None, seconds=0.0)

    def overrun(self) -> None:
        """The call used more than was reserved for it."""
        self._emit(
            Warned(
                node=self.node,
                at=self._clock.now(),
                code="overrun",
                message="a call used more than the worst case that was reserved for it",
            )
        )


def _named(error: BaseException) -> tuple[str, str]:
    match error:
        case ModelError() | Halted():
            return error.code, error.what
        case Exception():
            return InternalError.code, f"{type(error).__name__}: {error}"
        case _:
            return "cancelled", "cancelled"
