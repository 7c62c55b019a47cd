"""What the journal knows already is settled by the coordinator, free, before a unit is sent.

A window whose calls are all filed is judged here. One of whose calls only some are filed, as where
an answer led to a second question and the worker died over that, goes to a unit with the answers
that there are. So no answer is paid twice, wherever it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from corpus.judges.base import Judge, Window
from corpus.verdicts import Verdict
from executors.errors import Halted, ModelError
from executors.events import Event
from executors.ids import ContentKey
from executors.journal.records import Filed, Journal, Paid, ToolBegun, ToolDone
from executors.messages import ModelReply
from executors.replies import JsonValue
from rlm.units.filed import Known

__all__ = ["FiledOnly", "Look", "look"]


@dataclass(slots=True, kw_only=True)
class Look:
    """What came of one window, and what happened over it."""

    window: Window | None = None
    verdicts: Sequence[Verdict] | None = None
    """None where a unit has to judge it."""
    found: Known = field(default_factory=dict[ContentKey, Filed])
    missed: bool = False
    """There was a call that is not filed."""
    events: list[Event] = field(default_factory=list[Event])
    voids: list[tuple[ContentKey, str]] = field(default_factory=list[tuple[ContentKey, str]])


class _NotFiled(Halted):
    """A call is not filed, and nothing is asked here."""

    def __init__(self) -> None:
        super().__init__(bound="filed", scope="the journal", limit="no answer")


class FiledOnly:
    """A journal that answers what is filed, and lets nothing be asked or written.

    Attributes:
        look: the window that is looked at.
    """

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self.look = Look()

    def emit(self, event: Event) -> None:
        """Keep an event until it is known whether the window is settled here."""
        self.look.events.append(event)

    def find(self, key: ContentKey) -> Filed | ModelError | None:
        found = self._inner.find(key)
        if not isinstance(found, Filed):
            self.look.missed = True
            raise _NotFiled
        self.look.found[key] = found
        return found

    def void(self, key: ContentKey, why: str) -> None:
        self.look.voids.append((key, why))

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        raise _NotFiled

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        raise _NotFiled

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        """Nothing left, so nothing failed."""

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        """Verdicts are filed where they are settled."""

    def notes(self, scope: ContentKey) -> Iterable[tuple[bytes, JsonValue]]:
        return ()

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        return self._inner.tool_found(key)

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        raise _NotFiled

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        raise _NotFiled


async def look(windows: Iterable[Window], judge: Judge, journal: FiledOnly) -> list[Look]:
    """Judge those windows whose answers are all filed.

    A record of several parts is settled as a whole or not at all, since its parts are folded where
    they are judged.

    Args:
        judge: asks through `journal`, and tells it its events.
    """
    looks: list[Look] = []
    for window in windows:
        journal.look = one = Look(window=window)
        try:
            one.verdicts = await judge.judge(window)
        except (ModelError, _NotFiled):
            one.missed = True
        if one.missed:  # the judge may have made the best of it
            one.verdicts = None
        looks.append(one)
    _leave_whole_records(looks)
    return looks


def _leave_whole_records(looks: Sequence[Look]) -> None:
    open_: set[int] = set()
    more = True
    while more:
        more = False
        for one in looks:
            assert one.window is not None
            ordinals = {part.ordinal for part in one.window.items}
            if one.verdicts is None or not open_.isdisjoint(ordinals):
                one.verdicts = None
                more = more or not ordinals <= open_
                open_ |= ordinals
