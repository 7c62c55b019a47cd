"""How a recursion that ended is shown: for people, or as one JSON object."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Final, Self

from corpus.results import Tally
from executors.errors import OutputError
from rlm.checks.verdict import Verdict, status_of
from rlm.cli.faults import error_data
from rlm.cli.printing import print_json
from rlm.cli.report import file_data, spend_data
from rlm.cli.show import RESUMABLE, resume_command, resume_hint
from rlm.cli.text_out import ROWS
from rlm.outcome import Blocker, Completed, Incomplete
from rlm.outputs import Written
from rlm.receipts.receipts import Receipts
from rlm.recursion import RecurseOutcome
from rlm.recursions.results import shown
from rlm.render.lines import Line, line, write_lines
from rlm.render.outcome import outcome_lines, result_lines
from rlm.render.safe import plain
from rlm.render.text import tally_lines
from rlm.runs.raising import raises
from rlm.summary import missing_lines, summarise

__all__ = ["RecurseReport"]

# What a later session may not go past; each session has its own seconds.
_BOUND: Final = re.compile(r"\bthe (calls|tokens|usd) bound of run\b")
_ADVICE: Final[dict[Blocker, str]] = {
    "truncated": "an answer was cut: let answers be longer with --answer-tokens N",
    "context-exceeded": "a worker was shown too much: give each less with --count N or --worker-budget N",
    "verifier-unavailable": "name a model that can grade with --verifier SPEC, or check with --sensor SPEC",
    "uncalibrated-judge": "name a model that can judge with --judge SPEC",
    "empty-corpus": "look at what --corpus names: it holds no record",
}
"""What helps where the task itself is not at fault."""
_AGAIN: Final[frozenset[Blocker]] = frozenset({"model-failed", "unresolved-records"})
"""What another session may do better: it asks for what has no answer yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurseReport:
    """What is printed when a recursion ends: its result, and beside it how that came about."""

    receipts: Receipts
    value: object | None
    """The result, or the best there is; None for nothing."""
    missing: tuple[str, ...] = ()
    verdict: Verdict | None = None
    node: str | None = None
    """The node that broke."""
    detail: str | None = None
    wanted: str | None = None
    """The file that was asked for."""
    written: Written | None = None
    unwritten: OutputError | None = None
    """Why the file that was wanted is not there."""

    @classmethod
    def of(cls, outcome: RecurseOutcome) -> Self:
        """Return the report of an outcome."""
        match outcome:
            case Completed(result=value, receipts=receipts, verdict=verdict):
                return cls(receipts=receipts, value=value, verdict=verdict)
            case Incomplete():
                return cls(
                    receipts=outcome.receipts,
                    value=outcome.best,
                    missing=_with_resume(outcome),
                    node=outcome.node,
                    detail=outcome.detail,
                )

    @property
    def text(self) -> str:
        """The result as text."""
        return "" if self.value is None else shown(self.value)

    def print(self, *, as_json: bool) -> None:
        """Print the result to standard output, and the rest to standard error; or one JSON object."""
        if as_json:
            print_json(self.data())
            return
        counted = isinstance(self.value, Tally)
        lines = tally_lines(self.receipts) if counted else result_lines(self.value)
        write_lines(lines, sys.stdout)
        sys.stdout.flush()
        write_lines(self.lines(), sys.stderr)

    def lines(self) -> list[Line]:
        """Return how it ended, what it cost, and the tree."""
        lines = outcome_lines(self.receipts, missing=self.missing)
        if (written := self.written) is not None:
            unit = "row" if written.path.suffix.lower() in ROWS else "line"
            many = f"{written.rows:,} {unit}{'' if written.rows == 1 else 's'}"
            lines.append(line(f"  out: {plain(str(written.path))}, {many}"))
            lines += [line("    ", note) for note in written.notes]
        elif self.wanted is not None and self.value is None:
            lines.append(line(f"  out: {plain(self.wanted)} is not written: there is no result"))
        return lines

    def data(self) -> dict[str, object]:
        """Return plain data; numbers of USD are text, so that no digit is lost."""
        receipts, value = self.receipts, self.value
        return {
            "outcome": "completed" if receipts.blocker is None else "incomplete",
            "verdict": _verdict(self.verdict),
            "blocker": receipts.blocker,
            "node": self.node,
            "detail": self.detail,
            "missing": list(self.missing),
            "task": receipts.task,
            "result": summarise(value) if isinstance(value, Tally) else _plain(value),
            "notes": receipts.result.get("notes", []),
            "spend": spend_data(receipts.totals),
            "nodes": len(receipts.nodes),
            "run": receipts.run,
            "sessions": len(receipts.sessions),
            "content_root": receipts.content_root,
            "receipt": str(receipts.path),
            "out": file_data(self.written),
            **({} if self.unwritten is None else {"error": error_data(self.unwritten)}),
        }


def _plain(value: object) -> object:
    """Return a result that JSON can hold; an object of the caller's own synthesis as text."""
    return value if value is None or isinstance(value, str | int | float | bool) else shown(value)


def _verdict(verdict: Verdict | None) -> dict[str, object] | None:
    if verdict is None:
        return None
    return {
        "status": status_of(verdict),
        "score": verdict.score,
        "critique": verdict.critique,
        "suggestions": list(verdict.suggestions),
    }


def _with_resume(outcome: Incomplete[object]) -> tuple[str, ...]:
    if (advice := _ADVICE.get(outcome.blocker)) is not None:
        return (*outcome.missing, advice)
    if outcome.blocker in _AGAIN:
        best = outcome.best
        why = missing_lines(best) if isinstance(best, Tally) else ()
        return (*outcome.missing, *why, f"ask again with: {resume_command(outcome.receipts)}")
    if outcome.blocker not in RESUMABLE or raises(outcome.missing):
        return outcome.missing
    # Past a bound the run goes on only with a higher one.
    bound = _BOUND.search(outcome.detail or "")
    higher = f" --max-{bound[1]} MORE" if bound else ""
    return (*outcome.missing, f"{resume_hint(outcome.receipts)}{higher}")
