"""Findings as SARIF 2.1.0, which code scanners and editors read. Pure.

Source: OASIS Standard, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from executors.ids import content_key
from executors.replies import JsonValue
from rlm._version import __version__
from rlm.auditing.findings import Finding, Severity
from rlm.auditing.report import AuditReport

__all__ = ["RULE", "sarif_of"]

RULE: Final = "rlm/finding"
_LEVELS: Final[dict[Severity, str]] = {
    "critical": "error",
    "high": "error",
    "medium": "warning",
    "low": "note",
    "unknown": "warning",
}
_ROOT: Final = "ROOT"


def sarif_of(report: AuditReport, *, task: str, complete: bool) -> dict[str, JsonValue]:
    """Return one SARIF log with one run.

    What was rejected, could not be read or was skipped stands among the notifications, so that no
    reader takes a short list of findings for a clean folder.

    Args:
        complete: the audit came to its end.
    """
    told: list[JsonValue] = [
        *(
            _notice("error", f"nothing is known of it: {no.reason}", no.path)
            for no in report.unread
        ),
        *(
            _notice("warning", f"rejected, since no file shows it: {no.finding} ({no.reason})")
            for no in report.rejected
        ),
        *(
            _notice("note", f"skipped: {no.reason} {no.detail}".strip(), no.path)
            for no in report.skipped
        ),
    ]
    driver: dict[str, JsonValue] = {
        "name": "rlm",
        "version": __version__,
        "rules": [
            {
                "id": RULE,
                "shortDescription": {"text": "A finding that its file shows"},
                "fullDescription": {"text": task},
            }
        ],
    }
    return {
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {"executionSuccessful": complete, "toolExecutionNotifications": told}
                ],
                "results": [_result(one) for one in report.findings],
            }
        ],
    }


def _result(one: Finding) -> JsonValue:
    region: dict[str, JsonValue] = {
        "startLine": one.line,
        "startColumn": one.column,
        "endLine": one.end_line,
        "endColumn": one.end_column,
        "snippet": {"text": one.quote},
    }
    return {
        "ruleId": RULE,
        "ruleIndex": 0,
        "level": _LEVELS[one.severity],
        "message": {"text": one.finding},
        "locations": [
            {"physicalLocation": {"artifactLocation": _artifact(one.path), "region": region}}
        ],
        # Without lines, so that it stays the same where the file grows above it.
        "partialFingerprints": {"quote/v1": content_key(one.path, one.quote)},
        "properties": {"severity": one.severity},
    }


def _notice(level: str, text: str, path: str | None = None) -> JsonValue:
    notice: dict[str, JsonValue] = {"level": level, "message": {"text": text}}
    if path is not None:
        notice["locations"] = [{"physicalLocation": {"artifactLocation": _artifact(path)}}]
    return notice


def _artifact(path: str) -> JsonValue:
    return {"uri": quote(path), "uriBaseId": _ROOT}
