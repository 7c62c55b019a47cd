"""The ledger of a count: every record comes out exactly once.

Verdicts of parts and passes are folded as they come into two bytes a record and pass, so that a
million records cost megabytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self, assert_never, cast

import numpy as np
from numpy.typing import NDArray

from corpus.codes import (
    FIRST_LABEL,
    MATCHED,
    NONE,
    NOT,
    UNRESOLVED,
    UNSURE,
    Codes,
    filed_value,
    read_filed,
)
from corpus.records import Part
from corpus.verdicts import Chosen, Matched, NotMatched, Quote, Unresolved, Unsure, Verdict
from corpus.votes import Votes, fold_passes
from executors.errors import InternalError
from executors.journal.json_lines import decode
from executors.private import written_durably
from executors.replies import JsonValue

__all__ = ["DISAGREE", "NEVER_JUDGED", "Ledger"]

_MAX_REASONS: Final = 4_096
DISAGREE: Final = "its parts were given different labels"
NEVER_JUDGED: Final = "never judged: the run ended first"


class Ledger:
    """Verdicts of the records of one corpus.

    Args:
        size: records.
        passes: how often each record is judged.
        labels: the labels of a OneOf; none for a YesNo.
    """

    def __init__(self, size: int, *, passes: int, labels: tuple[str, ...] = ()) -> None:
        self.size = size
        self.passes = passes
        self.labels = labels
        self.quotes: dict[int, Quote] = {}
        self.reasons: list[str] = ["", NEVER_JUDGED, DISAGREE]
        self._codes: Codes = np.zeros((passes, size), dtype=np.uint16)
        # Views of the same memory: to set one number through numpy takes three times as long.
        self._rows = [memoryview(row) for row in self._codes]
        self._label_codes = {label: FIRST_LABEL + i for i, label in enumerate(labels)}
        self._kinds = [NONE, UNRESOLVED, UNSURE]  # of the reasons: the code that each explains
        self._reason_codes = {
            (kind, reason): i
            for i, (kind, reason) in enumerate(zip(self._kinds, self.reasons, strict=True))
        }
        self._reason_of: NDArray[np.uint16] | None = None
        self._probability: NDArray[np.float32] | None = None
        self._quote_ranks: dict[int, tuple[int, int, int]] = {}
        self._pending: dict[tuple[int, int], set[int]] = {}
        self.unresolved = 0
        """Verdicts so far that left an item unresolved, for progress."""

    def take(
        self, parts: Sequence[Part], pass_index: int, verdicts: Sequence[Verdict]
    ) -> list[JsonValue]:
        """Fold the verdicts of a window in; return what `filed` says of each.

        Raises:
            InternalError: a part was judged in this pass already, or has no verdict.
        """
        row = self._rows[pass_index]
        values: list[JsonValue] = []
        for part, verdict in zip(parts, verdicts, strict=True):
            code = self._plain_code(verdict)
            ordinal = part.ordinal
            if code == NONE or part.of > 1 or row[ordinal] != NONE:
                self.add(part, pass_index, verdict)
                values.append(self.filed(part, pass_index, verdict))
            else:
                row[ordinal] = code
                values.append(code)
        return values

    def _plain_code(self, verdict: Verdict) -> int:
        """Return the code of a verdict of which nothing else is kept, else NONE."""
        # Not by patterns, which take longer: this is done for each item.
        if isinstance(verdict, NotMatched):
            return NOT if verdict.probability is None else NONE
        if isinstance(verdict, Matched):
            return MATCHED if verdict.probability is None and verdict.quote is None else NONE
        if isinstance(verdict, Chosen) and verdict.probability is None and verdict.quote is None:
            return self._label_codes[verdict.label]
        return NONE

    def add(self, part: Part, pass_index: int, verdict: Verdict) -> None:
        """Fold one verdict in.

        Raises:
            InternalError: this part was judged in this pass already.
        """
        code = self._code(verdict)
        row = self._rows[pass_index]
        before = row[part.ordinal]
        if part.of > 1:
            code = self._fold_part(part, pass_index, before, code)
        elif before != NONE:
            raise InternalError(f"{part.name!r} was judged twice in pass {pass_index}")
        row[part.ordinal] = code
        self._note(part.ordinal, pass_index, verdict)

    def filed(self, part: Part, pass_index: int, verdict: Verdict) -> JsonValue:
        """Return what `restore` needs to know of a record that was judged just now.

        None where there is nothing to keep: it is unresolved, or parts of it are still missing.
        """
        code = self._rows[pass_index][part.ordinal]
        if code == UNRESOLVED or (part.of > 1 and (part.ordinal, pass_index) in self._pending):
            return None
        if part.of > 1:
            reason = self.reason(part.ordinal) if code == UNSURE else ""
            return filed_value(code, None, reason, self.quotes.get(part.ordinal))
        match verdict:
            case Unresolved():
                return None
            case Unsure():
                return filed_value(code, verdict.probability, verdict.reason, None)
            case Matched() | Chosen():
                return filed_value(code, verdict.probability, "", verdict.quote)
            case NotMatched():
                return filed_value(code, verdict.probability, "", None)
            case _:
                assert_never(verdict)

    def restore(self, ordinal: int, pass_index: int, value: JsonValue) -> None:
        """Take back what `filed` returned in an earlier session.

        Raises:
            RunDirError: it is no such value.
        """
        code, probability, reason, quote = read_filed(value, len(self.labels))
        self._codes[pass_index, ordinal] = code
        if reason:
            self._give_reason(ordinal, code, reason)
        self._give_probability(ordinal, probability)
        if quote is not None:
            self._give_quote(ordinal, pass_index, quote)

    def forget(self, ordinal: int, heir: int | None, tells: Callable[[str], bool]) -> None:
        """Drop what was judged of a record.

        Args:
            heir: the next record with the same text, which takes its verdicts over; None for none.
            tells: whether words give something of the record away.
        """
        self._codes = self._codes.copy()
        if heir is not None:
            self._codes[:, heir] = self._codes[:, ordinal]
        self._codes[:, ordinal] = NONE
        if self._reason_of is not None:
            self._reason_of = self._reason_of.copy()
            if heir is not None:
                self._reason_of[heir] = self._reason_of[ordinal]
            self._reason_of[ordinal] = 0
        if self._probability is not None:
            self._probability = self._probability.copy()
            if heir is not None:
                self._probability[heir] = self._probability[ordinal]
            self._probability[ordinal] = np.nan
        quote = self.quotes.pop(ordinal, None)
        if heir is not None and quote is not None:
            self.quotes[heir] = quote
        self.reasons = ["erased on request" if tells(said) else said for said in self.reasons]

    def save(self, directory: Path) -> None:
        """Write what was judged into a directory that holds nothing of it, for `Ledger.load`."""
        arrays = {
            "codes": self._judged_codes(),
            "reason_of": self._reason_of,
            "probability": self._probability,
        }
        for name, array in arrays.items():
            if array is not None:
                with written_durably(directory / f"{name}.npy") as file:
                    np.save(file, array)
        quotes = {str(n): [q.text, q.start, q.end] for n, q in self.quotes.items()}
        texts = {"labels": self.labels, "reasons": self.reasons, "quotes": quotes}
        with written_durably(directory / "ledger.json") as file:
            file.write(json.dumps(texts).encode("ascii"))

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read what `save` wrote; arrays are mapped, not read."""
        texts = cast("dict[str, Any]", decode((directory / "ledger.json").read_bytes()))
        codes: Codes = np.load(directory / "codes.npy", mmap_mode="r")
        found = cls(codes.shape[1], passes=codes.shape[0], labels=tuple(texts["labels"]))
        found._codes = codes
        found._rows = [memoryview(row) for row in codes]
        found.reasons = list(texts["reasons"])
        found.quotes = {
            int(n): Quote(text=text, start=start, end=end)
            for n, (text, start, end) in texts["quotes"].items()
        }
        if (directory / "reason_of.npy").exists():
            found._reason_of = np.load(directory / "reason_of.npy", mmap_mode="r")
        if (directory / "probability.npy").exists():
            found._probability = np.load(directory / "probability.npy", mmap_mode="r")
        return found

    def codes(self, votes: Votes) -> Codes:
        """Return one code a record, over all passes; what was never judged is unresolved.

        A record of which some parts are still missing is unresolved too, unless one matched.
        """
        return fold_passes(self._complete_codes(), votes)

    def probability(self, ordinal: int) -> float | None:
        """Return the calibrated probability that was stated last for a record, None if none was."""
        if self._probability is None:
            return None
        value = float(self._probability[ordinal])
        return None if np.isnan(value) else value

    @property
    def probabilities(self) -> NDArray[np.float32] | None:
        """All probabilities, NaN where none was stated; None where the judge states none."""
        return self._probability

    def reason(self, ordinal: int) -> str:
        """Return why a record is unsure or unresolved; "" where nothing was said."""
        return "" if self._reason_of is None else self.reasons[int(self._reason_of[ordinal])]

    def passes_of(self, ordinal: int) -> int:
        """Return in how many passes a record was judged whole."""
        return int((self._judged_codes(slice(ordinal, ordinal + 1)) != NONE).sum())

    def _judged_codes(self, some: slice = slice(None)) -> Codes:
        """Return a copy in which a record with parts missing was not judged, unless one matched."""
        rows: Codes = self._codes[:, some].copy()
        start = some.start or 0
        for ordinal, pass_index in self._pending:
            place = ordinal - start
            if 0 <= place < rows.shape[1] and rows[pass_index, place] != MATCHED:
                rows[pass_index, place] = NONE
        return rows

    def _complete_codes(self) -> Codes:
        rows = self._judged_codes()
        rows[rows == NONE] = UNRESOLVED
        return rows

    def _fold_part(self, part: Part, pass_index: int, before: int, code: int) -> int:
        key = (part.ordinal, pass_index)
        missing = self._pending.get(key)
        if missing is None:
            if before != NONE:
                raise InternalError(f"{part.name!r} was judged twice in pass {pass_index}")
            missing = self._pending[key] = set(range(part.of))
        if part.index not in missing:
            raise InternalError(f"{part.name!r} was judged twice in pass {pass_index}")
        missing.remove(part.index)
        if not missing:
            del self._pending[key]
        if before == NONE:
            return code
        if not self.labels:
            return max(before, code)
        return self._fold_labels(part.ordinal, before, code)

    def _fold_labels(self, ordinal: int, before: int, code: int) -> int:
        if UNRESOLVED in (before, code):
            return UNRESOLVED
        if UNSURE in (before, code):
            return UNSURE
        if before != code:
            names = [self.labels[c - FIRST_LABEL] for c in sorted((before, code))]
            self._give_reason(ordinal, UNSURE, f"{DISAGREE}: {' / '.join(names)}")
            return UNSURE
        return code

    def _code(self, verdict: Verdict) -> int:
        match verdict:
            case Matched():
                return MATCHED
            case NotMatched():
                return NOT
            case Chosen():
                return self._label_codes[verdict.label]
            case Unsure():
                return UNSURE
            case Unresolved():
                self.unresolved += 1
                return UNRESOLVED
            case _:
                assert_never(verdict)

    def _note(self, ordinal: int, pass_index: int, verdict: Verdict) -> None:
        match verdict:
            case Unresolved():
                self._give_reason(ordinal, UNRESOLVED, verdict.reason)
            case Unsure():
                self._give_reason(ordinal, UNSURE, verdict.reason)
                self._give_probability(ordinal, verdict.probability)
            case Matched() | Chosen():
                self._give_probability(ordinal, verdict.probability)
                if verdict.quote is not None:
                    self._give_quote(ordinal, pass_index, verdict.quote)
            case NotMatched():
                self._give_probability(ordinal, verdict.probability)
            case _:
                assert_never(verdict)

    def _give_quote(self, ordinal: int, pass_index: int, quote: Quote) -> None:
        """Keep the first quote of the first pass that has one, whichever came first."""
        rank = (pass_index, quote.start, quote.end)
        if rank <= self._quote_ranks.get(ordinal, rank):
            self._quote_ranks[ordinal] = rank
            self.quotes[ordinal] = quote

    def _give_probability(self, ordinal: int, probability: float | None) -> None:
        if probability is None:
            return
        if self._probability is None:
            self._probability = np.full(self.size, np.nan, dtype=np.float32)
        self._probability[ordinal] = probability

    def _give_reason(self, ordinal: int, kind: int, reason: str) -> None:
        """Keep the reason of the verdict that wins: what is unresolved beats what is unsure."""
        if self._reason_of is None:
            self._reason_of = np.zeros(self.size, dtype=np.uint16)
        if kind >= self._kinds[int(self._reason_of[ordinal])]:
            self._reason_of[ordinal] = self._reason_code(kind, reason)

    def _reason_code(self, kind: int, reason: str) -> int:
        code = self._reason_codes.get((kind, reason))
        if code is None and len(self.reasons) >= _MAX_REASONS:
            reason = "more kinds of reasons than are kept"
            code = self._reason_codes.get((kind, reason))
        if code is None:
            code = self._reason_codes[kind, reason] = len(self.reasons)
            self.reasons.append(reason)
            self._kinds.append(kind)
        return code
