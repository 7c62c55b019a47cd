"""From a row to a record: the one place where ids and texts are taken out of cells."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from corpus.records import Record
from corpus.sources.base import Complaints, SourceWarnings, sound
from corpus.sources.columns import Columns
from executors.makers import maker

__all__ = ["Intake", "encodable"]

_MISSING = object()
_record = maker(Record)


def encodable(text: str, warnings: SourceWarnings, where: str) -> str:
    """Return the text with halves of surrogate pairs joined, or replaced by U+FFFD and counted."""
    clean = sound(text)
    if clean is not text and clean.count("\ufffd") > text.count("\ufffd"):
        warnings.add("lone-surrogates", where)
    return clean


class Intake:
    """Makes records of rows.

    An id is text, or a number as the source prints it; a row whose id is missing, null or empty
    becomes a record with an empty id, which pass 0 refuses or names. A null text is an empty one.
    """

    __slots__ = ("_complaints", "_id", "_texts", "_warnings")

    def __init__(self, columns: Columns, warnings: SourceWarnings, complaints: Complaints) -> None:
        self._id = columns.id
        self._texts = columns.texts
        self._warnings = warnings
        self._complaints = complaints

    def record(self, row: Mapping[str, object], where: str, made_id: str) -> Record | None:
        """Return the row as a record, or None when it is none (and that was noted)."""
        id_ = made_id if self._id is None else row.get(self._id)
        if type(id_) is not str and (id_ := self._id_of(id_, where)) is None:
            return None
        if len(self._texts) == 1:
            text = row.get(self._texts[0], _MISSING)
            if type(text) is not str and (text := self._text_of(text, row, where)) is None:
                return None
        elif (text := self._joined(row, where)) is None:
            return None
        if "\0" in text:
            self._warnings.add("nul-characters", where)
        if not text.isascii() or not id_.isascii():
            text = encodable(text, self._warnings, where)
            id_ = encodable(id_, self._warnings, where)
        return _record(id=id_, text=text, where=where)

    def _joined(self, row: Mapping[str, object], where: str) -> str | None:
        """Texts of several columns, a blank line between those that are not empty."""
        if not any(name in row for name in self._texts):
            self._text_of(_MISSING, row, where)
            return None
        cells = [row.get(name) for name in self._texts]
        texts = [c if type(c) is str else self._text_of(c, row, where) for c in cells]
        if None in texts:
            return None
        return "\n\n".join(text for text in texts if text)

    def _id_of(self, value: object, where: str) -> str | None:
        if value is None:
            return ""
        spelled = _spelled(value)
        if spelled is None or isinstance(value, bool):
            self._complaints.add(where, f"the id {_short(value)} is neither text nor a number")
            return None
        return "" if _is_nan(value) else spelled

    def _text_of(self, value: object, row: Mapping[str, object], where: str) -> str | None:
        if value is _MISSING:
            wanted, there = " or ".join(map(repr, self._texts)), ", ".join(map(repr, row))
            self._complaints.add(where, f"no {wanted} among {there[:200] or 'no columns'}")
            return None
        if value is None or _is_nan(value):
            return ""
        if (spelled := _spelled(value)) is not None:
            return spelled
        if isinstance(value, list | tuple | dict):
            self._warnings.add("nested-text", where)
            return json.dumps(value, ensure_ascii=False, default=str)
        self._complaints.add(where, f"the text {_short(value)} is a {type(value).__name__}")
        return None


def _is_nan(value: object) -> bool:
    """NaN of floats and decimals, and the NaT and NA that are not equal to themselves."""
    if isinstance(value, float):
        return math.isnan(value)
    return isinstance(value, Decimal) and value.is_nan()


def _spelled(value: object) -> str | None:
    """Return a scalar as its source prints it; None for what is no scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal | UUID):
        return str(value)
    item: Callable[[], object] | None = getattr(value, "item", None)
    # numpy's scalars, which are no Python numbers
    return _spelled(item()) if item is not None and getattr(value, "shape", None) == () else None


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"
