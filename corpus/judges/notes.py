"""What the reader of a count may want to know of a judged window besides its verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from corpus.events import JudgeNoted
from corpus.judges.base import Window
from corpus.verdicts import Unresolved, Verdict
from executors.clock import Clock
from executors.events import Emit
from executors.ids import ContentKey, NodeId
from executors.secrets import scrub

__all__ = ["Notes"]

_SNIPPET: Final = 200
_SCRUBBED: Final = 4_000  # more than is shown, so that no secret is cut in half and shown
_NAMED: Final = 20


@dataclass(slots=True, kw_only=True)
class Notes:
    """Gathered while a window is judged, reported once at its end."""

    calls: list[ContentKey]
    """Keys of the calls that were answered."""
    foreign: int = 0
    repaired: int = 0
    snippet: str | None = None

    def keep(self, text: str) -> None:
        """Keep the start of a reply that could not be read: of the first such one."""
        if self.snippet is None and text.strip():
            shown = scrub(text[:_SCRUBBED])[:_SNIPPET]
            self.snippet = shown.encode("utf-8", "replace").decode("utf-8")

    def report(
        self,
        emit: Emit,
        window: Window,
        verdicts: Sequence[Verdict],
        *,
        node: NodeId,
        clock: Clock,
    ) -> None:
        """Emit what there is to say; nothing when all went well."""
        heard = self.foreign or self.repaired or self.snippet
        if not heard and Unresolved not in map(type, verdicts):
            return
        missing = [
            part.name
            for part, verdict in zip(window.items, verdicts, strict=True)
            if isinstance(verdict, Unresolved)
        ]
        emit(
            JudgeNoted(
                node=node,
                at=clock.now(),
                window=window.index,
                pass_index=window.pass_index,
                foreign=self.foreign,
                repaired=self.repaired,
                missing=len(missing),
                items=tuple(missing[:_NAMED]),
                snippet=self.snippet,
            )
        )
