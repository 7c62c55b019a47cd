"""`--out` of a recursion: its result as a file, as it is; rows, where it is a count."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from corpus.results import Tally
from executors.errors import OutputError, RunDirError, ValidationError
from rlm.auditing.files import AuditTarget, audit_format, write_report
from rlm.auditing.report import AuditReport
from rlm.outputs import (
    FORMATS,
    Target,
    Written,
    check_place,
    check_target,
    write_result,
    write_text,
)
from rlm.receipts.receipts import Receipts
from rlm.recursions.ending import read_result
from rlm.recursions.results import shown
from rlm.runs.results import load_result

__all__ = ["ROWS", "TextTarget", "check_text_target", "export_result", "write_out"]

ROWS: Final = frozenset(f".{name}" for name in FORMATS)
"""Endings that ask for rows."""
_FOREIGN: Final = frozenset(
    {".db", ".docx", ".feather", ".ods", ".pdf", ".sqlite", ".xls", ".xlsx"}
)
"""Endings of what is neither text nor rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTarget:
    """A file that a result will be written to, checked before anything is spent."""

    path: Path
    rows: Target | None
    """Where its ending asks for rows."""


def check_text_target(path: str, *, source: str | None) -> TextTarget:
    """Check, before anything is spent, that a result can be written to a path.

    Raises:
        UsageError: it cannot.
    """
    target = Path(path)
    if target.suffix.lower() in ROWS:
        return TextTarget(path=target, rows=check_target(path, source=source))
    if target.suffix.lower() in _FOREIGN:
        raise ValidationError(
            f"the output {path!r} ends in {target.suffix!r}",
            where="--out",
            hint="choose an ending of text, such as .txt, .md or .json; for rows of a count: "
            + ", ".join(sorted(ROWS)),
        )
    check_place(target, source=source)
    return TextTarget(path=target, rows=None)


def write_out(value: object, text: str, target: TextTarget) -> Written:
    """Write a result, whole or not at all.

    Args:
        text: what the value is as text.

    Raises:
        OutputError: it cannot be written, or has no rows where rows are wanted.
    """
    if target.rows is not None:
        if isinstance(value, Tally):
            return write_result(value, target.rows)
        raise OutputError(
            f"the result is no count, so there are no rows for {str(target.path)!r}",
            where="--out",
            hint="name a file that ends in .txt, .md or .json",
        )
    return write_text(text, target.path)


def export_result(directory: Path, target: TextTarget) -> Written:
    """Write what a recursion that ended left; see `write_out`.

    Raises:
        RunDirError: it left nothing.
        OutputError: see `write_out`.
    """
    if target.rows is not None and (directory / "verdicts").exists():
        return write_out(load_result(directory), "", target)
    value = read_result(directory)
    if value is None:
        raise RunDirError(
            f"the run in {str(directory)!r} left no result",
            hint=f"see why: rlm show {shlex.quote(str(directory))}",
        )
    report, format_ = AuditReport.read(value), audit_format(target.path)
    if report is not None and format_ is not None:
        audited = AuditTarget(path=target.path, format=format_)
        receipts = Receipts.load(directory)
        complete = receipts.blocker is None
        return write_report(report, audited, task=receipts.task, complete=complete)
    return write_out(value, shown(value), target)
