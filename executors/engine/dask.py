"""Units on dask workers: a cluster of processes on this machine, or one that is there already.

Each worker has a lane of its own: it takes a unit when it is free, and keeps the unit's line. So
never more units are out than there are workers, each with its lease, and dask's queues stay empty.
dask retries nothing: what is lost is told, and who knows what was paid for decides.

A local cluster speaks TLS with a certificate made for it, so that nobody else on the machine can
have it run code. Its processes end with this one, however that ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self, cast

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from executors.engine.dask_address import Local, Place
from executors.engine.dask_cluster import Client, Future, cluster
from executors.engine.groups import ungrouped
from executors.engine.unit_host import Heard, greet, host_unit, listen, say
from executors.engine.units import (
    Answering,
    UnitDone,
    UnitFailed,
    UnitLost,
    UnitReport,
    UnitResult,
    UnitSpec,
)
from executors.errors import ConfigError, Halted, InternalError, RlmError

__all__ = ["DaskEngine"]

_PATIENCE: Final = 60.0  # seconds without any worker
_LOOK: Final = 1.0  # seconds between two looks at who is there
_LISTEN: Final = 5.0  # seconds that a worker waits for its unit to ask something
_LETTING_GO: Final = 5.0  # seconds that the lanes may take to end
_ON_ITS_WAY: Final = 2.0  # seconds between the end of a unit and its report
_GONE: Final = "its worker is gone"


@dataclass(slots=True, eq=False)
class _Lane:
    worker: str
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    unit: str | None = None
    """What it runs; None while it waits for a unit."""


@dataclass(slots=True, eq=False)
class _End:
    report: UnitReport | None = None
    error: BaseException | None = None
    over: anyio.Event = field(default_factory=anyio.Event)


class DaskEngine:
    """Runs units on dask; an async context manager, for one run.

    Args:
        place: the cluster.
        module: states the version of ours as `__version__`; each worker has to have the same.
        version: that version.
        patience: seconds that a run waits while there is no worker at all.

    Raises:
        MissingExtra: on entering, dask is not installed.
        ConfigError: on entering, the cluster does not answer, or a worker has not our version.
    """

    def __init__(
        self, place: Place, *, module: str, version: str, patience: float = _PATIENCE
    ) -> None:
        self._place = place
        self._module = module
        self._version = version
        self._patience = patience
        self._lanes: dict[str, _Lane] = {}
        self._refused: set[str] = set()
        self._demand = anyio.Semaphore(0)
        self._ended = False
        self._exit = AsyncExitStack()
        self._client: Client
        self._group: anyio.abc.TaskGroup
        self._answer: Answering
        self._out: MemoryObjectSendStream[UnitResult | Halted]
        self._results: MemoryObjectReceiveStream[UnitResult | Halted]
        self._given: MemoryObjectSendStream[UnitSpec]
        self._units: MemoryObjectReceiveStream[UnitSpec]

    @property
    def name(self) -> str:
        """For people."""
        return str(self._place)

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        return len(self._lanes)

    # ---------------------------------------------------------------- begin and end

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(cluster(self._place))
            self._out, self._results = anyio.create_memory_object_stream[UnitResult | Halted](0)
            self._given, self._units = anyio.create_memory_object_stream[UnitSpec](0)
            for stream in (self._out, self._results, self._given, self._units):
                stack.callback(stream.close)
            stack.enter_context(ungrouped())
            self._group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(self._group.cancel_scope.cancel)
            for worker in await self._client.nthreads():
                refusal = await self._greeted(worker)
                if refusal is not None:
                    raise refusal
                self._lanes[worker] = _Lane(worker)
            self._exit = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exit.__aexit__(kind, error, trace)

    async def _greeted(self, worker: str) -> ConfigError | None:
        """Return why a worker cannot be used."""
        hint = f"install rlm-recurse=={self._version}, with its extras, for every worker"
        ours = isinstance(self._place, Local)
        # What it cannot even unpickle comes back as an error of no class in particular.
        said = await self._client.run(
            greet, self._module, ours, workers=[worker], on_error="return"
        )
        version: object = said[worker]
        if version == self._version:
            return None
        if isinstance(version, OSError):
            raise version
        if isinstance(version, Exception):
            return ConfigError(
                f"the worker {worker!r} cannot import what it is to run: {version}",
                where=f"engine={self.name!r}",
                hint=hint,
            )
        return ConfigError(
            f"the worker {worker!r} has version {version}, and this is {self._version}",
            where=f"engine={self.name!r}",
            hint=hint,
        )

    # ---------------------------------------------------------------- units

    async def run(
        self, units: AsyncIterator[UnitSpec], answer: Answering
    ) -> AsyncIterator[UnitResult]:
        """See `UnitExecutor.run`; once an engine."""
        self._answer = answer
        self._group.start_soon(self._feed, units)
        for lane in self._lanes.values():
            self._group.start_soon(self._drive, lane)
        self._group.start_soon(self._watch)
        async for result in self._results:
            if isinstance(result, Halted):
                raise result
            yield result

    async def tell(self, unit: str, what: str, body: bytes = b"") -> None:
        """See `UnitExecutor.tell`."""
        for lane in self._lanes.values():
            if lane.unit == unit:
                with suppress(OSError):  # it is gone, which its lane finds out
                    await self._client.run(say, unit, what, body, workers=[lane.worker])
                return

    async def _feed(self, units: AsyncIterator[UnitSpec]) -> None:
        """Take a unit whenever a worker is free, in a task that no lane's end can disturb."""
        while True:
            await self._demand.acquire()
            spec = await anext(units, None)
            if spec is None:
                break
            await self._given.send(spec)
        self._ended = True
        self._given.close()
        self._end()

    async def _watch(self) -> None:
        """Give each new worker a lane, and end those whose worker is gone."""
        alone = 0.0
        while self._lanes or not self._ended:
            await anyio.sleep(_LOOK)
            try:
                there = set(await self._client.nthreads())
            except OSError:  # the scheduler is gone
                there = set[str]()
            for worker in self._lanes.keys() - there:
                self._lanes[worker].scope.cancel()
            for worker in there - self._lanes.keys() - self._refused:
                await self._welcome(worker)
            alone = 0.0 if self._lanes else alone + _LOOK
            if alone >= self._patience:
                await self._out.send(self._deserted())
                return

    async def _welcome(self, worker: str) -> None:
        """Use a worker that came later; one that cannot be used is left alone."""
        try:
            refusal = await self._greeted(worker)
        except OSError:  # gone again
            return
        if refusal is not None:
            self._refused.add(worker)
            return
        lane = self._lanes[worker] = _Lane(worker)
        self._group.start_soon(self._drive, lane)

    def _deserted(self) -> Halted:
        return Halted(
            bound="workers",
            scope=f"the cluster {self.name}",
            limit=f"none for {self._patience:g} s",
            hint="start workers, then go on with: rlm resume DIR",
        )

    # ---------------------------------------------------------------- lanes

    async def _drive(self, lane: _Lane) -> None:
        """Run units on one worker, one after another, until there are no more or it is gone."""
        with lane.scope:
            self._demand.release()
            async for spec in self._units:
                lane.unit = spec.id
                result = await self._done(lane, spec)
                if not isinstance(result, UnitLost):
                    self._demand.release()
                await self._out.send(result)
                lane.unit = None
                if isinstance(result, UnitLost):
                    break
        if lane.unit is not None:
            await self._out.send(UnitLost(unit=lane.unit, worker=lane.worker, why=_GONE))
        elif lane.scope.cancelled_caught and self._demand.value:
            self._demand.acquire_nowait()  # for a unit that it cannot take any more
        del self._lanes[lane.worker]
        self._end()

    def _end(self) -> None:
        """Let `run` end once nothing can come any more."""
        if self._ended and not self._lanes:
            self._out.close()

    async def _done(self, lane: _Lane, spec: UnitSpec) -> UnitResult:
        """Send a unit to its worker and keep its line until it ends."""
        future = self._client.submit(
            host_unit,
            spec.to_json(),
            key=f"rlm-{spec.id}-{id(spec):x}",
            workers=[lane.worker],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        end = _End()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep_line, lane.worker, spec.id, end)
                group.start_soon(self._wait_for, future, end)
                await end.over.wait()
                group.cancel_scope.cancel()
            return self._result(lane.worker, spec.id, end)
        finally:
            with anyio.move_on_after(_LETTING_GO, shield=True):
                await self._client.cancel([future], force=True)

    async def _wait_for(self, future: Future, end: _End) -> None:
        end.error = await future.exception()
        if end.error is None and future.status == "finished":  # its report may still be on its way
            await anyio.sleep(_ON_ITS_WAY)
        end.over.set()

    def _result(self, worker: str, unit: str, end: _End) -> UnitResult:
        error = end.error
        if end.report is not None:
            return UnitDone(unit=unit, report=end.report)
        if isinstance(error, RlmError):
            return UnitFailed(unit=unit, worker=worker, error=error)
        if error is None or type(error).__name__ == "KilledWorker":
            return UnitLost(unit=unit, worker=worker, why=_GONE)
        if isinstance(error, OSError):  # the line was silent for too long, as where machines sleep
            return UnitLost(unit=unit, worker=worker, why=str(error))
        said = f"the unit {unit!r} raised {type(error).__name__}: {error}"
        return UnitFailed(unit=unit, worker=worker, error=InternalError(said[:500], where=worker))

    async def _keep_line(self, worker: str, unit: str, end: _End) -> None:
        """Answer what a unit asks until it reports."""
        answers: dict[int, bytes] = {}
        while end.report is None:
            try:
                got = await self._client.run(listen, unit, answers, _LISTEN, workers=[worker])
            except OSError:  # the connection broke, or the worker did
                await anyio.sleep(_LOOK / 10)
                continue
            asked, end.report = cast("Heard", got[worker])
            answers = {n: await self._answer(unit, what, body) for n, what, body in asked}
        end.over.set()
