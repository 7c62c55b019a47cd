"""Asking a person: one question a time, and an answer within a bound, whatever they do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from executors.boundary import Overdue, Raised, Returned, attempt, described
from executors.errors import Halted
from executors.gate.people.turnstile import Turn, Turnstile

__all__ = ["Asking", "Silence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No answer came."""

    reason: str


class Asking:
    """Puts questions to a caller's function.

    Once nobody answered one in time, those who wait in line for their turn are not heard either:
    many askers would else wait for one person's absence one after another.

    Args:
        ask: the function; a plain one runs in a thread of its own, which is left behind when its
            time is up, and when whoever asks is cancelled.
        seconds: that an answer may take. A later one is ignored.
    """

    def __init__(self, ask: Callable[..., object], *, seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._turns = Turnstile()

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Turn]:
        """Hold the person's attention; those who come meanwhile wait."""
        async with self._turns.turn() as turn:
            yield turn

    async def answer(self, question: object, turn: Turn) -> Returned | Silence:
        """Return what the function gave, whatever that is, or why there is no answer."""
        if turn.abandoned:
            return Silence(reason="nobody answered a question before this one")
        begun = anyio.current_time()
        try:
            got = await attempt(self._ask, question, seconds=self._seconds, longest=0)
        except Halted as halted:  # of the asking: a person's word is no halt of ours
            got = Raised(error=halted)
        if isinstance(got, Overdue) or anyio.current_time() - begun >= self._seconds:
            # Also where it did answer, having swallowed that its time was up.
            self._turns.walk_away()
            return Silence(reason=f"nobody answered within {self._seconds:g} s")
        if isinstance(got, Raised):
            return Silence(reason=f"asking a person raised {described(got.error)}")
        return got
