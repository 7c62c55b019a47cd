"""Verdicts in the journal, filed by content: what was judged once needs no second look.

The verdict key is the scope (criterion, judge, pass) with the digest of the record's text. The
window is no part of it: a record keeps its verdict when the corpus around it grows or is shuffled.
What is unresolved is never filed, so that the next session judges it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from corpus.agenda import Agenda, Ordinals
from corpus.identity import DIGEST_SIZE
from corpus.judges.base import Window
from corpus.ledger import Ledger
from corpus.records import Part
from corpus.repeats import Digests, Lookup
from executors.errors import RunDirError
from executors.ids import ContentKey, content_key
from executors.journal.records import Journal
from executors.replies import JsonValue

__all__ = ["Digested", "Filing", "verdict_scope"]

_BATCH: Final = 8_192


def verdict_scope(criterion: ContentKey, judge: ContentKey, pass_index: int) -> ContentKey:
    """Return what a record's digest is filed under."""
    return content_key("verdict", criterion, judge, str(pass_index))


class Digested(Protocol):
    """What verdicts are filed by: the spool, or anything that knows the digests of its texts."""

    @property
    def digests(self) -> Digests:
        """16 bytes a record, by ordinal."""
        ...


class Filing:
    """Between the ledger of one session and the journal of its run.

    Args:
        todo: the ordinals that need a verdict: the first of each text, where there is a text.
        ledger: filled by `restore`, and read when a verdict is filed.
    """

    def __init__(
        self,
        journal: Journal,
        spool: Digested,
        ledger: Ledger,
        todo: Ordinals,
        *,
        criterion: ContentKey,
        judge: ContentKey,
    ) -> None:
        self._journal = journal
        self._digests: Digests = spool.digests
        # Whole digests: to pick some of them takes numpy less than half of what rows of bytes take.
        self._keys = self._digests.view(f"V{DIGEST_SIZE}")[:, 0]
        self._ledger = ledger
        self._todo = todo
        self._scopes = [verdict_scope(criterion, judge, n) for n in range(ledger.passes)]
        self.done: NDArray[np.bool_] = np.zeros((ledger.passes, ledger.size), dtype=np.bool_)
        """Which records had a verdict when the session began, by pass and ordinal."""
        self.damaged = 0
        """Verdicts that `restore` met and that are none; what they are about is judged anew."""
        self._begun = [False] * ledger.passes

    def restore(self) -> int:
        """Bring earlier verdicts into the ledger; return how many."""
        lookup: Lookup | None = None
        for pass_index, scope in enumerate(self._scopes):
            for batch in _batches(self._journal.notes(scope)):
                lookup = lookup or Lookup(self._digests, self._todo)
                keys = b"".join([key for key, _ in batch])
                for ordinal, (_, value) in zip(lookup.ordinals(keys), batch, strict=True):
                    if ordinal >= 0:
                        try:
                            self._ledger.restore(ordinal, pass_index, value)
                        except RunDirError:
                            self.damaged += 1
                            continue
                        self.done[pass_index, ordinal] = True
        self._begun = [bool(row.any()) for row in self.done]
        return int(np.count_nonzero(self.done))

    def agenda(self) -> Agenda:
        """Return what has no verdict yet."""
        return Agenda(passes=tuple(self._todo[~row[self._todo]] for row in self.done))

    def covers(self, agenda: Agenda) -> bool:
        """Say whether all that an agenda lists has a verdict."""
        return all(
            bool(row[ordinals].all())
            for row, ordinals in zip(self.done, agenda.passes, strict=True)
        )

    def skip(self, pass_index: int, ordinals: Ordinals | list[int] | NDArray[np.bool_]) -> None:
        """Take records for done: they are judged elsewhere, or were a moment ago."""
        self.done[pass_index, ordinals] = True
        self._begun[pass_index] = True

    def left(self, window: Window) -> list[int] | None:
        """Return the places of the items without a verdict; None where the pass began with none."""
        if not self._begun[window.pass_index]:
            return None
        done = self.done[window.pass_index]
        return [place for place, part in enumerate(window.items) if not done[part.ordinal]]

    def file(self, window: Window, parts: Sequence[Part], values: Sequence[JsonValue]) -> None:
        """File what the ledger has just taken of a window; None is not filed.

        Each call about the window is named, so that what it said can be found and forgotten.
        """
        ordinals = [part.ordinal for part in parts]
        if None in values:
            kept = [place for place, value in enumerate(values) if value is not None]
            ordinals = [ordinals[place] for place in kept]
            values = [values[place] for place in kept]
        if ordinals:
            keys = self._keys.take(ordinals).tobytes()
            for call in window.calls or (None,):
                self._journal.note(self._scopes[window.pass_index], keys, values, call=call)


def _batches(
    notes: Iterable[tuple[bytes, JsonValue]],
) -> Iterator[list[tuple[bytes, JsonValue]]]:
    left = iter(notes)
    while batch := list(islice(left, _BATCH)):
        yield batch
