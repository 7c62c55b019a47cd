"""How an audit that ended is shown: for people, or as one JSON object."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Self

from executors.errors import OutputError
from rlm.auditing.audit import AuditOutcome
from rlm.auditing.report import AuditReport
from rlm.auditing.table import finding_lines, looked_at_lines
from rlm.checks.verdict import Verdict, status_of
from rlm.cli.faults import error_data
from rlm.cli.printing import print_json
from rlm.cli.report import file_data, spend_data
from rlm.cli.show import RESUMABLE
from rlm.outcome import Completed, Incomplete
from rlm.outputs import Written
from rlm.receipts.receipts import Receipts
from rlm.render.lines import Line, line, write_lines
from rlm.render.outcome import outcome_lines

__all__ = ["AuditPrint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPrint:
    """What is printed when an audit ends: its findings, and beside them how they came about."""

    receipts: Receipts
    report: AuditReport = AuditReport()  # noqa: RUF009 - frozen, and empty
    missing: tuple[str, ...] = ()
    verdict: Verdict | None = None
    written: Written | None = None
    unwritten: OutputError | None = None
    """Why the file that was wanted is not there."""

    @classmethod
    def of(cls, outcome: AuditOutcome, *, again: str) -> Self:
        """Return what is printed of an outcome.

        Args:
            again: the command that goes on with the run.
        """
        match outcome:
            case Completed(result=report, receipts=receipts, verdict=verdict):
                return cls(receipts=receipts, report=report, verdict=verdict)
            case Incomplete(best=best, receipts=receipts, missing=missing, blocker=blocker):
                if blocker in RESUMABLE:
                    missing = (*missing, f"go on with: {again}")
                elif blocker == "empty-corpus":
                    missing = (*missing, "no file is left to read: see --include and --exclude")
                return cls(receipts=receipts, report=best or AuditReport(), missing=missing)

    def print(self, *, as_json: bool) -> None:
        """Print the findings to standard output, and the rest to standard error; or one JSON object."""
        if as_json:
            print_json(self.data())
            return
        write_lines(finding_lines(self.report), sys.stdout)
        sys.stdout.flush()
        write_lines(self.lines(), sys.stderr)

    def lines(self) -> list[Line]:
        """Return what was looked at and what was not, how it ended, what it cost, and the tree."""
        lines = [*looked_at_lines(self.report), *outcome_lines(self.receipts, missing=self.missing)]
        if (written := self.written) is not None:
            lines.append(line(f"  out: {written.path}, {written.rows:,} findings"))
            lines += [line("    ", note) for note in written.notes]
        return lines

    def data(self) -> dict[str, object]:
        """Return plain data; numbers of USD are text, so that no digit is lost."""
        receipts, verdict = self.receipts, self.verdict
        said = {} if verdict is None else {"critique": verdict.critique}
        return {
            "outcome": "completed" if receipts.blocker is None else "incomplete",
            "verdict": None if verdict is None else {"status": status_of(verdict), **said},
            "blocker": receipts.blocker,
            "missing": list(self.missing),
            "task": receipts.task,
            "result": {"audited": self.report.audited, **self.report.data()},
            "notes": receipts.result.get("notes", []),
            "spend": spend_data(receipts.totals),
            "run": receipts.run,
            "content_root": receipts.content_root,
            "receipt": str(receipts.path),
            "out": file_data(self.written),
            **({} if self.unwritten is None else {"error": error_data(self.unwritten)}),
        }
