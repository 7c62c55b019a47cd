"""The way of a gate to a person, and what their answer means."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from executors.boundary import Raised, Returned, attempt_now
from executors.errors import Halted
from executors.gate.config.human import HumanSection
from executors.gate.people.asking import Asking, Silence
from executors.gate.people.human import Human, HumanEvent, Refuse, Reply, plain_reply
from executors.gate.people.turnstile import Turn

__all__ = ["Channel"]

_NOBODY: Final = "a person would have to decide, and no channel to one is attached"


class Channel:
    """Asks a person, or says no at once where there is none.

    Args:
        human: who is asked; None denies.
        warn: hears once that somebody should have been asked and nobody is there.
    """

    def __init__(
        self, human: Human | None, section: HumanSection, *, warn: Callable[[str], None]
    ) -> None:
        self._attached = human is not None
        self._asking = Asking(human or _nobody, seconds=section.timeout_seconds)
        self._warn = warn
        self._warned = False

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Turn]:
        """Hold the person's attention; those who ask at the same time wait."""
        async with self._asking.turn() as turn:
            yield turn

    async def ask(self, event: HumanEvent, turn: Turn) -> Reply:
        """Return what a person says; silence, an error and riddles are a no."""
        if not self._attached:
            if not self._warned:
                self._warned = True
                self._warn(f"{_NOBODY}: give the gate one, as with human=terminal_human()")
            return Refuse(reason=_NOBODY)
        got = await self._asking.answer(event, turn)
        return Refuse(reason=got.reason) if isinstance(got, Silence) else _understood(got.value)


def _nobody(event: HumanEvent) -> Refuse:
    del event
    return Refuse(reason=_NOBODY)


def _understood(said: object) -> Reply:
    try:
        read = attempt_now(plain_reply, said)
    except Halted as halted:
        read = Raised(error=halted)
    if isinstance(read, Returned) and isinstance(read.value, Reply):
        return read.value
    return Refuse(reason="the answer could not be read")
