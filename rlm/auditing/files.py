"""`--out` of an audit: all of its report as JSON or SARIF, or its findings as CSV."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Final, Literal, assert_never, get_args

from executors.errors import ValidationError
from rlm.auditing.report import AuditReport
from rlm.auditing.sarif import sarif_of
from rlm.outputs import Written, check_place, write_text
from rlm.render.spreadsheet import CellGuard

__all__ = ["AuditFormat", "AuditTarget", "audit_format", "check_audit_target", "write_report"]

AuditFormat = Literal["json", "sarif", "csv"]
_FORMATS: Final[tuple[AuditFormat, ...]] = get_args(AuditFormat)
_COLUMNS: Final = (
    "path", "line", "column", "end_line", "end_column", "severity", "finding", "quote", "places", "part",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTarget:
    """A file that a report will be written to, checked before anything is spent."""

    path: Path
    format: AuditFormat


def check_audit_target(path: str | Path) -> AuditTarget:
    """Check, before anything is spent, that a report can be written to a path.

    Raises:
        ValidationError: an ending that is no format of ours.
        UsageError: no such folder, no right to write, or a folder.
    """
    target = Path(path)
    if (format_ := audit_format(target)) is not None:
        check_place(target)
        return AuditTarget(path=target, format=format_)
    raise ValidationError(
        f"the output {str(target)!r} ends in {target.suffix!r}",
        where="--out",
        hint="choose an ending of: " + ", ".join(f".{known}" for known in _FORMATS),
    )


def audit_format(path: Path) -> AuditFormat | None:
    """Return the format that the ending of a path names; None for another one."""
    ending = path.suffix.lower()
    return next((known for known in _FORMATS if ending == f".{known}"), None)


def write_report(
    report: AuditReport, target: AuditTarget, *, task: str, complete: bool = True
) -> Written:
    """Write a report, whole or not at all; an older file of that name is replaced.

    Args:
        task: of the audit.
        complete: it came to its end.

    Raises:
        OutputError: it cannot be written; an older file is as it was.
    """
    guard = CellGuard()
    match target.format:
        case "json":
            text = _json({"task": task, "complete": complete, **report.data()})
        case "sarif":
            text = _json(dict(sarif_of(report, task=task, complete=complete)))
        case "csv":
            text = _csv(report, guard)
        case _:
            assert_never(target.format)
    written = write_text(text, target.path)
    return replace(
        written, rows=len(report.findings), formulas=guard.formulas, replaced=guard.replaced
    )


def _json(value: dict[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _csv(report: AuditReport, guard: CellGuard) -> str:
    file = StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(_COLUMNS)
    for one in report.findings:
        cells = asdict(one)
        row = [cells[name] for name in _COLUMNS]
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in row])
    return file.getvalue()
