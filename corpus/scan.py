"""Scan: every record is judged in every pass, concurrently, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corpus.agenda import Agenda, Block
from corpus.events import WindowFinished
from corpus.filing import Filing
from corpus.judges.base import Judge, Window
from corpus.ledger import Ledger
from corpus.patience import Patience
from corpus.reasons import Reasons
from corpus.records import Part
from corpus.spool import Spool
from corpus.verdicts import Unresolved, Verdict
from corpus.windows import Cut, Readable, windows
from executors.clock import Clock
from executors.engine.local import Done, Failed, Result, pull
from executors.engine.stop import Stop
from executors.errors import Halted, InternalError, RlmError, UsageError
from executors.events import Emit
from executors.ids import NodeId, child_of
from executors.makers import maker

__all__ = ["Scan", "Settle", "Span", "distinct", "judge_blocks", "name_of_pass", "scan"]

Span = Callable[[NodeId, str], AbstractContextManager[object]]

_SPARE: Final = 1  # windows that may wait for the disk alone, for each that is judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """How a corpus is scanned."""

    cut: Cut
    agenda: Agenda
    """Which records each pass judges."""
    cap: int
    """Windows in flight."""

    @property
    def passes(self) -> int:
        """How often each record is judged."""
        return len(self.agenda.passes)


async def scan(
    spool: Spool,
    judge: Judge,
    ledger: Ledger,
    plan: Scan,
    *,
    node: NodeId,
    emit: Emit,
    clock: Clock,
    span: Span | None = None,
    filing: Filing | None = None,
    stop: Stop | None = None,
) -> None:
    """Judge each record of the agenda in each pass and fill the ledger.

    A window whose judge raises is left unresolved, with the error as its reason; the others go on.

    Args:
        node: its children are the passes.
        span: entered around each pass with its node and name.
        filing: where verdicts are filed; what it holds already is not judged again.
        stop: heeded; windows in flight have its grace.

    Raises:
        Halted: a bound was reached, the model cannot serve (ModelUnusable), or the stop was asked
            (Interrupted); the ledger holds all that was judged until then.
        UsageError: the rule of a rule judge cannot work.
    """
    span = span or _no_span
    answered = filing is not None and bool(filing.done.any())
    patience, reasons = Patience(plan.cap, answered=answered), Reasons()
    for pass_index in range(plan.passes):
        here = child_of(node, pass_index)
        with span(here, name_of_pass(pass_index, plan.passes)):
            await judge_blocks(
                spool,
                plan.agenda.blocks(pass_index, items=plan.cut.items),
                judge,
                ledger,
                cut=plan.cut,
                cap=plan.cap,
                node=here,
                emit=emit,
                clock=clock,
                patience=patience,
                reasons=reasons,
                filing=filing,
                stop=stop,
            )


def name_of_pass(pass_index: int, passes: int) -> str:
    """Return what a pass is called, from 1."""
    return f"pass {pass_index + 1} of {passes}"


async def judge_blocks(
    source: Readable,
    blocks: Iterable[Block],
    judge: Judge,
    ledger: Ledger,
    *,
    cut: Cut,
    cap: int,
    node: NodeId,
    emit: Emit,
    clock: Clock,
    patience: Patience,
    reasons: Reasons,
    filing: Filing | None,
    stop: Stop | None = None,
) -> None:
    """Judge the windows of some blocks; for the rest see `scan`, which does so for each pass.

    Args:
        cap: windows in flight.
        node: the pass.
    """
    done = None if filing is None else filing.done
    cut_windows = (
        window
        for block in blocks
        for window in windows(
            source, block, cut, done=None if done is None else done[block.pass_index]
        )
    )
    settle = Settle(
        ledger,
        node=node,
        emit=emit,
        clock=clock,
        patience=patience,
        reasons=reasons,
        free=judge.info.kind == "rule",
        filing=filing,
    )
    await pull(cut_windows, judge.judge, cap=cap, settle=settle, stop=stop, spare=_SPARE * cap)


def _no_span(_node: NodeId, _name: str) -> AbstractContextManager[object]:
    return nullcontext()


def distinct(spool: Spool) -> NDArray[np.uint32]:
    """Return the ordinals that need a verdict: the first of each text, where there is a text."""
    own = np.arange(len(spool), dtype=np.uint32)
    needed: NDArray[np.uint32] = own[(spool.representative == own) & ~spool.is_empty]
    return needed


def _left_open(verdicts: Sequence[Verdict]) -> str | None:
    """Return why no verdict resolves anything; None where one does."""
    first = verdicts[0]
    if not isinstance(first, Unresolved) or not all(isinstance(v, Unresolved) for v in verdicts):
        return None
    return first.reason


_window_finished = maker(WindowFinished)


class Settle:
    """Takes the result of each window into the ledger, and stops a scan that cannot succeed."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        node: NodeId,
        emit: Emit,
        clock: Clock,
        patience: Patience,
        reasons: Reasons,
        free: bool,
        filing: Filing | None,
    ) -> None:
        # A rule that cannot work is its caller's to mend. What other judges did was paid for, and
        # would be lost.
        self._ours = (InternalError, UsageError) if free else (InternalError,)
        self._free = free
        self._patience = patience
        self._reasons = reasons
        self._ledger = ledger
        self._filing = filing
        self._node = node
        self._emit = emit
        self._clock = clock

    def __call__(self, result: Result[Window, Sequence[Verdict]]) -> None:
        window = result.item
        before = self._ledger.unresolved
        error: str | None = None
        match result:
            case Done():
                known = self._take(window, result.value)
            case Failed():
                if isinstance(result.error, self._ours):
                    raise result.error
                error, known = self._fail(window, result.error)
        left = self._ledger.unresolved - before
        self._emit(
            _window_finished(
                node=self._node,
                at=self._clock.now(),
                window=window.index,
                pass_index=window.pass_index,
                items=len(window.items),
                unresolved=left,
                error=error,
                first=window.items[0].name if left else None,
                known=known,
            )
        )
        match result:
            case Done():
                self._patience.weigh_reply(None if self._free else _left_open(result.value))
            case Failed():
                self._patience.weigh(result.error)

    def _take(self, window: Window, verdicts: Sequence[Verdict]) -> int:
        """Take verdicts in; return of how many items there was one already."""
        if len(verdicts) != len(window.items):
            raise InternalError(
                f"a judge gave {len(verdicts)} verdicts for {len(window.items)} items"
            )
        parts: Sequence[Part] = window.items
        filing = self._filing
        if filing is not None and (left := filing.left(window)) is not None:
            parts = list(map(parts.__getitem__, left))
            verdicts = list(map(verdicts.__getitem__, left))
        values = self._ledger.take(parts, window.pass_index, verdicts)
        if filing is not None:
            filing.file(window, parts, values)
        return len(window.items) - len(parts)

    def _fail(self, window: Window, error: Exception) -> tuple[str, int]:
        if isinstance(error, Halted):
            reason = f"not asked: {error.short}"
        elif isinstance(error, RlmError):
            reason = self._reasons.call_failed(error)
        else:
            reason = self._reasons.told(f"the judge raised {type(error).__name__}", str(error))
        known = self._take(window, [Unresolved(reason=reason)] * len(window.items))
        return error.code if isinstance(error, RlmError) else type(error).__name__, known
