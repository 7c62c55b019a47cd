"""Findings that have to be shown: each names a record and quotes the words in it. Code looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from corpus.quotes import find_quote
from corpus.records import Part, Record
from corpus.spool import Spool
from executors.errors import SourceError, ValidationError
from executors.replies import JsonValue, Unparsed, read_json
from rlm.checks.sensors.base import Sensor, SensorContext
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict

__all__ = ["Citation", "Lookup", "Uncited", "citations", "read_citations"]

Lookup = Callable[[str], Record | str | None]
"""Returns the record of an id, or its text; None where there is none."""
_SHOWN: Final = 20
_QUOTE: Final = 160
_NAME: Final = 120
_FORM: Final = (
    "a JSON list of objects, each with the keys record (the id), quote (words copied exactly from "
    "that record) and finding"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A finding whose quote stands in its record."""

    record: str
    """The id as the record has it."""
    finding: str
    severity: str | None
    quote: str
    """The record's own words."""
    start: int
    """Where they begin, in characters of the record's text."""
    end: int
    where: str | None
    """Where the record stands in its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncited:
    """A finding that is not shown."""

    index: int
    """Its place in the list, from 0."""
    record: str
    """The id that it names; "" where it names none."""
    finding: str
    reason: str


def citations(records: Mapping[str, str] | Spool | Lookup) -> Sensor:
    """Return a sensor that is satisfied when each finding's quote stands in the record it names.

    The result has to be a list of findings, `[{"record": …, "quote": …, "finding": …}]`, also as the
    value of the one key "findings", with "severity" where it matters. Within a quote white space may
    differ, and whether an accent is written with its letter or behind it; nothing else. A list without findings claims nothing, and so it stands. The verdict's
    `extra` holds what was found, as `cited`, and what was not, as `uncited`.

    Args:
        records: texts by id, a spool, or a function that returns the record of an id.

    Raises:
        ValidationError: `records` is none of these. A record that is no text is said when a finding
            names it: the sensor is broken then.
    """
    lookup = _lookup(records)

    def sense(result: str, context: SensorContext) -> Verdict:
        del context
        found = read_citations(result, lookup)
        if isinstance(found, str):
            return NeedsRevision(critique=found)
        cited, uncited = found
        extra = {"cited": tuple(cited), "uncited": tuple(uncited)}
        if not uncited:
            return Satisfied(extra=extra)
        return NeedsRevision(critique=_critique(uncited, len(cited)), extra=extra)

    return sense


def read_citations(result: str, lookup: Lookup) -> tuple[list[Citation], list[Uncited]] | str:
    """Return the findings that are shown and those that are not, or why there are none to read."""
    found = read_json(result)
    if isinstance(found, Unparsed):
        return f"the findings cannot be read: {found.reason}; give {_FORM}"
    value = found.value
    if isinstance(value, dict) and list(value) == ["findings"]:
        value = value["findings"]
    if not isinstance(value, list):
        return f"the findings are a JSON {type(value).__name__}; give {_FORM}"
    cited: list[Citation] = []
    uncited: list[Uncited] = []
    for index, item in enumerate(value):
        checked = _checked(index, item, lookup)
        if isinstance(checked, Citation):
            cited.append(checked)
        else:
            uncited.append(checked)
    return cited, uncited


def _checked(index: int, item: JsonValue, lookup: Lookup) -> Citation | Uncited:
    fields = item if isinstance(item, dict) else {}
    named, quote, finding = (_text(fields.get(key)) for key in ("record", "quote", "finding"))

    def uncited(reason: str) -> Uncited:
        return Uncited(index=index, record=named, finding=finding, reason=reason)

    missing = [key for key in ("record", "quote", "finding") if not _text(fields.get(key)).strip()]
    if missing:
        return uncited(f"it has no {' and no '.join(missing)}")
    try:
        record = lookup(named)
    except SourceError as error:  # several ids may be meant
        return uncited(error.what)
    if record is None:
        return uncited("there is no record with this id")
    if not isinstance(cast("object", record), str | Record):
        raise ValidationError(
            f"the record {named[:_NAME]!r} is a {type(record).__name__}",
            where="rlm.citations",
            hint="give texts by id, a spool, or a function that returns a Record or its text",
        )
    if isinstance(record, str):
        record = Record(id=named, text=record)
    found = find_quote(Part(ordinal=0, id=record.id, text=record.text), quote)
    if found is None:
        return uncited(f"the record does not hold the words {quote[:_QUOTE]!r}")
    severity = fields.get("severity")
    return Citation(
        record=record.id,
        finding=finding,
        severity=severity if isinstance(severity, str) else None,
        quote=found.text,
        start=found.start,
        end=found.end,
        where=record.where,
    )


def _critique(uncited: list[Uncited], cited: int) -> str:
    total = cited + len(uncited)
    lines = [
        f"- finding {one.index + 1}, record {one.record[:_NAME]!r}: {one.reason}"
        for one in uncited[:_SHOWN]
    ]
    if len(uncited) > _SHOWN:
        lines.append(f"- and {len(uncited) - _SHOWN} more")
    head = f"{len(uncited)} of {total} finding(s) are not shown by the records:"
    tail = "Copy each quote exactly from the record that it names, and leave out what none shows."
    return "\n".join([head, *lines, tail])


def _text(value: object) -> str:
    """Return an id or words; ids that are numbers are written as they stand."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def _lookup(records: object) -> Lookup:
    if isinstance(records, Spool):
        spool = records

        def from_spool(id_: str) -> Record | None:
            ordinal = spool.find(id_)
            return None if ordinal is None else spool.record(ordinal)

        return from_spool
    if isinstance(records, Mapping):
        return cast("Mapping[str, str]", records).get
    if callable(records):
        return cast("Lookup", records)
    raise ValidationError(
        f"records={records!r}"[:200],
        where="rlm.citations",
        hint="give texts by id, a spool, or a function of an id",
    )
