"""A report as lines for a terminal: findings, then what was looked at, and what was not."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from rlm.auditing.findings import SEVERITIES, Finding, Severity
from rlm.auditing.folder import Skip
from rlm.auditing.report import AuditReport
from rlm.render.lines import Line, Piece, Style, line
from rlm.render.safe import cells, plain

__all__ = ["finding_lines", "looked_at_lines"]

_STYLES: Final[dict[Severity, Style]] = {
    "critical": "bad",
    "high": "bad",
    "medium": "warn",
    "low": "dim",
    "unknown": "dim",
}
_SHOWN: Final = 200
_LISTED: Final = 40
"""Skipped, rejected or unread things that get a line; all of them stand in the file of the result."""
_PLACE: Final = 60
_TEXT: Final = 400
_QUOTE: Final = 160


def finding_lines(report: AuditReport) -> list[Line]:
    """Return the table of findings: severity, place, what it is, and the file's own words."""
    found = report.findings
    if not found:
        return [line("no findings")]
    counts = report.by_severity
    said = ", ".join(f"{counts[one]:,} {one}" for one in SEVERITIES if one in counts)
    head = f"{len(found):,} finding{'s' if len(found) != 1 else ''}: {said}"
    lines = [line(Piece(head, "strong"))]
    width = max(cells(_place(one)) for one in found[:_SHOWN])
    for one in found[:_SHOWN]:
        lines += _finding(one, width)
    if (more := len(found) - _SHOWN) > 0:
        lines.append(line(Piece(f"… {more:,} more; --out FILE has all", "dim")))
    return lines


def looked_at_lines(report: AuditReport) -> list[Line]:
    """Return how many files were audited; what was rejected, and what was not looked at, and why."""
    lines = [line(f"  {_files(report)}")]
    if report.unread:
        unread = {no.path: no.reason for no in report.unread}
        files = f"{len(unread):,} file{'s' if len(unread) != 1 else ''}"
        lines.append(line("  ", Piece(f"nothing is known of {files}:", "bad")))
        lines += _listed(
            [f"{plain(path, _PLACE)}: {plain(why, _TEXT)}" for path, why in unread.items()]
        )
    if report.rejected:
        head = f"rejected, since no file shows them: {len(report.rejected):,}"
        lines.append(line("  ", Piece(head, "warn")))
        lines += _listed(
            [
                f"{plain(no.record or '?', _PLACE)}: {plain(no.finding or '?', _TEXT)} "
                f"({plain(no.reason, _TEXT)})"
                for no in report.rejected
            ]
        )
    if report.skipped:
        lines.append(line("  ", Piece(f"skipped: {len(report.skipped):,}", "dim")))
        lines += _skips(report.skipped)
    return lines


def _finding(one: Finding, width: int) -> list[Line]:
    place = _place(one)
    gap = " " * (width - cells(place))
    severity = Piece(f"{one.severity:<8}", _STYLES[one.severity])
    quote = plain(" ".join(one.quote.split()), _QUOTE)
    return [
        line("  ", severity, f"  {place}{gap}  {plain(one.finding, _TEXT)}{_more(one)}"),
        line(" " * 12, Piece(f"“{quote}”", "dim")),
    ]


def _more(one: Finding) -> str:
    return "" if one.places == 1 else f"  (one of {one.places:,} places with these words)"


def _place(one: Finding) -> str:
    lines = f"{one.line}" if one.line == one.end_line else f"{one.line}-{one.end_line}"
    return f"{plain(one.path, _PLACE)}:{lines}"


def _files(report: AuditReport) -> str:
    facts = [f"audited: {report.audited:,} of {report.files:,} files in {report.parts:,} parts"]
    if report.identical:
        facts.append(f"{report.identical:,} identical to another")
    if report.empty:
        facts.append(f"{report.empty:,} empty")
    return ", ".join(facts)


def _skips(skips: tuple[Skip, ...]) -> list[Line]:
    lines: list[Line] = []
    by_reason = sorted(skips, key=lambda skip: (skip.reason, skip.path))
    for reason, group in groupby(by_reason, key=lambda skip: skip.reason):
        some = list(group)
        lines.append(line(f"    {reason}: {len(some):,}"))
        said = [
            plain(skip.path, _PLACE) + (f" ({plain(skip.detail, _TEXT)})" if skip.detail else "")
            for skip in some
        ]
        lines += [line("  ", *one) for one in _listed(said)]
    return lines


def _listed(texts: list[str]) -> list[Line]:
    lines = [line("    ", Piece(text, "dim")) for text in texts[:_LISTED]]
    if (more := len(texts) - _LISTED) > 0:
        lines.append(line("    ", Piece(f"… {more:,} more; --json or --out FILE has all", "dim")))
    return lines
