"""Workers of this process that pull from a lazy source: `cap` of them, never one task an item."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel

from executors.errors import Halted, ValidationError

__all__ = ["Done", "Failed", "Result", "pull"]

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


async def pull(
    items: Iterable[T] | AsyncIterable[T],
    work: Callable[[T], Awaitable[R]],
    *,
    cap: int,
    settle: Callable[[Result[T, R]], None],
) -> None:
    """Do the work of each item, at most `cap` at once, and hand each result to `settle`.

    A halt stops the pulling; what is in flight ends and is settled, then the halt is raised.
    Cancellation passes through at once. An error of the source itself, and what is no Exception,
    such as SystemExit, is raised as it is.

    Args:
        items: read one at a time, each only when a worker is free.
        work: what to do; its exceptions become `Failed` values.
        cap: workers, at least 1.
        settle: called once an item on the loop's thread; it may raise Halted to stop the pulling.

    Raises:
        Halted: a bound was reached.
        ValidationError: a cap below 1, which would do nothing of the work.
    """
    if cap < 1:
        raise ValidationError(f"cap={cap!r} lets no work through", hint="give 1 or more")
    source = _Source(items)
    halts: list[Halted] = []
    exits: list[KeyboardInterrupt | SystemExit] = []

    async def pulling() -> None:
        while not halts:
            # Work that makes a result of its cancellation must not be given more of it.
            await anyio.lowlevel.checkpoint_if_cancelled()
            found, item = await source.next()
            if not found:
                return
            try:
                settle(await _tried(item, work, halts))
            except Halted as halt:
                halts.append(halt)

    try:
        async with anyio.create_task_group() as group:

            async def worker() -> None:
                try:
                    await pulling()
                except (KeyboardInterrupt, SystemExit) as wanted:
                    # Raised by a task of its own it would break the event loop, for all who use it.
                    exits.append(wanted)
                    group.cancel_scope.cancel()

            for _ in range(cap):
                group.start_soon(worker)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    if exits:
        raise exits[0]
    if halts:
        raise halts[0]


async def _tried(item: T, work: Callable[[T], Awaitable[R]], halts: list[Halted]) -> Result[T, R]:
    try:
        return Done(item=item, value=await work(item))
    except Halted as halt:
        halts.append(halt)
        return Failed(item=item, error=halt)
    except Exception as error:  # noqa: BLE001 - the boundary: one bad item never ends its siblings
        return Failed(item=item, error=error)


class _Source(Generic[T]):
    """A sync or async iterator that many workers share."""

    def __init__(self, items: Iterable[T] | AsyncIterable[T]) -> None:
        self._sync = iter(items) if isinstance(items, Iterable) else None
        self._async = None if isinstance(items, Iterable) else aiter(items)
        self._lock = anyio.Lock()
        self._end = object()

    async def next(self) -> tuple[bool, T]:
        if self._sync is not None:
            got = next(self._sync, self._end)
        else:
            assert self._async is not None
            async with self._lock:
                got = await anext(self._async, self._end)
        return got is not self._end, got  # type: ignore[return-value]
