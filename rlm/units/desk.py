"""What a worker process keeps from one unit of a run to the next.

Its model with the connections, what it found out about the server, its segment of the journal, the
spool. A worker runs one unit of a run at a time. Units of another run, or of another session of it, find
another desk; the one before is cleared then, or when the process ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from corpus.agenda import BLOCK, Agenda, Ordinals, rotate
from corpus.criterion import Criterion
from corpus.judges.base import Judge
from corpus.scan import distinct
from corpus.spool import Spool
from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.errors import ConfigError, InternalError
from executors.events import Emit, Event
from executors.gate.allowance import Estimate
from executors.gate.governor import Outlet
from executors.ids import NodeId
from executors.journal.filesystems import file_system, is_remote
from executors.journal.journal import RunJournal
from executors.leases import Lease
from executors.models.base import Model
from executors.models.prices import PriceTable
from executors.replies import JsonValue
from rlm.judging import Asking, plan_judge
from rlm.options.options import CountOptions
from rlm.units.filed import UnitJournal
from rlm.units.lease import UnitAllowance
from rlm.units.sources import SpoolBlock
from rlm.units.values import BlockRef, RunOptions

__all__ = ["PROBE", "Desk", "desk_for"]

PROBE: Final = "shared"
"""The file in the run directory that holds the token of its coordinator."""
_CLEARING: Final = 5.0  # seconds

_desks: dict[tuple[str, int], Desk] = {}


class Desk:
    """Made by `desk_for`; what a unit of a count works with.

    Attributes:
        emit: where events go; set anew by each unit.
        short: told by the allowance when a call finds no room; likewise.
    """

    def __init__(self, options: RunOptions, lease: Lease) -> None:
        self.emit: Emit = _nowhere
        self.short: Callable[[Estimate], None] = _no_matter
        self.clock = SystemClock()
        self.journal = UnitJournal()
        self.allowance = UnitAllowance(lease, self.clock, on_short=self._short)
        chosen = CountOptions.of_record(options.options)
        plan = plan_judge(chosen, options.question, warn=_unsaid)
        if not isinstance(plan, Asking):
            raise InternalError(f"a unit was sent whose judge asks nothing: {options.options!r}")
        outlet = None if options.data is None else _outlet(options.data)
        if outlet is not None:
            plan = replace(plan, model=outlet.model(plan.model))
        self.model: Model = plan.model
        price = options.price
        self.calls = Calls(
            allowance=self.allowance,
            emit=self._emit,
            clock=self.clock,
            journal=self.journal,
            prices=None if price is None else PriceTable({plan.model.info.name: price}),
            retry=options.retry,
            concurrency=max(1, lease.slots),
            limits=lease.limits,
            outlet=outlet,
        )
        if chosen.limits is not None:  # of which each worker holds a share
            self.calls.endpoint(self.model).most_tokens = chosen.limits.tpm
        criterion = Criterion(question=options.question, description=chosen.description)
        node = NodeId(options.node)
        self.judge: Judge = plan.judge(self.calls, criterion, chosen, node, self._emit)
        self.criterion = criterion.key
        if self.judge.info.identity != options.judge:
            raise ConfigError(
                f"the worker's judge {self.judge.info.name!r} is another one than the coordinator's",
                where="its weights, its server or its settings differ",
                hint="give every worker the same model, weights and versions",
            )
        self._items, self._passes = options.cut.items, options.passes
        self._directory = Path(options.directory)
        self._orders: dict[tuple[str | None, int], Ordinals] = {}
        self._spool: Spool | None = None
        self.own: RunJournal | None = None
        """This process's segment, where the disk is shared."""

    @property
    def shared(self) -> bool:
        """Whether the run directory is the coordinator's own."""
        return self.own is not None

    async def look(self, token: str) -> None:
        """See whether the disk is shared."""
        if await anyio.to_thread.run_sync(_shares, self._directory, token):
            self._spool = await anyio.to_thread.run_sync(Spool.open, self._directory / "spool")
            self.own = RunJournal.open(self._directory, index=False)

    def block(self, part: BlockRef) -> SpoolBlock:
        """Return the records of a block from the spool."""
        assert self._spool is not None
        key = (part.agenda, part.pass_index)
        order = self._orders.get(key)
        if order is None:
            if part.agenda is None:
                ordinals = distinct(self._spool)
            else:
                ordinals = Agenda.load(self._directory / part.agenda).passes[part.pass_index]
            order = rotate(ordinals, part.pass_index, items=self._items, passes=self._passes)
            self._orders[key] = order
        ordinals = order[part.first : part.first + BLOCK]
        if len(ordinals) != part.size:
            raise InternalError(
                f"block {part.first} of pass {part.pass_index} has {len(ordinals)} records here, "
                f"and {part.size} at the coordinator"
            )
        return SpoolBlock(self._spool, ordinals)

    async def clear(self) -> None:
        """Let go of sockets and files."""
        with anyio.move_on_after(_CLEARING, shield=True):
            await self.model.aclose()
            if self.own is not None:
                await self.own.aclose()
        if self._spool is not None:
            self._spool.close()

    def _emit(self, event: Event) -> None:
        self.emit(event)

    def _short(self, need: Estimate) -> None:
        self.short(need)


async def desk_for(options: RunOptions, lease: Lease) -> Desk:
    """Return the desk of a session in this process.

    Raises:
        UsageError: this worker cannot judge: its key, its model or an extra is missing.
    """
    key = (options.run, options.session)
    found = _desks.get(key)
    if found is None:
        for old in [name for name in _desks if name[0] == options.run]:
            await _desks.pop(old).clear()
        found = Desk(options, lease)
        await found.look(options.token)
        _desks[key] = found
    return found


def _shares(directory: Path, token: str) -> bool:
    try:
        same = (directory / PROBE).read_text(encoding="utf-8") == token
    except OSError:
        return False
    return same and not is_remote(file_system(directory))


def _outlet(data: Mapping[str, JsonValue]) -> Outlet:
    from executors.gate.outlet import outlet_of  # for units of runs that a gate governs

    return outlet_of(data)


def _nowhere(_event: Event) -> None:
    """No unit runs."""


def _no_matter(_need: Estimate) -> None:
    """No unit runs."""


def _unsaid(_message: str) -> None:
    """The coordinator has the same model, and says it once."""
