"""The turns of a worker. However the work ends, each call of a turn has exactly one result."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from executors.messages import Message

__all__ = ["Transcript", "sealed"]


class Transcript:
    """Turns in order. Whoever gave it to `work` has it sealed after any end, a cancel included."""

    def __init__(self, turns: Iterable[Message] = ()) -> None:
        self._turns: list[Message] = list(turns)

    @property
    def turns(self) -> tuple[Message, ...]:
        """All turns up to now."""
        return tuple(self._turns)

    def add(self, *turns: Message) -> None:
        """Append turns."""
        self._turns += turns

    def seal(self, why: str) -> None:
        """Give each call without a result one that says why there is none."""
        self._turns = list(sealed(self._turns, why))


def sealed(turns: Iterable[Message], why: str) -> Iterator[Message]:
    """Yield turns so that each call is followed by exactly one result, in the order of the calls.

    Results of calls that nobody made are left out: no provider takes them. Results are found by
    place, right behind their turn, since many servers count their ids anew in each reply.
    """
    asking: Message | None = None
    results: defaultdict[str | None, deque[Message]] = defaultdict(deque)
    for turn in turns:
        if turn.role == "tool":
            results[turn.call_id].append(turn)
            continue
        yield from _answered(asking, results, why)
        results.clear()
        asking = turn
        yield turn
    yield from _answered(asking, results, why)


def _answered(
    asking: Message | None, results: defaultdict[str | None, deque[Message]], why: str
) -> Iterator[Message]:
    for call in asking.calls if asking is not None else ():
        found = results[call.id]
        yield found.popleft() if found else Message(role="tool", content=why, call_id=call.id)
