"""Workers of this process that pull from a lazy source: a bounded number, never one task an item."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast, runtime_checkable

import anyio
import anyio.lowlevel

from executors.engine.stop import Stop
from executors.errors import Halted, ValidationError
from executors.makers import maker
from executors.places import place

if TYPE_CHECKING:
    from asyncio import Future

__all__ = ["AtHand", "Done", "Failed", "Result", "pull"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[T, R]):
    """An item whose work returned, whatever it returned."""

    item: T
    value: R


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Generic[T]):
    """An item whose work raised: a value, so that its siblings go on."""

    item: T
    error: Exception


Result = Done[T, R] | Failed[T]
_done = maker(Done)


@runtime_checkable
class AtHand(Protocol):
    """An async source that knows whether its next item comes without waiting."""

    @property
    def at_hand(self) -> bool:
        """Whether `__anext__` would now return an item at once."""
        ...


async def pull(
    items: Iterable[T] | AsyncIterable[T],
    work: Callable[[T], Awaitable[R]],
    *,
    cap: int,
    settle: Callable[[Result[T, R]], None],
    stop: Stop | None = None,
    spare: int = 0,
) -> None:
    """Do the work of each item, at most `cap` at once, and hand each result to `settle`.

    A halt stops the pulling; what is in flight ends and is settled, then the halt is raised. So
    does a stop that is asked, but it bounds the wait: after its grace what is still in flight is
    cancelled and settled as `Failed`. Cancellation passes through at once. An error of the source
    itself, and what is no Exception, such as SystemExit, is raised as it is. Where only something
    that the work waited for was cancelled, and not the work, its item has failed.

    Args:
        items: read one at a time, each only when a worker is free.
        work: what to do; its exceptions become `Failed` values.
        cap: how many work at once, at least 1.
        settle: called once an item on the loop's thread; it may raise Halted to stop the pulling.
        stop: heeded while this runs.
        spare: workers that stand in for those that stepped aside, since they only wait for the disk
            (see `executors.places`); without any, nobody does.

    Raises:
        Halted: a bound was reached.
        Interrupted: the stop was asked; every item that was pulled is settled.
        ValidationError: a cap below 1, which would do nothing of the work.
    """
    if cap < 1:
        raise ValidationError(f"cap={cap!r} lets no work through", hint="give 1 or more")
    crew = _Crew(items, work, settle, stop=stop or Stop(), cap=cap, spare=spare)
    try:
        with crew.stop.heeding():
            async with anyio.create_task_group() as group:
                group.start_soon(crew.watch)
                for _ in range(cap + spare):
                    group.start_soon(crew.worker, group.cancel_scope)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    if crew.exits:
        raise crew.exits[0]
    if crew.halts:
        raise crew.halts[0]


_NOTHING: Final = object()
_LOOK: Final = 16  # items of a worker until it looks for a cancellation that has not reached it


@dataclass(slots=True)
class _Worker:
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    item: object = _NOTHING
    """What is in flight; nothing while it waits for the source."""
    placed: bool = False
    """It counts among those who work."""


class _Crew(Generic[T, R]):
    """Workers that share a source, until it ends or something says stop."""

    def __init__(
        self,
        items: Iterable[T] | AsyncIterable[T],
        work: Callable[[T], Awaitable[R]],
        settle: Callable[[Result[T, R]], None],
        *,
        stop: Stop,
        cap: int,
        spare: int,
    ) -> None:
        from asyncio import get_running_loop  # heavy; whoever runs this has a loop, and loaded it

        self._loop = get_running_loop()
        self._cancelled = anyio.get_cancelled_exc_class()
        self.stop = stop
        self._source = _Source(items)
        self._work = work
        self._settle = settle
        self._workers: list[_Worker] = []
        self._left = cap + spare
        self._free = cap
        """Places that nobody works at."""
        self._standing_by: deque[Future[None]] = deque()
        self._watching = anyio.CancelScope()
        self.halts: list[Halted] = []
        self.exits: list[KeyboardInterrupt | SystemExit] = []

    async def watch(self) -> None:
        """Wait for the stop, and end what does not end within its grace."""
        with self._watching:
            await self.stop.wait()
            self._heed()
            await self.stop.clock.sleep(self.stop.grace)
            for worker in self._workers:
                worker.scope.cancel()

    async def worker(self, group: anyio.CancelScope) -> None:
        """Pull and work until nothing is left to do."""
        me = _Worker()
        self._workers.append(me)
        place(partial(self._step_aside, me))
        try:
            with me.scope:
                await self._pulling(me, group)
            if me.item is not _NOTHING:  # it was cancelled after the grace
                self._settled(me, Failed(item=cast("T", me.item), error=self.stop.error()))
        except (KeyboardInterrupt, SystemExit) as wanted:
            # Raised by a task of its own it would break the event loop, for all who use it.
            self.exits.append(wanted)
            group.cancel()
        self._step_aside(me)
        self._left -= 1
        if not self._left:
            self._watching.cancel()

    async def _pulling(self, me: _Worker, group: anyio.CancelScope) -> None:
        cancelling = self._cancelling()
        for turn in count():
            if self._heed():
                return
            # Work that makes a result of its cancellation must not be given more of it, nor work
            # that ended before its task could be told. The task knows what has reached it, the group
            # whether it is over; to look for more takes as long as to settle an item.
            if cancelling() or group.cancel_called or turn % _LOOK == 0:
                await anyio.lowlevel.checkpoint_if_cancelled()
            if not me.placed and not self._placed(me):
                await self._stand_by()
                continue
            source = self._source
            item = source.next() if source.at_once else await source.coming()
            if isinstance(item, _End):
                return
            me.item = item
            self._settled(me, await self._tried(item, cancelling))

    def _cancelling(self) -> Callable[[], int]:
        """Return what says how often the task that runs this was cancelled."""
        from asyncio import current_task  # as above

        task = current_task(self._loop)
        assert task is not None
        return task.cancelling

    def _placed(self, me: _Worker) -> bool:
        """Give a worker a place if there is one."""
        if self._free:
            self._free -= 1
            me.placed = True
        return me.placed

    async def _stand_by(self) -> None:
        """Wait until there may be a place."""
        woken: Future[None] = self._loop.create_future()
        self._standing_by.append(woken)
        await woken

    def _step_aside(self, me: _Worker) -> None:
        """Let another worker have the place of one that needs it no more."""
        if not me.placed:
            return
        me.placed = False
        self._free += 1
        while self._standing_by:
            woken = self._standing_by.popleft()
            if not woken.done():  # it was not cancelled
                woken.set_result(None)
                return

    def _settled(self, me: _Worker, result: Result[T, R]) -> None:
        me.item = _NOTHING
        try:
            self._settle(result)
        except Halted as halt:
            self._halt(halt)

    async def _tried(self, item: T, cancelling: Callable[[], int]) -> Result[T, R]:
        if self.stop.asked:  # while the source was waited for
            return Failed(item=item, error=self.stop.error())
        try:
            return _done(item=item, value=await self._work(item))
        except Halted as halt:
            self._halt(halt)
            return Failed(item=item, error=halt)
        except Exception as error:  # noqa: BLE001 - the boundary: one bad item never ends its siblings
            return Failed(item=item, error=error)
        except self._cancelled:
            if cancelling():
                raise
            return Failed(item=item, error=_cancelled_inside())

    def _heed(self) -> bool:
        """Return whether nothing more is to be pulled; a stop that was asked is a halt like others."""
        if self.stop.asked and not self.halts:
            self._halt(self.stop.error())
        return bool(self.halts)

    def _halt(self, halt: Halted) -> None:
        self.halts.append(halt)
        for worker in self._workers:
            if worker.item is _NOTHING:
                # A slow source may keep it waiting for something that nobody wants any more.
                worker.scope.cancel()


def _cancelled_inside() -> Exception:
    from concurrent.futures import CancelledError  # an Exception, and loaded with the loop

    return CancelledError("something that it waited for was cancelled, and it was not")


class _End:
    """What comes after the last item."""

    __slots__ = ()


_END: Final = _End()


class _Source(Generic[T]):
    """A sync or async iterator that many workers share."""

    def __init__(self, items: Iterable[T] | AsyncIterable[T]) -> None:
        self.at_once: Final = isinstance(items, Iterable)
        """Nothing is waited for: `next` gives the items, else `coming`."""
        self._sync = iter(items) if isinstance(items, Iterable) else iter(())
        self._async = None if isinstance(items, Iterable) else aiter(items)
        source = cast("object", self._async)
        self._knows = source if isinstance(source, AtHand) else None
        self._lock = anyio.Lock()

    def next(self) -> T | _End:
        return next(self._sync, _END)

    async def coming(self) -> T | _End:
        assert self._async is not None
        if self._knows is not None and self._knows.at_hand:
            return await anext(self._async, _END)  # a turn of the loop for each would cost more
        async with self._lock:
            return await anext(self._async, _END)
