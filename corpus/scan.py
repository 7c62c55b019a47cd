"""Scan: every record is judged in every pass, concurrently, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpus.events import WindowFinished
from corpus.judges.base import Judge, Window
from corpus.ledger import Ledger
from corpus.spool import Spool
from corpus.verdicts import Unresolved, Verdict
from corpus.windows import Cut, windows
from executors.clock import Clock
from executors.engine.local import Done, Failed, Result, pull
from executors.errors import (
    AuthError,
    ConnectFault,
    Halted,
    InternalError,
    ModelError,
    ModelUnusable,
    RequestRejected,
    RetriesExhausted,
    RlmError,
)
from executors.events import Emit
from executors.ids import NodeId, child_of

__all__ = ["Scan", "Span", "distinct", "scan"]

# Windows in a row whose calls failed, after all their tries, before a scan gives the model up.
_PATIENCE = 50
# The same where nobody listens at the address at all.
_NOBODY = 3

Span = Callable[[NodeId, str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """How a corpus is scanned."""

    cut: Cut
    passes: int
    cap: int
    """Windows in flight."""


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
) -> None:
    """Judge each distinct, non-empty text of the spool in each pass and fill the ledger.

    A window whose judge raises is left unresolved, with the error as its reason; the others go on.

    Args:
        node: its children are the passes.
        span: entered around each pass with its node and name.

    Raises:
        Halted: a bound was reached, or the model cannot serve (ModelUnusable); the ledger holds
            all that was judged until then.
    """
    todo = distinct(spool)
    span = span or _no_span
    for pass_index in range(plan.passes):
        here = child_of(node, pass_index)
        source = windows(spool, todo, plan.cut, pass_index=pass_index, passes=plan.passes)
        patience = max(_PATIENCE, 4 * plan.cap)
        settle = _Settle(ledger, node=here, emit=emit, clock=clock, patience=patience)
        with span(here, f"pass {pass_index + 1} of {plan.passes}"):
            await pull(source, judge.judge, cap=plan.cap, settle=settle)


def _no_span(_node: NodeId, _name: str) -> AbstractContextManager[object]:
    return nullcontext()


def distinct(spool: Spool) -> NDArray[np.uint32]:
    """Return the ordinals that need a verdict: the first of each text, where there is a text."""
    own = np.arange(len(spool), dtype=np.uint32)
    needed: NDArray[np.uint32] = own[(spool.representative == own) & ~spool.is_empty]
    return needed


class _Settle:
    """Takes the result of each window into the ledger, and stops a scan that cannot succeed."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        node: NodeId,
        emit: Emit,
        clock: Clock,
        patience: int,
    ) -> None:
        self._patience = patience
        self._in_a_row = 0
        self._ledger = ledger
        self._node = node
        self._emit = emit
        self._clock = clock

    def __call__(self, result: Result[Window, Sequence[Verdict]]) -> None:
        window = result.item
        before = self._ledger.unresolved
        error: str | None = None
        match result:
            case Done():
                self._take(window, result.value)
            case Failed():
                if isinstance(result.error, InternalError):
                    raise result.error
                error = self._fail(window, result.error)
        left = self._ledger.unresolved - before
        self._emit(
            WindowFinished(
                node=self._node,
                at=self._clock.now(),
                window=window.index,
                pass_index=window.pass_index,
                items=len(window.items),
                unresolved=left,
                error=error,
                first=window.items[0].name if left else None,
            )
        )
        self._weigh(result)

    def _weigh(self, result: Result[Window, Sequence[Verdict]]) -> None:
        """Raise once calls fail in a row for a cause that the next call will share."""
        error = result.error if isinstance(result, Failed) else None
        if not isinstance(error, ModelError) or isinstance(error, RequestRejected):
            # A rejected request speaks of its own items alone.
            self._in_a_row = 0 if error is None else self._in_a_row
            return
        self._in_a_row += 1
        cause = error.last if isinstance(error, RetriesExhausted) else error
        nobody = isinstance(cause, ConnectFault) and self._in_a_row >= _NOBODY
        if nobody or isinstance(cause, AuthError) or self._in_a_row >= self._patience:
            raise ModelUnusable(last=cause, failures=self._in_a_row)

    def _take(self, window: Window, verdicts: Sequence[Verdict]) -> None:
        if len(verdicts) != len(window.items):
            raise InternalError(
                f"a judge gave {len(verdicts)} verdicts for {len(window.items)} items"
            )
        for part, verdict in zip(window.items, verdicts, strict=True):
            self._ledger.add(part, window.pass_index, verdict)

    def _fail(self, window: Window, error: Exception) -> str:
        if isinstance(error, Halted):
            reason = f"never judged: {error.what}"
        elif isinstance(error, RetriesExhausted):
            reason = f"the call failed after all its tries: {error.last.code}"
        elif isinstance(error, RlmError):
            reason = f"the call failed: {error.code}"
        else:
            reason = f"the judge raised {type(error).__name__}"
        for part in window.items:
            self._ledger.add(part, window.pass_index, Unresolved(reason=reason))
        return error.code if isinstance(error, RlmError) else type(error).__name__
