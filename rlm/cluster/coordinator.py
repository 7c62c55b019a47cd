"""The coordinator of a count on a cluster: sends blocks, and brings what comes back together.

Each record is accounted for once: what a unit reports is taken only for what it was sent for, and a
block is done when all of it was reported. What a lost worker paid for is read from the journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Final, assert_never, cast

import anyio
import anyio.abc

from executors.engine.groups import ungrouped
from executors.engine.stop import Stop
from executors.engine.units import (
    UnitDone,
    UnitExecutor,
    UnitFailed,
    UnitLost,
    UnitReport,
    UnitResult,
    UnitSpec,
)
from executors.errors import Halted, Interrupted, RlmError, UsageError
from executors.gate.allowance import Full
from executors.journal.json_lines import decode
from executors.leases import Lease
from executors.replies import JsonValue
from rlm.cluster.answering import Answers
from rlm.cluster.blocks import Blocks
from rlm.cluster.losses import Losses
from rlm.cluster.seats import Seats
from rlm.cluster.work import Out, Work
from rlm.units.values import ENTRY, BlockReport, RunOptions

__all__ = ["Coordinator"]

_MARGIN: Final = 5.0  # seconds beyond the grace that units may take to say what they did
_LEASE: Final = "lease"


class Coordinator:
    """Judges on a cluster what is left of a count.

    Args:
        blocks: what is to be judged, and where the verdicts go.
        losses: reads from the journal what a lost worker did.
    """

    def __init__(
        self,
        engine: UnitExecutor,
        blocks: Blocks,
        seats: Seats,
        losses: Losses,
        answers: Answers,
        *,
        options: RunOptions,
        stop: Stop,
    ) -> None:
        self._engine = engine
        self._blocks = blocks
        self._seats = seats
        self._losses = losses
        self._answers = answers
        self._options = options.to_json()
        self._stop = stop
        self._queue: deque[Work] = deque(blocks.works)
        self._out = answers.out
        self._changed = anyio.Event()
        self._halted: Halted | None = None
        self._waiting = anyio.CancelScope()
        self._group: anyio.abc.TaskGroup

    async def run(self) -> None:
        """Return when all is judged.

        Raises:
            Halted: a bound was reached, somebody asked for the stop, or no worker can judge; the
                ledger holds what was judged until then.
            InternalError: a unit reported what it was not sent for, or not all that it was.
        """
        try:
            with ungrouped(), self._stop.heeding():
                async with anyio.create_task_group() as self._group:
                    self._group.start_soon(self._watch)
                    self._seats.open(self._engine.workers)
                    with self._waiting:
                        await self._through()
                    self._group.cancel_scope.cancel()
        finally:
            self._blocks.close(self._halted)
        if self._halted is not None:
            raise self._halted

    async def _through(self) -> None:
        try:
            async for result in self._engine.run(self._units(), self._answer):
                self._settle(result)
                self._wake()
        except Halted as halted:
            self._halt(halted)

    async def _watch(self) -> None:
        await self._stop.wait()
        self._halt(self._stop.error())

    def _halt(self, halted: Halted) -> None:
        """Send no more, and have what runs come to its end."""
        if self._halted is not None:
            return
        self._halted = halted
        by = halted.limit if isinstance(halted, Interrupted) else f"the run: {halted.what}"
        for unit in self._out:
            self._group.start_soon(self._engine.tell, unit, "stop", by.encode())
        self._waiting.deadline = anyio.current_time() + self._stop.grace + _MARGIN
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # ---------------------------------------------------------------- units

    async def _units(self) -> AsyncIterator[UnitSpec]:
        """Yield what is to be sent, each when somebody can take it, until all is judged."""
        while (work := await self._next()) is not None:
            lease = await self._seat()
            if lease is None:
                return
            out = Out(work=work, seat=lease.worker, slots=lease.slots)
            self._out[work.name] = out
            yield UnitSpec(
                id=work.name,
                entry=ENTRY,
                part=self._blocks.reference(work).to_json(),
                options=self._options,
                lease=_as_json(lease),
            )

    async def _next(self) -> Work | None:
        """Return a block of which something is left for a unit; None when there will be none."""
        while self._halted is None:
            if self._queue:
                work = self._queue.popleft()
                if not await self._blocks.settled_here(work):
                    return work
            elif self._out:
                await self._changed.wait()
            else:
                return None
        return None

    async def _seat(self) -> Lease | None:
        while self._halted is None:
            lease = self._seats.take(self._engine.workers)
            if isinstance(lease, Lease):
                return lease
            if isinstance(lease, Full) and (lease.final or not self._out):
                self._halt(lease.halted)
            else:
                await self._changed.wait()
        return None

    # ---------------------------------------------------------------- results

    def _settle(self, result: UnitResult) -> None:
        match result:
            case UnitDone():
                self._done(self._out.pop(result.unit), result.report)
            case UnitLost():
                out = self._out[result.unit]
                out.given_up = True
                self._group.start_soon(self._bury, result.unit, out)
            case UnitFailed():
                self._failed(self._out.pop(result.unit), result.error)
            case _:
                assert_never(result)
        if not self._queue:
            self._seats.close_free()

    def _done(self, out: Out, unit: UnitReport) -> None:
        report, halted = BlockReport.of_json(unit.value), unit.halted
        self._seats.give_back(out.seat, report.drawn)
        lapsed = halted is not None and halted.bound == _LEASE
        self._blocks.take(out.work, report, whole=halted is None, again=lapsed)
        if lapsed:  # nobody renewed it, as when this machine slept: its worker did well to stop
            out.work.filed = True
            self._queue.appendleft(out.work)
        elif halted is not None:
            self._halt(halted)

    def _failed(self, out: Out, error: RlmError) -> None:
        self._seats.leave(out.seat, self._losses.drawn(out))
        if not isinstance(error, UsageError):
            raise error
        halted = Halted(bound="workers", scope=self._engine.name, limit="one", hint=error.hint)
        halted.what = f"a worker cannot judge: {error.what}"
        halted.where = error.where
        self._halt(halted)

    async def _bury(self, unit: str, out: Out) -> None:
        """Account for a unit whose worker is gone, and have its block judged by another one."""
        try:
            drawn = await self._losses.account(out)
        except Halted as halted:
            self._halt(halted)
            return
        del self._out[unit]
        self._seats.leave(out.seat, drawn)
        out.work.filed = True
        if not self._blocks.given_up(out.work):
            self._queue.appendleft(out.work)
        self._wake()

    async def _answer(self, unit: str, what: str, body: bytes) -> bytes:
        said = await self._answers(unit, what, body)
        if self._answers.fault is not None:
            self._halt(self._answers.fault)
        return said


def _as_json(lease: Lease) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", decode(lease.to_json()))
