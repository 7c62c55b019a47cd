"""Reports of audits: as a table, JSON, SARIF and CSV, with text from outside made harmless."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from executors.errors import OutputError, UsageError, ValidationError
from rlm.auditing.files import AuditTarget, check_audit_target, write_report
from rlm.auditing.findings import SEVERITIES, Finding, Lines, Rejected, severity_of
from rlm.auditing.folder import Skip
from rlm.auditing.report import AuditReport, Unread
from rlm.auditing.sarif import sarif_of
from rlm.auditing.table import finding_lines, looked_at_lines
from rlm.outputs import read_csv
from rlm.render.lines import as_text


def found(**changes: object) -> Finding:
    fields: dict[str, Any] = {
        "path": "src/a b.py",
        "line": 3,
        "column": 5,
        "end_line": 4,
        "end_column": 2,
        "severity": "high",
        "finding": "runs what it is given",
        "quote": "eval(x)\n)",
        "part": 0,
    }
    fields.update(changes)
    return Finding(**fields)


REPORT = AuditReport(
    findings=(found(), found(path="ü.py", severity="low", line=1, end_line=1)),
    rejected=(Rejected(part=1, record="c.py", finding="made up", reason="no such words"),),
    files=4,
    empty=1,
    identical=1,
    parts=2,
    unread=(Unread(path="d.py", part=1, reason="no answer"),),
    skipped=(
        Skip(path=".env", reason="holds-secrets"),
        Skip(path="x.bin", reason="binary"),
        Skip(path="big.txt", reason="too-big", detail="9 bytes; 8 are read"),
    ),
)

# What the standard requires of the objects that are written here (sections 3.13 to 3.58).
ARTIFACT: dict[str, Any] = {
    "type": "object",
    "required": ["uri"],
    "properties": {"uri": {"type": "string", "pattern": "^[^:\\s\\\\]+$"}},
}
REGION: dict[str, Any] = {
    "type": "object",
    "required": ["startLine"],
    "properties": {
        name: {"type": "integer", "minimum": 1}
        for name in ("startLine", "startColumn", "endLine", "endColumn")
    },
}
LOCATION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {"artifactLocation": ARTIFACT, "region": REGION},
        }
    },
}
MESSAGE: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string"}},
}
LEVEL: dict[str, Any] = {"enum": ["none", "note", "warning", "error"]}
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "items": {"type": "object", "required": ["id"]},
                                    }
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "properties": {"level": LEVEL, "message": MESSAGE},
                                    },
                                }
                            },
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "message": MESSAGE,
                                "level": LEVEL,
                                "locations": {"type": "array", "items": LOCATION},
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif_has_what_the_standard_requires_and_the_places_of_quotes() -> None:
    log: Any = sarif_of(REPORT, task="find faults", complete=False)
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == snapshot(
        {
            "artifactLocation": {"uri": "src/a%20b.py", "uriBaseId": "ROOT"},
            "region": {
                "startLine": 3,
                "startColumn": 5,
                "endLine": 4,
                "endColumn": 2,
                "snippet": {"text": "eval(x)\n)"},
            },
        }
    )
    assert [one["level"] for one in run["results"]] == ["error", "note"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])


def test_sarif_says_what_was_not_looked_at_and_that_the_audit_was_cut_short() -> None:
    log: Any = sarif_of(REPORT, task="find faults", complete=False)
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    said = [
        (one["level"], one["message"]["text"]) for one in invocation["toolExecutionNotifications"]
    ]
    assert said == snapshot(
        [
            ("error", "nothing is known of it: no answer"),
            ("warning", "rejected, since no file shows it: made up (no such words)"),
            ("note", "skipped: holds-secrets"),
            ("note", "skipped: binary"),
            ("note", "skipped: too-big 9 bytes; 8 are read"),
        ]
    )  # fmt: skip


def test_the_fingerprint_of_a_finding_does_not_move_with_its_lines() -> None:
    logs: list[Any] = [
        sarif_of(AuditReport(findings=(found(line=n),)), task="t", complete=True) for n in (3, 90)
    ]
    one, other = (log["runs"][0]["results"][0]["partialFingerprints"] for log in logs)
    assert one == other


def test_the_table_reads_like_this() -> None:
    assert as_text(finding_lines(REPORT)) == snapshot("""\
2 findings: 1 high, 1 low
  high      src/a b.py:3-4  runs what it is given
            “eval(x) )”
  low       ü.py:1          runs what it is given
            “eval(x) )”
""")
    assert as_text(looked_at_lines(REPORT)) == snapshot("""\
  audited: 3 of 4 files in 2 parts, 1 identical to another, 1 empty
  nothing is known of 1 file:
    d.py: no answer
  rejected, since no file shows them: 1
    c.py: made up (no such words)
  skipped: 3
    binary: 1
      x.bin
    holds-secrets: 1
      .env
    too-big: 1
      big.txt (9 bytes; 8 are read)
""")
    assert as_text(finding_lines(AuditReport())) == "no findings\n"


def test_nothing_from_files_or_models_steers_a_terminal() -> None:
    nasty = "a\x1b]0;x\x07\u202e\r\nb"
    report = AuditReport(
        findings=(found(path=nasty, finding=nasty, quote=nasty),),
        rejected=(Rejected(part=0, record=nasty, finding=nasty, reason=nasty),),
        unread=(Unread(path=nasty, part=0, reason=nasty),),
        skipped=(Skip(path=nasty, reason="unreadable", detail=nasty),),
    )
    shown = as_text([*finding_lines(report), *looked_at_lines(report)])
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(shown)


def test_long_lists_are_cut_and_say_so() -> None:
    report = AuditReport(
        findings=tuple(found(line=n) for n in range(1, 302)),
        skipped=tuple(Skip(path=f"{n}.bin", reason="binary") for n in range(60)),
    )
    assert "… 101 more; --out FILE has all" in as_text(finding_lines(report))
    assert "… 20 more; --json or --out FILE has all" in as_text(looked_at_lines(report))


def test_a_report_is_equal_after_a_round_trip_through_json(tmp_path: Path) -> None:
    written = write_report(REPORT, check_audit_target(tmp_path / "r.json"), task="find faults")
    held = json.loads(written.path.read_text(encoding="utf-8"))
    assert (held.pop("task"), held.pop("complete"), written.rows) == ("find faults", True, 2)
    assert AuditReport.read(held) == REPORT


@pytest.mark.parametrize(
    "change",
    [{"kind": "other"}, {"findings": "none"}, {"files": -0.5}, {"skipped": [{"path": 1}]}],
)
def test_what_is_no_report_is_read_as_none(change: dict[str, object]) -> None:
    assert AuditReport.read({**REPORT.data(), **change}) is None
    assert AuditReport.read("text") is None


def test_a_spreadsheet_runs_nothing_of_a_finding(tmp_path: Path) -> None:
    report = AuditReport(findings=(found(finding='=HYPERLINK("x")', quote="-1\n+2"),))
    written = write_report(report, check_audit_target(tmp_path / "r.csv"), task="t")
    assert written.formulas == 2
    raw = written.path.read_text(encoding="utf-8")
    assert "'=HYPERLINK" in raw
    (row,) = read_csv(written.path)
    assert (row["finding"], row["quote"], row["line"]) == ('=HYPERLINK("x")', "-1\n+2", "3")


def test_an_ending_that_is_no_format_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"'.txt'"):
        check_audit_target(tmp_path / "r.txt")
    with pytest.raises(UsageError, match="no folder"):
        check_audit_target(tmp_path / "gone" / "r.sarif")


def test_a_folder_that_went_away_leaves_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        write_report(REPORT, AuditTarget(path=tmp_path / "gone" / "r.csv", format="csv"), task="t")


@given(st.text(alphabet="ab\n\rü😀", max_size=40), st.integers(0, 40))
def test_a_place_leads_back_to_its_character(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    line, column = Lines(text).place(offset)
    starts = [0, *(n + 1 for n, char in enumerate(text) if char == "\n")]
    assert starts[line - 1] + column - 1 == offset
    assert "\n" not in text[starts[line - 1] : offset]


@pytest.mark.parametrize(
    ("said", "meant"),
    [("High", "high"), (" critical ", "critical"), ("warning", "medium"), ("info", "low"),
     ("5", "unknown"), ("", "unknown"), (None, "unknown")],
)  # fmt: skip
def test_severities_are_read_and_never_guessed(said: str | None, meant: str) -> None:
    assert severity_of(said) == meant
    assert meant in SEVERITIES
