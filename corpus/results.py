"""What a count can result in: a Tally that states a number, or a Ranking that states none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from corpus.codes import EMPTY, FIRST_LABEL, LEFT_OUT, MATCHED, NOT, UNRESOLVED, UNSURE, Codes
from corpus.ledger import NEVER_JUDGED, Ledger
from corpus.records import Record, RecordState
from corpus.spool import Spool
from corpus.verdicts import Quote
from corpus.votes import Votes

__all__ = [
    "FORGOTTEN",
    "Ids",
    "Ranked",
    "Ranking",
    "Row",
    "Tally",
    "assemble",
    "ranked_by_probability",
    "state_of",
    "tally",
]

FORGOTTEN: Final = "forgotten on request"
"""Why a record is left out whose text was erased."""
_READ_AHEAD: Final = 1_024
_STATES: Final[dict[int, RecordState]] = {
    NOT: "not_matched",
    UNSURE: "unsure",
    UNRESOLVED: "unresolved",
    MATCHED: "matched",
    EMPTY: "empty",
    LEFT_OUT: "left_out",
}


def state_of(code: int) -> RecordState:
    """Return the state that a final code stands for."""
    return "matched" if code >= FIRST_LABEL else _STATES[code]


class Ids(Sequence[str]):
    """Ids of some records in corpus order, read from the spool when asked for."""

    def __init__(self, spool: Spool, ordinals: NDArray[np.uint32]) -> None:
        self._spool = spool
        self.ordinals = ordinals

    def __len__(self) -> int:
        return len(self.ordinals)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> str | Ids:
        if isinstance(index, slice):
            return Ids(self._spool, self.ordinals[index])
        return self._spool.id(int(self.ordinals[index]))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self.ordinals), _READ_AHEAD):
            some = self.ordinals[start : start + _READ_AHEAD].tolist()
            yield from (record.id for record in self._spool.read(some))

    def __repr__(self) -> str:
        shown = ", ".join(repr(id_) for id_ in self[:5])
        more = f", … {len(self) - 5:,} more" if len(self) > 5 else ""
        return f"[{shown}{more}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one record came out."""

    ordinal: int
    id: str
    where: str | None
    state: RecordState
    label: str | None
    """The label of a OneOf; None for a YesNo and where no label was given."""
    probability: float | None
    """Calibrated: of yes for a YesNo, of the label for a OneOf."""
    reason: str
    quote: Quote | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A count by code over the verdicts of a judge. The six states add up to `records`."""

    records: int
    states: Mapping[RecordState, int]
    labels: Mapping[str, int]
    """Records of each label of a OneOf; empty for a YesNo."""
    passes: int
    votes: Votes
    judge: str
    identical: int
    """Records that repeat the text of an earlier one: judged once, counted each."""
    expected: float | None
    """Sum of the calibrated probabilities of yes; None where the judge states none."""
    labelled: int
    """Records whose state is a person's label and not the judge's verdict."""
    notes: tuple[str, ...]
    spool: Spool
    codes: Codes
    """One code a record, in corpus order."""
    ledger: Ledger
    by_person: Mapping[int, str]
    """Ordinal -> who said so, for records that a person labelled."""

    def __repr__(self) -> str:
        left = self.states["unresolved"]
        return f"Tally(count={self.count}, records={self.records}, unresolved={left})"

    @property
    def count(self) -> int:
        """Records that matched; for a OneOf, records that were given a label."""
        return self.states["matched"]

    @property
    def complete(self) -> bool:
        """Nothing is unresolved."""
        return self.states["unresolved"] == 0

    @property
    def coverage(self) -> tuple[int, int]:
        """What this judge could still say: from what matched to that plus unsure and unresolved."""
        low = self.count
        return low, low + self.states["unsure"] + self.states["unresolved"]

    @property
    def matched_ids(self) -> Ids:
        """Ids of the records that matched, in corpus order."""
        return self.ids_of("matched")

    def ids_of(self, state: RecordState) -> Ids:
        """Return the ids of the records in one state, in corpus order."""
        if state == "matched":
            chosen = (self.codes == MATCHED) | (self.codes >= FIRST_LABEL)
        else:
            chosen = self.codes == next(c for c, s in _STATES.items() if s == state)
        return Ids(self.spool, np.flatnonzero(chosen).astype(np.uint32))

    def ids_labelled(self, label: str) -> Ids:
        """Return the ids of the records of one label, in corpus order."""
        code = FIRST_LABEL + self.ledger.labels.index(label)
        return Ids(self.spool, np.flatnonzero(self.codes == code).astype(np.uint32))

    def rows(self) -> Iterator[Row]:
        """Yield how each record came out, in corpus order."""
        for start in range(0, self.records, _READ_AHEAD):
            batch = range(start, min(start + _READ_AHEAD, self.records))
            for ordinal, record in zip(batch, self.spool.read(batch), strict=True):
                yield self._row(ordinal, record)

    def row(self, ordinal: int) -> Row:
        """Return how one record came out."""
        return self._row(ordinal, self.spool.record(ordinal))

    def _row(self, ordinal: int, record: Record) -> Row:
        code = int(self.codes[ordinal])
        judged = int(self.spool.representative[ordinal])
        label = self.ledger.labels[code - FIRST_LABEL] if code >= FIRST_LABEL else None
        return Row(
            ordinal=ordinal,
            id=record.id,
            where=record.where,
            state=state_of(code),
            label=label,
            probability=self.ledger.probability(judged),
            reason=self.reason(ordinal),
            quote=self.ledger.quotes.get(judged) if state_of(code) == "matched" else None,
        )

    def reason(self, ordinal: int) -> str:
        """Return why a record is in its state; "" where its verdict says it all."""
        code = int(self.codes[ordinal])
        source = int(self.spool.representative[ordinal])
        who = self.by_person.get(ordinal)
        if who is not None:
            return f"labelled by {who}"
        if code == EMPTY:
            return "no text"
        if code == LEFT_OUT:
            return FORGOTTEN
        if code not in (UNSURE, UNRESOLVED):
            return ""
        said = self.ledger.reason(source)
        judged = self.ledger.passes_of(source)
        if said or not judged:
            return said or NEVER_JUDGED
        return f"judged in {judged} of {self.passes} passes; the run ended first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One record with its score."""

    rank: int
    id: str
    where: str | None
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Records by score, best first. An uncalibrated score orders; it never states a number."""

    records: int
    judge: str
    notes: tuple[str, ...]
    spool: Spool
    scores: NDArray[np.float32]
    """One score a record, in corpus order; NaN for empty records."""

    def __repr__(self) -> str:
        return f"Ranking(records={self.records}, judge={self.judge!r})"

    def rows(self) -> Iterator[Ranked]:
        """Yield the records that have a score, best first; ties in corpus order."""
        order = np.argsort(-self.scores, kind="stable")
        for rank, ordinal in enumerate(order.tolist(), start=1):
            score = float(self.scores[ordinal])
            if np.isnan(score):
                return
            record = self.spool.record(ordinal)
            yield Ranked(rank=rank, id=record.id, where=record.where, score=score)


def tally(
    spool: Spool,
    ledger: Ledger,
    *,
    votes: Votes,
    judge: str,
    person: Mapping[int, tuple[int, str]] | None = None,
    notes: tuple[str, ...] = (),
) -> Tally:
    """Count, in code, how every record came out.

    Args:
        person: ordinal -> (code, who) of records that a person labelled; it overrides the judge.
    """
    person = person or {}
    judged = ledger.codes(votes)
    codes = judged[spool.representative]
    for ordinal, (code, _) in person.items():
        codes[ordinal] = code
    codes[spool.is_empty] = EMPTY  # whoever labelled it saw nothing either
    codes[spool.forgotten] = LEFT_OUT
    by_person = {n: who for n, (_, who) in person.items() if not bool(spool.is_empty[n])}
    return assemble(
        spool, ledger, codes, votes=votes, judge=judge, by_person=by_person, notes=notes
    )


def assemble(
    spool: Spool,
    ledger: Ledger,
    codes: Codes,
    *,
    votes: Votes,
    judge: str,
    by_person: Mapping[int, str],
    notes: tuple[str, ...],
) -> Tally:
    """Count final codes, one a record in corpus order."""
    return Tally(
        records=len(spool),
        states=_count_states(codes),
        labels={
            label: int((codes == FIRST_LABEL + i).sum()) for i, label in enumerate(ledger.labels)
        },
        passes=ledger.passes,
        votes=votes,
        judge=judge,
        identical=spool.identical,
        expected=_expected(spool, ledger, codes, by_person),
        labelled=len(by_person),
        notes=notes,
        spool=spool,
        codes=codes,
        ledger=ledger,
        by_person=by_person,
    )


def _count_states(codes: Codes) -> dict[RecordState, int]:
    counts: dict[RecordState, int] = {
        state: int((codes == code).sum()) for code, state in _STATES.items()
    }
    counts["matched"] += int((codes >= FIRST_LABEL).sum())
    return counts


def _expected(
    spool: Spool, ledger: Ledger, codes: Codes, person: Mapping[int, str]
) -> float | None:
    if ledger.probabilities is None or ledger.labels:
        return None
    each = ledger.probabilities[spool.representative].astype(np.float64)
    for ordinal in person:
        each[ordinal] = float(codes[ordinal] == MATCHED)
    return float(np.nansum(each))


def ranked_by_probability(result: Tally) -> Ranking:
    """Order records by a probability that nobody calibrated; records without one are left out."""
    none = np.full(result.records, np.nan, dtype=np.float32)
    stated = result.ledger.probabilities
    return Ranking(
        records=result.records,
        judge=result.judge,
        notes=result.notes,
        spool=result.spool,
        scores=none if stated is None else stated[result.spool.representative],
    )
