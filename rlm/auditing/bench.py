"""Where findings are checked: against the files as they were read, kept in the spool of the run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from corpus.records import Record
from corpus.spool import Spool
from executors.errors import InternalError
from executors.events import Event
from executors.replies import JsonValue
from rlm.auditing.findings import Finding, Lines, Rejected, located
from rlm.auditing.folder import AuditFolder
from rlm.auditing.report import AuditReport, Unread
from rlm.checks.sensors.base import Sensor
from rlm.checks.sensors.cited import Citation, citations, read_citations
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict
from rlm.events import RunStarted
from rlm.runs.home import data_home
from rlm.runs.spools import SPOOL
from rlm.synthesis import SynthesisInput

__all__ = ["Bench"]

_NAMED: Final = 10
_REASON: Final = 200


class Bench:
    """The sensor of the leaves, the union of what they found, and the verdict on the whole.

    It hears where the run is, since the spool is made after the sensor has to be named. Sensors run
    in threads of their own.

    Args:
        directory: of the run, where the caller named one.
    """

    def __init__(self, folder: AuditFolder, directory: Path | None) -> None:
        self._folder = folder
        self._directory = directory
        self._spool: Spool | None = None
        self._opening = Lock()
        self.sensor: Sensor = citations(self.find)

    def hear(self, event: Event) -> None:
        """Take an event: the first one says which run it is."""
        if isinstance(event, RunStarted) and self._directory is None:
            self._directory = data_home() / event.run

    def find(self, path: str) -> Record | None:
        """Return the file of a path as it was read."""
        spool = self._opened()
        ordinal = spool.find(path)
        return None if ordinal is None else spool.record(ordinal)

    def close(self) -> None:
        """Let go of the spool."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def audit_union(self, given: SynthesisInput) -> dict[str, JsonValue]:
        """Put together what the parts found, checking each finding again; the synthesis of an audit."""
        spool = self._opened()
        found: dict[tuple[str, int, int, str], Finding] = {}
        rejected: list[Rejected] = []
        unread: list[Unread] = []
        for part, text in enumerate(given.results):
            read = read_citations(text, self.find) if isinstance(text, str) else "no answer"
            reason = read if isinstance(read, str) else None
            if part in given.missing:
                reason = "its worker did not come to an end"
            if reason is not None:
                unread += _unread(given.records[part], part, reason)
            if not isinstance(read, str):
                cited, uncited = read
                for one in self._located(cited, part):
                    found.setdefault((one.path, one.line, one.column, one.finding), one)
                rejected += [
                    Rejected(part=part, record=no.record, finding=no.finding, reason=no.reason)
                    for no in uncited
                ]
        report = AuditReport(
            findings=tuple(sorted(found.values(), key=lambda one: one.order)),
            rejected=tuple(rejected),
            files=len(spool),
            empty=spool.empty,
            identical=spool.identical,
            parts=len(given.results),
            unread=tuple(unread),
            skipped=tuple(self._folder.skips),
        )
        return report.data()

    def audit_verdict(self, result: object, _context: object) -> Verdict:
        """Say whether each file was looked at and each finding is shown; the `evaluate` of an audit."""
        report = AuditReport.read(result)
        assert report is not None  # the union made it
        said: list[str] = []
        if report.unread:
            paths = sorted({one.path for one in report.unread})
            said.append(f"nothing is known of {len(paths):,} file(s): {_listed(paths)}")
        if report.rejected:
            said.append(f"{len(report.rejected):,} finding(s) are not shown by the files")
        by = {"by": "code looked up each quote in its file"}
        return NeedsRevision(critique="; ".join(said), extra=by) if said else Satisfied(extra=by)

    def _located(self, cited: list[Citation], part: int) -> Iterator[Finding]:
        """Yield findings with their places; those that quote the same words get one each, in turn."""
        known: dict[str, _Text] = {}
        for one in cited:
            text = known.get(one.record)
            if text is None:
                text = known[one.record] = self._text(one.record)
            start, places = text.next_place(one)
            yield from located(one, text.lines, part, paths=text.paths, start=start, places=places)

    def _text(self, path: str) -> _Text:
        spool = self._opened()
        ordinal = spool.find(path)
        assert ordinal is not None  # it was cited out of this spool
        return _Text(spool.record(ordinal).text, self._same(ordinal))

    def _same(self, ordinal: int) -> list[str]:
        """Return the path of a file, and of those that hold the same text."""
        spool = self._opened()
        first = spool.representative[ordinal]
        return [spool.id(int(one)) for one in np.flatnonzero(spool.representative == first)]

    def _opened(self) -> Spool:
        with self._opening:
            if self._spool is None:
                if self._directory is None:
                    raise InternalError("an audit checked a finding before its run began")
                self._spool = Spool.open(self._directory / SPOOL)
            return self._spool


class _Text:
    """A file that is cited: its lines, who shares it, and which places of it were named already."""

    def __init__(self, text: str, paths: list[str]) -> None:
        self.lines = Lines(text)
        self.paths = paths
        self._text = text
        self._places: dict[str, list[int]] = {}
        self._named: Counter[str] = Counter()

    def next_place(self, one: Citation) -> tuple[int, int]:
        """Return where the quote of a finding stands that no earlier one has, and how many there are."""
        places = self._places.get(one.quote)
        if places is None:
            found = re.finditer(re.escape(one.quote), self._text)
            places = self._places[one.quote] = [match.start() for match in found]
        turn = self._named[one.quote]
        self._named[one.quote] += 1
        return places[min(turn, len(places) - 1)], len(places)


def _unread(paths: Sequence[str], part: int, reason: str) -> list[Unread]:
    said = reason.partition("; give ")[0][:_REASON]  # what follows is advice to the model
    return [Unread(path=path, part=part, reason=said) for path in paths]


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(map(repr, paths[:_NAMED])) + more
