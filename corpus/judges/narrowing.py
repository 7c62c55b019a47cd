"""Narrowing down: texts that failed together are asked in halves, so that one costs its own verdict.

A text that the server rejects, that the model refuses or that makes it answer nonsense takes its
neighbours with it. Halves, and halves of halves, find it: with one such text among n that is at
most 2 log2(n) further calls, and the others are all judged. What is asked follows from the texts
and the replies alone, so that a resumed, a replayed and a distributed run ask the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from corpus.judges.answers import Gap, Outcome
from corpus.records import Part

__all__ = ["Narrowing", "failed"]

_ALONE: Final = 2

Look = Callable[[list[Part], bool], Awaitable[list[Outcome]]]
"""Asks about parts together and makes gaps of errors; told whether there are verdicts to keep."""


def failed(outcomes: list[Outcome]) -> Gap | None:
    """Return why parts failed together; None where one of them was answered."""
    first = outcomes[0]
    if not isinstance(first, Gap) or not all(isinstance(outcome, Gap) for outcome in outcomes):
        return None
    return first


class Narrowing:
    """Narrows one window down.

    Where texts fail alone too and nothing of the window was ever answered, it is not the texts that
    fail but the model: then the rest is given up, after 2 log2(n) further calls again.

    Args:
        kept: something of the window was answered already.
        unread: also what was answered and could not be read is narrowed down.
    """

    def __init__(self, look: Look, *, kept: bool = False, unread: bool = False) -> None:
        self._look = look
        self._answered = kept
        self._unread = unread
        self._alone = 0

    async def __call__(self, parts: list[Part], outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes of parts that were asked together, narrowed down where they failed."""
        gap = failed(outcomes)
        if gap is None or not (gap.narrow or (self._unread and gap.again)):
            return outcomes
        if len(parts) == 1:
            self._alone += 1
            return outcomes
        if self._alone >= _ALONE and not self._answered:
            return outcomes
        middle = (len(parts) + 1) // 2
        halves = [parts[:middle], parts[middle:]]
        found: list[list[Outcome]] = []
        for half in halves:
            found.append(await self._look(half, self._answered))
            self._answered = self._answered or failed(found[-1]) is None
        return [*await self(halves[0], found[0]), *await self(halves[1], found[1])]
