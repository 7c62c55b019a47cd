"""The corpus judged: every record by a model, or by words that stand in it; code counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import anyio
import anyio.to_thread
import numpy as np

from corpus.agenda import Agenda, Ordinals
from corpus.codes import UNRESOLVED
from corpus.criterion import Criterion
from corpus.events import ScanStarted
from corpus.filing import Filing
from corpus.judges.base import Judge
from corpus.judges.chat import ChatJudge
from corpus.ledger import Ledger
from corpus.questions import YesNo
from corpus.results import Tally, tally
from corpus.scan import Scan, distinct, scan
from corpus.spool import Spool
from corpus.votes import Votes
from corpus.windows import Cut
from executors.errors import Halted
from executors.ids import NodeId
from executors.models.base import Model
from rlm.recursions.forest import Forest
from rlm.recursions.options import RecurseOptions
from rlm.runs.log import ROOT

__all__ = ["Scanning", "cut_of", "tokens_for", "unresolved_in"]

_TOKENS = 6_000


class Scanning:
    """One predicate over one corpus, judged as a whole or in parts; each record once a pass.

    Args:
        judge: makes the judge of a node.
        name: what the judge is called.
        deterministic: one pass is enough.
    """

    def __init__(
        self,
        forest: Forest,
        judge: Callable[[NodeId], Judge],
        options: RecurseOptions,
        *,
        name: str,
        tokens: int = _TOKENS,
        deterministic: bool = False,
        server: str = "",
    ) -> None:
        assert forest.spool is not None
        self._forest = forest
        self._judge = judge
        self._votes: Votes = options.votes
        self._passes = 1 if deterministic else options.passes
        self._window = options.window
        self._tokens = tokens
        self._asks = not deterministic
        self._server = server
        self._name = name
        self.spool: Spool = forest.spool
        self._todo: Ordinals = distinct(self.spool)
        self._ledger = Ledger(len(self.spool), passes=self._passes)
        self._filing: Filing | None = None
        self._restoring = anyio.Lock()
        self._restored = False

    @classmethod
    def by_model(
        cls, forest: Forest, model: Model, predicate: str, options: RecurseOptions
    ) -> Self:
        """Return a scan whose judge is a chat model that is asked the predicate of each record."""
        criterion = Criterion(question=YesNo(text=predicate))

        def judge(node: NodeId) -> ChatJudge:
            return ChatJudge(forest.calls, model, criterion, node=node)

        scanning = cls(
            forest,
            judge,
            options,
            name=f"chat {model.info.spec}",
            tokens=tokens_for(model),
            server=model.info.server,
        )
        scanning._filing = Filing(
            forest.journal,
            scanning.spool,
            scanning._ledger,
            scanning._todo,
            criterion=criterion.key,
            judge=judge(ROOT).info.identity,
        )
        return scanning

    async def _filed(self) -> Filing | None:
        """Return what is filed, with all that earlier sessions judged taken over."""
        async with self._restoring:
            if self._filing is not None and not self._restored:
                await anyio.to_thread.run_sync(self._filing.restore)
                self._restored = True
        return self._filing

    async def run(self, node: NodeId, *, records: range | None = None, cap: int) -> Halted | None:
        """Judge some records, by default all; return what stopped it, if anything did.

        Args:
            records: ordinals of the corpus; a text that stands more than once is judged in the
                part that holds its first record.
            cap: windows in flight.
        """
        forest, todo = self._forest, self._todo
        if records is not None:
            todo = todo[(todo >= records.start) & (todo < records.stop)]
        filing = await self._filed()
        before = None if filing is None else filing.done[:, todo].sum(axis=1)
        plan = Scan(
            cut=cut_of(self._window, self._tokens),
            agenda=Agenda.whole(todo, self._passes),
            cap=cap,
        )
        forest.log.emit(
            ScanStarted(
                node=node,
                at=forest.wiring.clock.now(),
                judge=self._name,
                items=len(todo),
                passes=plan.passes,
                window=self._window,
                cap=cap,
                asks=self._asks,
                server=self._server,
                restored=0 if before is None else int(before.sum()),
                restored_in=() if before is None else tuple(before.tolist()),
            )
        )
        try:
            await scan(
                self.spool,
                self._judge(node),
                self._ledger,
                plan,
                node=node,
                emit=forest.log.emit,
                clock=forest.wiring.clock,
                span=forest.log.node,
                filing=filing,
                stop=forest.stop,
            )
        except Halted as halted:
            forest.halt(halted)
            return halted
        return None

    def tally(self) -> Tally:
        """Count what was judged so far."""
        return tally(
            self.spool,
            self._ledger,
            votes=self._votes,
            judge=self._name,
            person={},
            notes=(),
        )


def unresolved_in(result: Tally, records: range) -> int:
    """Return how many records of a part were never judged."""
    return int(np.count_nonzero(result.codes[records.start : records.stop] == UNRESOLVED))


def tokens_for(model: Model) -> int:
    """Return the estimated tokens of records that a call of a judge shows, at most."""
    known = model.info.context_window
    return _TOKENS if known is None else max(16, min(_TOKENS, known // 2))


def cut_of(window: int, tokens: int) -> Cut:
    """Return how a scan cuts its windows."""
    return Cut(items=window, tokens=tokens, overlap=min(60, tokens // 4))
