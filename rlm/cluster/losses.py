"""What a worker did that is gone: read from the journal, told, and charged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from executors.gate.allowance import Drawn
from executors.ids import NodeId
from executors.journal.journal import RunJournal
from rlm.cluster.traces import is_written
from rlm.cluster.work import Out
from rlm.runs.log import RunLog

__all__ = ["Losses"]

_LOOK: Final = 0.05  # seconds between two looks at whether a worker is dead
_PATIENCE: Final = 35.0  # seconds after which its lease has lapsed, and it does nothing any more


class Losses:
    """Accounts for units that are lost.

    Args:
        node: that the calls belong to.
        model: its name, for events.
    """

    def __init__(
        self, directory: Path, journal: RunJournal, log: RunLog, *, node: NodeId, model: str
    ) -> None:
        self._directory = directory
        self._journal = journal
        self._log = log
        self._node = node
        self._model = model

    async def account(self, out: Out) -> Drawn:
        """Tell what a lost unit did and did not tell; return what it drew since its last report.

        From here on `find` knows its answers.
        """
        if out.segment is not None:
            await self._until_dead(out.segment)
            read = partial(out.trace.read, out.segment, out.begin)
            await anyio.to_thread.run_sync(read)
            await self._journal.refresh()
        node, model = self._node, self._model
        for key, reply, paid in out.trace.untold(self._directory / "blobs"):
            self._log.recovered(key, reply, paid, node=node, model=model)
        for lost in out.trace.lost:
            self._log.lost(lost, node=node, model=model)
        unknown = Drawn() if out.segment is not None else self._unknown(out)
        return self.drawn(out) + unknown

    def _unknown(self, out: Out) -> Drawn:
        """Return what calls may have drawn that left just before a worker died.

        Its lines are sent, and the last ones may have died with it: there is one for each slot at
        most. Each is charged like the dearest that is known.
        """
        count = max(0, out.slots - out.trace.open) if out.trace.worst.calls else 0
        if count:
            said = f"up to {count} more call(s) may have left a worker that died, and be paid"
            self._log.warn(self._node, "lost", said)
        return sum([out.trace.worst] * count, Drawn())

    def drawn(self, out: Out) -> Drawn:
        """Return what a unit drew since its last report, as far as its lines tell."""
        total, told = out.trace.drawn, out.reported
        return Drawn(
            calls=max(0, total.calls - told.calls),
            tokens=max(0, total.tokens - told.tokens),
            usd=max(type(total.usd)(0), total.usd - told.usd),
        )

    async def _until_dead(self, segment: Path) -> None:
        """Wait until the writer of a segment is dead, or its lease has lapsed in any case."""
        with anyio.move_on_after(_PATIENCE):
            while is_written(segment):  # noqa: ASYNC110 - the system tells nobody
                await anyio.sleep(_LOOK)
