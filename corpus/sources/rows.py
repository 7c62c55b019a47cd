"""Sources made of rows: columns are chosen from the first rows, then rows become records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from corpus.records import Record
from corpus.sources.base import Complaints, OnBad, SourceInfo, SourceWarnings
from corpus.sources.columns import Columns
from corpus.sources.intake import Intake

__all__ = ["Place", "RowSource"]

Place = tuple[str, str, Mapping[str, object]]
"""Where a row stands, the id that it gets when it has none, and the row."""


@dataclass(slots=True, kw_only=True)
class RowSource:
    """Records out of rows.

    Args:
        info: what was decided when the source was opened.
        rows: opens the rows anew; it fills the warnings and complaints that it is given.
    """

    info: SourceInfo
    columns: Columns
    rows: Callable[[SourceWarnings, Complaints], Iterator[Place]]
    on_bad: OnBad = "refuse"
    in_loop: bool = False
    warnings: SourceWarnings = field(default_factory=SourceWarnings)

    def records(self) -> Iterator[Record]:
        """Return the records in order.

        Raises:
            SourceError: rows are no record and `on_bad` is "refuse".
        """
        warnings = self.warnings
        warnings.clear()
        complaints = Complaints(warnings, self.on_bad)
        intake = Intake(self.columns, warnings, complaints)
        for where, made_id, row in self.rows(warnings, complaints):
            record = intake.record(row, where, made_id)
            if record is not None:
                yield record
        complaints.settle()
