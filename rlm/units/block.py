"""A unit of a count: one block of one pass, judged as the coordinator would judge it itself."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import anyio
import numpy as np

from corpus.agenda import Block, Ordinals
from corpus.codes import MATCHED
from corpus.filing import Filing
from corpus.ledger import Ledger
from corpus.patience import Patience
from corpus.questions import OneOf
from corpus.reasons import Reasons
from corpus.scan import judge_blocks
from executors.engine.groups import ungrouped
from executors.engine.stop import Stop
from executors.engine.units import Line, UnitReport, UnitSpec
from executors.errors import Halted, InternalError
from executors.ids import ContentKey, NodeId, child_of
from executors.journal.journal import RunJournal
from executors.journal.json_lines import encode
from executors.journal.stream import StreamJournal
from executors.leases import Lease
from executors.replies import JsonValue
from rlm.units.desk import Desk, desk_for
from rlm.units.filed import Known, unpack_known
from rlm.units.lease import LeaseKeeper
from rlm.units.outbox import Outbox
from rlm.units.sources import BlockSource, Sent
from rlm.units.values import BlockRef, BlockReport, RunOptions

__all__ = ["judge_block"]

_STOP: Final = "stop"


async def judge_block(spec: UnitSpec, line: Line) -> UnitReport:
    """Judge one block, within a lease.

    Raises:
        UsageError: this worker cannot judge; nothing was spent.
        OSError: the coordinator is gone.
    """
    options, part = RunOptions.of_json(spec.options), BlockRef.of_json(spec.part)
    lease = Lease.from_json(encode(spec.lease))
    desk = await desk_for(options, lease)
    return await _Unit(desk, options, part, lease, line).run()


class _Unit:
    def __init__(
        self, desk: Desk, options: RunOptions, part: BlockRef, lease: Lease, line: Line
    ) -> None:
        self._desk = desk
        self._options = options
        self._part = part
        self._line = line
        self._outbox = desk.emit = Outbox(line)
        self._keeper = LeaseKeeper(
            line, desk.allowance, desk.calls, desk.model, lease=lease, outbox=self._outbox
        )
        desk.short = self._keeper.short
        self._stop = Stop(grace=options.grace)

    async def run(self) -> UnitReport:
        """Judge; whatever ends it early, what was judged by then is reported."""
        desk, line = self._desk, self._line
        known = unpack_known(await line.ask("known")) if self._part.known else {}
        line.on_word(self._heard)
        with ungrouped():
            async with anyio.create_task_group() as group:
                group.start_soon(self._outbox.run)
                if desk.own is not None:
                    report = await self._on_disk(desk.own, known)
                else:
                    report = await self._streamed(known)
                await self._outbox.flush()
                group.cancel_scope.cancel()
                return report
        raise InternalError("a unit ended without a report")

    async def _on_disk(self, own: RunJournal, known: Known) -> UnitReport:
        """Judge what the spool holds, and write into this process's own segment."""
        source = self._desk.block(self._part)
        self._desk.journal.begin(own, known)
        await self._line.ask("began", own.segment.encode())
        report = await self._judged(source)
        await own.take(b"")  # what nobody waited for is durable too
        return report

    async def _streamed(self, known: Known) -> UnitReport:
        """Judge what the coordinator sends, and have it write."""
        source = Sent.unpack(await self._line.ask("block"))
        stream = StreamJournal(self._send)
        self._desk.journal.begin(stream, known)
        async with anyio.create_task_group() as group:
            group.start_soon(stream.run)
            report = await self._judged(source)
            await stream.aclose()
            return report
        raise InternalError("a unit ended without a report")

    async def _send(self, lines: bytes) -> None:
        """Return once the coordinator has made lines of the journal durable."""
        said = await self._line.ask("lines", lines)
        if said:
            raise OSError(said.decode())

    def _heard(self, what: str, body: bytes) -> None:
        if what == _STOP:
            self._stop.ask(body.decode())

    async def _judged(self, source: BlockSource) -> UnitReport:
        part, options, info = self._part, self._options, self._desk.judge.info
        question = options.question
        labels = question.labels if isinstance(question, OneOf) else ()
        ledger = Ledger(part.size, passes=options.passes, labels=labels)
        places: Ordinals = np.arange(part.size, dtype=np.uint32)
        filing = Filing(
            self._desk.journal,
            source,
            ledger,
            places,
            criterion=self._desk.criterion,
            judge=ContentKey(info.identity),
        )
        if part.done:
            filing.skip(part.pass_index, part.unpack())
        block = Block(pass_index=part.pass_index, first=part.first, ordinals=places)
        halted: Halted | None = None
        async with anyio.create_task_group() as group:
            await self._keeper.begin()
            group.start_soon(self._keeper.keep)
            try:
                await self._judge(source, block, ledger, filing)
            except Halted as error:
                halted = error
            async with self._keeper.ending():
                group.cancel_scope.cancel()
        return UnitReport(value=self._report(source, ledger, filing).to_json(), halted=halted)

    async def _judge(
        self, source: BlockSource, block: Block, ledger: Ledger, filing: Filing
    ) -> None:
        desk, cap = self._desk, max(1, self._keeper.lease.slots)
        await judge_blocks(
            source,
            [block],
            desk.judge,
            ledger,
            cut=self._options.cut,
            cap=cap,
            node=child_of(NodeId(self._options.node), block.pass_index),
            emit=self._outbox,
            clock=desk.clock,
            patience=Patience(cap),
            reasons=Reasons(),
            filing=filing,
            stop=self._stop,
        )

    def _report(self, source: BlockSource, ledger: Ledger, filing: Filing) -> BlockReport:
        filed = self._desk.journal.values
        done = filing.done[self._part.pass_index]
        codes = ledger.codes("any")
        values: dict[int, JsonValue] = {}
        early: list[int] = []
        unresolved: defaultdict[str, list[int]] = defaultdict(list)
        for place in range(len(source)):
            value = filed.get(source.digests[place].tobytes())
            if value is not None:
                values[place] = value
            elif done[place] or not ledger.passes_of(place):
                continue
            elif codes[place] == MATCHED:
                early.append(place)
            else:
                unresolved[ledger.reason(place)].append(place)
        return BlockReport(
            values=values,
            early=tuple(early),
            unresolved={why: tuple(places) for why, places in unresolved.items()},
            drawn=self._desk.allowance.report(),
        )
