"""From the codes of several passes to one code a record."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from corpus.codes import FIRST_LABEL, MATCHED, NOT, UNRESOLVED, UNSURE, Codes
from executors.errors import ValidationError

__all__ = ["VOTES", "Votes", "fold_passes"]

Votes = Literal["any", "majority", "all"]
VOTES: Final[tuple[Votes, ...]] = ("any", "majority", "all")


def fold_passes(rows: Codes, votes: Votes) -> Codes:
    """Fold the codes of several passes, shape (passes, records), into one code a record.

    any: a match in one pass is a match; else unresolved beats unsure beats no. Different labels in
    different passes are unsure.
    majority: more than half of the passes must agree; else unresolved if a pass was, else unsure.
    all: every pass must say yes; one no is a no. Labels must be the same in every pass.
    """
    if len(rows) == 1:
        alone: Codes = rows[0].copy()
        return alone
    is_label = rows >= FIRST_LABEL
    if bool(is_label.any()):
        return _fold_label_passes(rows, is_label, votes)
    match votes:
        case "any":
            best: Codes = np.maximum.reduce(rows, axis=0).astype(np.uint16)
            return best
        case "majority":
            half = len(rows) / 2
            return _choose(
                (rows == MATCHED).sum(axis=0) > half, (rows == NOT).sum(axis=0) > half, rows
            )
        case "all":
            return _choose((rows == MATCHED).all(axis=0), (rows == NOT).any(axis=0), rows)
        case _:
            raise ValidationError(f"votes={votes!r}", hint=f"choose one of {', '.join(VOTES)}")


def _choose(yes: NDArray[np.bool_], no: NDArray[np.bool_], rows: Codes) -> Codes:
    open_ = np.where((rows == UNRESOLVED).any(axis=0), UNRESOLVED, UNSURE)
    codes: Codes = np.where(yes, MATCHED, np.where(no, NOT, open_)).astype(np.uint16)
    return codes


def _fold_label_passes(rows: Codes, is_label: NDArray[np.bool_], votes: Votes) -> Codes:
    first = np.where(is_label, rows, 0).max(axis=0)
    agree = (rows == first) & is_label
    contradicted = (is_label & ~agree).any(axis=0)
    open_ = np.where((rows == UNRESOLVED).any(axis=0), UNRESOLVED, UNSURE)
    match votes:
        case "any":
            won = (first > 0) & ~contradicted
            open_ = np.where(contradicted, UNSURE, open_)
        case "all":
            won = agree.all(axis=0)
        case "majority":
            first, won = _majority_label(rows, is_label)
        case _:
            raise ValidationError(f"votes={votes!r}", hint=f"choose one of {', '.join(VOTES)}")
    codes: Codes = np.where(won, first, open_).astype(np.uint16)
    return codes


def _majority_label(rows: Codes, is_label: NDArray[np.bool_]) -> tuple[Codes, NDArray[np.bool_]]:
    best = np.zeros(rows.shape[1], dtype=np.uint16)
    won = np.zeros(rows.shape[1], dtype=np.bool_)
    for row, named in zip(rows, is_label, strict=True):
        has_more = named & ((rows == row).sum(axis=0) > len(rows) / 2)
        best = np.where(has_more, row, best).astype(np.uint16)
        won |= has_more
    return best, won
