"""The blocks of a count on a cluster, and where their verdicts go: each record once in each pass."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

import anyio.lowlevel
import numpy as np
from numpy.typing import NDArray

from corpus.agenda import Agenda
from corpus.codes import MATCHED
from corpus.filing import Filing
from corpus.judges.base import Judge
from corpus.ledger import Ledger
from corpus.patience import Patience
from corpus.reasons import Reasons
from corpus.records import Part
from corpus.scan import Settle, Span, name_of_pass
from corpus.spool import Spool
from corpus.verdicts import Unresolved
from corpus.windows import Cut, windows
from executors.clock import Clock
from executors.engine.local import Done
from executors.errors import Halted, InternalError
from executors.events import Emit
from executors.ids import NodeId, child_of
from executors.journal.records import Journal
from rlm.cluster.settling import FiledOnly, Look, look
from rlm.cluster.work import TRIES, Work
from rlm.units.values import BlockRef, BlockReport

__all__ = ["Blocks", "Judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is judged, and how."""

    spool: Spool
    ledger: Ledger
    filing: Filing
    agenda: Agenda
    agenda_name: str | None
    """Of its file in the run directory; None for all that need a verdict."""
    cut: Cut
    node: NodeId
    """Its children are the passes."""
    emit: Emit
    clock: Clock
    span: Span
    journal: Journal
    resumed: bool
    """An earlier session may have paid for answers."""


class Blocks:
    """Keeps which records are settled, in `Filing.done`, and the spans of the passes.

    Args:
        judge: asks through `filed`, for what the journal knows already.
    """

    def __init__(self, what: Judged, judge: Judge, filed: FiledOnly) -> None:
        self._what = what
        self._judge = judge
        self._filed = filed
        self._done: NDArray[np.bool_] = what.filing.done
        self.works = [
            Work(block=block, index=index, filed=what.resumed)
            for pass_index in range(len(what.agenda.passes))
            for index, block in enumerate(what.agenda.blocks(pass_index, items=what.cut.items))
            if not self._done[pass_index, block.ordinals].all()
        ]
        """What is to be judged, in its order."""
        self._left = Counter(work.block.pass_index for work in self.works)
        self._entered: set[int] = set()
        self._spans: dict[int, ExitStack] = {}

    def reference(self, work: Work) -> BlockRef:
        """Return a block as a unit is sent it."""
        block = work.block
        return BlockRef(
            pass_index=block.pass_index,
            first=block.first,
            size=len(block.ordinals),
            agenda=self._what.agenda_name,
            done=BlockRef.pack(self._done[block.pass_index, block.ordinals]),
            known=bool(work.known),
        )

    async def settled_here(self, work: Work) -> bool:
        """Settle what the journal knows; return whether nothing is left of a block."""
        what, block = self._what, work.block
        self._enter(block.pass_index)
        if not work.filed:
            return False
        work.known = {}
        cut = windows(what.spool, block, what.cut, done=self._done[block.pass_index])
        settle = self._settle(block.pass_index)
        for one in await look(cut, self._judge, self._filed):
            if one.verdicts is None:
                work.known.update(one.found)
            else:
                self._keep(one, settle)
            await anyio.lowlevel.checkpoint()
        work.filed = False
        return self._ended(work)

    def take(self, work: Work, report: BlockReport, *, whole: bool, again: bool) -> None:
        """Take what a unit reported.

        Args:
            whole: all of its block has to be there.
            again: what is left is sent again, so that nothing is unresolved yet.

        Raises:
            InternalError: it reported records twice, or ones that it was not sent for, or not all.
        """
        ledger, block = self._what.ledger, work.block
        done = self._done[block.pass_index]
        for place, value in report.values.items():
            ledger.restore(self._claimed(work, place), block.pass_index, value)
        for place in report.early:
            ledger.restore(self._claimed(work, place), block.pass_index, MATCHED)
        if not again:
            for reason, places in report.unresolved.items():
                for place in places:
                    self._leave(self._claimed(work, place), block.pass_index, reason)
        if whole and not done[block.ordinals].all():
            missing = int(np.count_nonzero(~done[block.ordinals]))
            raise InternalError(f"{work.name} ended without a word of {missing} of its records")
        if whole:
            self._ended(work)

    def given_up(self, work: Work) -> bool:
        """Count a lost worker; after some of them leave what is left of a block unresolved."""
        work.lost += 1
        if work.lost < TRIES:
            return False
        block = work.block
        reason = f"the workers that judged it died, {work.lost} of them"
        for ordinal in block.ordinals[~self._done[block.pass_index, block.ordinals]].tolist():
            self._what.filing.skip(block.pass_index, [ordinal])
            self._leave(ordinal, block.pass_index, reason)
        return self._ended(work)

    def close(self, halted: Halted | None) -> None:
        """End the spans of the passes that are not done."""
        if halted is None:  # a pass of which nothing was left
            for pass_index in range(len(self._what.agenda.passes)):
                if not self._left[pass_index] and pass_index not in self._entered:
                    self._enter(pass_index)
        for span in self._spans.values():
            span.__exit__(type(halted) if halted else None, halted, None)
        self._spans.clear()

    def _claimed(self, work: Work, place: int) -> int:
        """Return the ordinal of a place, and mark it as settled."""
        block = work.block
        ordinal = int(block.ordinals[place])
        if self._done[block.pass_index, ordinal]:
            raise InternalError(f"{work.name} reported record {ordinal} for a second time")
        self._what.filing.skip(block.pass_index, [ordinal])
        return ordinal

    def _leave(self, ordinal: int, pass_index: int, reason: str) -> None:
        part = Part(ordinal=ordinal, id=self._what.spool.id(ordinal), text="")
        self._what.ledger.add(part, pass_index, Unresolved(reason=reason))

    def _keep(self, one: Look, settle: Settle) -> None:
        """Let a window that was judged here count."""
        assert one.window is not None
        assert one.verdicts is not None
        for event in one.events:
            self._what.emit(event)
        for key, why in one.voids:
            self._what.journal.void(key, why)
        settle(Done(item=one.window, value=one.verdicts))
        ordinals = [part.ordinal for part in one.window.items]
        self._what.filing.skip(one.window.pass_index, ordinals)

    def _settle(self, pass_index: int) -> Settle:
        what = self._what
        return Settle(
            what.ledger,
            node=child_of(what.node, pass_index),
            emit=what.emit,
            clock=what.clock,
            patience=Patience(1, answered=True),
            reasons=Reasons(),
            free=False,
            filing=what.filing,
        )

    def _enter(self, pass_index: int) -> None:
        if pass_index not in self._entered:
            self._entered.add(pass_index)
            self._spans[pass_index] = stack = ExitStack()
            name = name_of_pass(pass_index, len(self._what.agenda.passes))
            stack.enter_context(self._what.span(child_of(self._what.node, pass_index), name))

    def _ended(self, work: Work) -> bool:
        """Return whether all of a block is settled; the last one ends its pass."""
        block = work.block
        if not self._done[block.pass_index, block.ordinals].all():
            return False
        self._left[block.pass_index] -= 1
        if not self._left[block.pass_index]:
            self._spans.pop(block.pass_index).close()
        return True
