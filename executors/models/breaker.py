"""A model that is left alone for a while when it fails, so that others can be asked meanwhile."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Literal, cast

from executors.clock import Clock, SystemClock
from executors.errors import (
    CircuitOpen,
    DeadlineExceeded,
    MalformedReply,
    ModelError,
    ServerFault,
    TransportFault,
    ValidationError,
)
from executors.messages import ModelReply, ModelRequest
from executors.models.base import Model, ModelInfo, StreamingModel, require_model

__all__ = ["Breaker", "Circuit", "is_outage"]

Circuit = Literal["closed", "open", "half-open"]
"""Calls go through; none does; one does, to see."""


def is_outage(error: ModelError) -> bool:
    """Say whether an error speaks of a server that is down, and not of a call or an account."""
    return isinstance(error, ServerFault | TransportFault | DeadlineExceeded | MalformedReply)


def _is_time(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= cast("float", value) < math.inf


class Breaker:
    """Asks a model as long as it works.

    After `threshold` outages in a row nothing is sent for `reset` seconds; each call is a
    CircuitOpen. Then one call is let through: its answer lets all the others follow, another outage
    makes them wait as long again. Calls that left before the circuit last changed say nothing about
    it any more.

    Args:
        counts: which errors are outages; any other is an answer, as far as the circuit goes.
        on_change: called with each new state; must not block.

    Raises:
        ValidationError: what is no model, a threshold that is no number from 1 on, a time that is
            none, or a callback that cannot be called.
    """

    def __init__(
        self,
        model: Model,
        *,
        threshold: int = 5,
        reset: float = 60.0,
        counts: Callable[[ModelError], bool] = is_outage,
        clock: Clock | None = None,
        on_change: Callable[[Circuit], None] | None = None,
    ) -> None:
        require_model(model, where="rlm.Breaker")
        if (
            not isinstance(cast("object", threshold), int)
            or isinstance(threshold, bool)
            or threshold < 1
        ):
            raise ValidationError(
                f"threshold={threshold!r} is no number of failures",
                where="rlm.Breaker",
                hint="give 1 or more",
            )
        if not _is_time(reset):
            raise ValidationError(
                f"reset={reset!r} is no time",
                where="rlm.Breaker",
                hint="give a finite number of seconds >= 0",
            )
        for name, given in (("counts", counts), ("on_change", on_change)):
            if given is not None and not callable(cast("object", given)):
                raise ValidationError(
                    f"{name}={given!r} cannot be called",
                    where="rlm.Breaker",
                    hint="give a function",
                )
        self._model = model
        self._threshold = threshold
        self._reset = reset
        self._counts = counts
        self._clock = clock or SystemClock()
        self._on_change = on_change
        self._state: Circuit = "closed"
        self._failures = 0
        self._until = 0.0
        self._probing = False
        self._generation = 0

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    @property
    def state(self) -> Circuit:
        """What happens to the next call; an open circuit whose time is over is half open."""
        if self._state == "open" and self._clock.monotonic() >= self._until:
            return "half-open"
        return self._state

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._guarded(lambda: self._model.generate(request))

    async def generate_streaming(
        self, request: ModelRequest, on_text: Callable[[str], None]
    ) -> ModelReply:
        model = self._model
        if not isinstance(model, StreamingModel):
            return await self.generate(request)
        return await self._guarded(lambda: model.generate_streaming(request, on_text))

    async def aclose(self) -> None:
        await self._model.aclose()

    def close(self) -> None:
        """Let calls through again, whatever was."""
        self._turn("closed")

    async def _guarded(self, ask: Callable[[], Awaitable[ModelReply]]) -> ModelReply:
        generation = self._enter()
        try:
            reply = await ask()
        except ModelError as error:
            self._learn(generation, failed=self._counts(error))
            raise
        except BaseException:  # nobody knows: the next call may see
            if generation == self._generation:
                self._probing = False
            raise
        self._learn(generation, failed=False)
        return reply

    def _enter(self) -> int:
        """Let a call through and return the generation that it belongs to.

        Raises:
            CircuitOpen: it has to wait.
        """
        if self.state == "closed":
            return self._generation
        if self._state == "open" and self.state == "half-open":
            self._turn("half-open")
        if self._state == "open" or self._probing:
            left = max(0.0, self._until - self._clock.monotonic())
            where = f"model {self.info.title}"
            raise CircuitOpen(where=where, failures=self._failures, retry_after=left)
        self._probing = True
        return self._generation

    def _learn(self, generation: int, *, failed: bool) -> None:
        if generation != self._generation:
            return
        if not failed:
            self._failures = 0
            if self._state != "closed":
                self._turn("closed")
            return
        self._failures += 1  # goes on while the circuit is open: one more failure opens it again
        if self._failures >= self._threshold:
            self._until = self._clock.monotonic() + self._reset
            self._turn("open")

    def _turn(self, state: Circuit) -> None:
        changed = state != self._state
        self._state = state
        self._generation += 1
        self._probing = False
        if state == "closed":
            self._failures = 0
        if changed and self._on_change is not None:
            self._on_change(state)
