"""How a verdict is written down: two bytes in the ledger, a value of JSON in the journal.

The codes of a YesNo are ordered so that the fold over the parts of a record is a maximum: a match
beats what is unresolved, that beats unsure, that beats no.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from corpus.verdicts import Quote
from executors.errors import RunDirError
from executors.replies import JsonValue

__all__ = [
    "EMPTY",
    "FIRST_LABEL",
    "LEFT_OUT",
    "MATCHED",
    "NONE",
    "NOT",
    "UNRESOLVED",
    "UNSURE",
    "Codes",
    "filed_value",
    "read_filed",
]

Codes = NDArray[np.uint16]

NONE: Final = 0
NOT: Final = 1
UNSURE: Final = 2
UNRESOLVED: Final = 3
MATCHED: Final = 4
EMPTY: Final = 5
LEFT_OUT: Final = 6
FIRST_LABEL: Final = 16


def filed_value(
    code: int, probability: float | None, reason: str, quote: Quote | None
) -> JsonValue:
    """Return a verdict as JSON: its code alone where that says it all, as nearly always."""
    if quote is not None:
        return [code, probability, reason, [quote.text, quote.start, quote.end]]
    if reason:
        return [code, probability, reason]
    return code if probability is None else [code, probability]


def read_filed(value: JsonValue, labels: int) -> tuple[int, float | None, str, Quote | None]:
    """Return code, probability, reason and quote of what `Ledger.filed` returned.

    Args:
        labels: how many labels the question has.

    Raises:
        RunDirError: it is no such value.
    """
    match value:
        case int(code):
            found: tuple[int, float | None, str, Quote | None] = (code, None, "", None)
        case [int(code), float() | int() | None as probability]:
            found = (code, probability, "", None)
        case [int(code), float() | int() | None as probability, str(reason)]:
            found = (code, probability, reason, None)
        case [
            int(code),
            float() | int() | None as probability,
            str(reason),
            [str(text), int(start), int(end)],
        ]:
            found = (code, probability, reason, Quote(text=text, start=start, end=end))
        case _:
            raise RunDirError(f"the journal holds a verdict that is none: {value!r}"[:200])
    plain = (NOT, UNSURE) if labels else (NOT, UNSURE, MATCHED)
    known = found[0] in plain or FIRST_LABEL <= found[0] < FIRST_LABEL + labels
    if isinstance(found[0], bool) or not known:
        raise RunDirError(f"the journal holds a verdict that is none: {value!r}"[:200])
    return found
