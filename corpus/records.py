"""What a count counts: records, and the parts that a long record is read in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["Part", "Record", "RecordState", "is_blank"]

RecordState = Literal["matched", "not_matched", "unsure", "unresolved", "empty", "left_out"]
"""How a record comes out of a count; each record comes out exactly once."""


# Unicode's white space, soft hyphen, zero-width and direction marks, variation selectors.
_BLANK = re.compile(
    r"[\s\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]*"
)


def is_blank(text: str) -> bool:
    """Whether a text shows nothing at all."""
    # Most texts begin with a letter or a digit, and that is seen much sooner.
    return not text[:1].isalnum() and _BLANK.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One source id with its text: the unit of a count."""

    id: str
    text: str
    where: str | None = None
    """Where it stands in its source, for people: `tickets.csv:17`."""

    @property
    def empty(self) -> bool:
        """Nothing to judge: no character but white space and those that show nothing."""
        return is_blank(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a record that fits a window; offsets are characters of the record's text."""

    ordinal: int
    """Place of the record in the spool, from 0."""
    id: str
    text: str
    index: int = 0
    """Which part of the record, from 0."""
    of: int = 1
    """How many parts the record has."""
    start: int = 0

    @property
    def name(self) -> str:
        """What reasons and receipts call it: the id, with the part where there are several."""
        return self.id if self.of == 1 else f"{self.id} (part {self.index + 1} of {self.of})"
