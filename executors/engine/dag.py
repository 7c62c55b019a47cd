"""Work that waits for other work: whatever is free to go goes next, at most `cap` at once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar, assert_never

import anyio

from executors.engine.local import Done, Failed, Result, pull
from executors.engine.stop import Stop
from executors.errors import Halted, ValidationError
from executors.makers import maker
from executors.order import Circle, Order, order_of

__all__ = ["AT_ONCE", "DagResult", "OnWave", "Skipped", "run_dag"]

R = TypeVar("R")

AT_ONCE: Final = 1_000
"""What runs at once where no cap is given."""

OnWave = Callable[[int, tuple[str, ...]], Awaitable[None] | None]
"""Is told the number of a wave, from 1, and its ids; nothing more starts before it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """An id whose work was not done, since something that it waits for failed."""

    item: str
    dependency: str
    """What it waits for itself: failed or skipped."""
    cause: str
    """What failed in the first place."""


DagResult = Done[str, R] | Failed[str] | Skipped
_skipped = maker(Skipped)


async def run_dag(
    ids: Iterable[str],
    depends: Mapping[str, Collection[str]],
    work: Callable[[str], Awaitable[R]],
    *,
    cap: int | None,
    settle: Callable[[DagResult[R]], None],
    on_wave: OnWave | None = None,
    stop: Stop | None = None,
    order: Order | None = None,
) -> None:
    """Do the work of each id as soon as all it waits for is done and a place is free.

    A wave, all ids with equally long ways from the start, is something to look at and no barrier:
    ids of the next one start while others of this one run. Of what is free, what got free first
    goes first; ids that got free together go in their own order. Linear in ids and dependencies.

    A failure is a value: what waits for it is skipped, all else goes on. A halt, a stop and a
    cancellation behave as in `pull`; what was not begun by then is not settled.

    Args:
        ids: all of them, each once.
        depends: what each waits for.
        work: its exceptions become `Failed` values.
        cap: how many at once; None is `AT_ONCE`.
        settle: called once an id; may raise Halted to start nothing more.
        order: of these, where the caller has found it already; then they are not checked again.
        on_wave: called once a wave, before its first id starts; what it raises ends it all at once,
            but for Halted, which is the halt of that id.

    Raises:
        Halted: a bound was reached; Interrupted: the stop was asked.
        ValidationError: a cap below 1; ids that stand twice, are unknown, or wait for each other.
    """
    ready = _Ready(order or _checked(tuple(ids), depends), settle, on_wave)
    places = min(AT_ONCE if cap is None else cap, max(1, ready.left))
    doing = work if on_wave is None else partial(ready.admitted, work)
    await pull(ready, doing, cap=places, settle=ready.settle, stop=stop)


def _checked(ids: tuple[str, ...], depends: Mapping[str, Collection[str]]) -> Order:
    known = set(ids)
    if len(known) < len(ids):
        twice = next(id_ for id_, count in Counter(ids).items() if count > 1)
        raise ValidationError(f"the id {twice!r} stands twice", hint="give each an id of its own")
    for id_, needed in depends.items():
        if unknown := [name for name in (id_, *needed) if name not in known]:
            raise ValidationError(f"{unknown[0]!r} is none of the ids", where=f"waits of {id_!r}")
    found = order_of(ids, depends)
    if isinstance(found, Circle):
        raise ValidationError(f"these wait for each other: {str(found)[:500]}")
    return found


class _Ready(Generic[R]):
    """The source that the workers pull from: ids that wait for nothing any more."""

    def __init__(
        self,
        order: Order,
        settle: Callable[[DagResult[R]], None],
        on_wave: OnWave | None,
    ) -> None:
        self._order = order
        self._settle = settle
        self._missing = dict(order.needs)
        self._free = deque(id_ for id_, count in self._missing.items() if count == 0)
        self.left = len(self._missing)
        self._ended = False
        self._halt: Halted | None = None
        self._changed = anyio.Event()
        self._waves = None if on_wave is None else _Waves(order.depths, on_wave)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    @property
    def at_hand(self) -> bool:
        return bool(self._free) and self._waves is None

    async def __anext__(self) -> str:
        while not self._free:
            if not self.left:
                raise StopAsyncIteration
            self._changed = anyio.Event()
            await self._changed.wait()
        id_ = self._free.popleft()
        if self._waves is not None:
            try:
                await self._waves.begins(id_)
            except Halted as halt:
                self._halt = halt
            except BaseException:
                self._end()
                raise
        return id_

    async def admitted(self, work: Callable[[str], Awaitable[R]], id_: str) -> R:
        """Do the work of an id, unless its wave was halted: what runs beside it then ends by itself."""
        if self._halt is not None:
            raise self._halt
        return await work(id_)

    def settle(self, result: Result[str, R]) -> None:
        """Take a result, and let go what waited for it."""
        id_ = result.item
        try:
            self._settle(result)
            match result:
                case Done():
                    self._release(id_)
                case Failed(error=Halted()):
                    self._end()  # not begun is not skipped: whoever goes on with this does it
                case Failed():
                    self._skip(id_)
                case _:
                    assert_never(result)
        except Halted:
            self._end()
            raise
        finally:
            self.left -= 1
            if self._free or not self.left:
                self._changed.set()

    def _end(self) -> None:
        """Hand out nothing more, also to a worker whose cancellation has not reached it yet."""
        self._ended = True
        self._free.clear()

    def _release(self, done: str) -> None:
        for id_ in self._order.dependents.get(done, ()):
            self._missing[id_] -= 1
            if self._missing[id_] == 0 and not self._ended:
                self._free.append(id_)

    def _skip(self, failed: str) -> None:
        """Skip all that waits for what failed, near ones first; each once."""
        reached = deque([failed])
        while reached:
            dependency = reached.popleft()
            for id_ in self._order.dependents.get(dependency, ()):
                if self._missing[id_] >= 0:  # its place is taken out of the count below zero
                    self._missing[id_] = -1
                    self.left -= 1
                    reached.append(id_)
                    self._settle(_skipped(item=id_, dependency=dependency, cause=failed))


class _Waves:
    """Tells of each wave once, before its first id starts."""

    def __init__(self, depths: Mapping[str, int], tell: OnWave) -> None:
        self._depths = depths
        self._tell = tell
        self._ids: dict[int, list[str]] = {}
        for id_, depth in depths.items():
            self._ids.setdefault(depth, []).append(id_)

    async def begins(self, id_: str) -> None:
        """An id is about to start."""
        depth = self._depths[id_]
        if (wave := self._ids.pop(depth, None)) is not None:
            told = self._tell(depth + 1, tuple(wave))
            if told is not None:
                await told
