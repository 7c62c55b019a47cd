"""What was found: a claim, and the lines of the file that show it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from rlm.checks.sensors.cited import Citation

__all__ = ["SEVERITIES", "Finding", "Lines", "Rejected", "Severity", "located", "severity_of"]

Severity = Literal["critical", "high", "medium", "low", "unknown"]
"""As the model says it; "unknown" where it says none, or another word."""
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
_WORDS: Final[dict[str, Severity]] = {
    "blocker": "critical", "severe": "critical", "error": "high", "major": "high",
    "moderate": "medium", "warning": "medium", "minor": "low", "info": "low", "note": "low",
    "informational": "low",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding whose quote stands in its file."""

    path: str
    line: int
    """Where the quote begins, from 1."""
    column: int
    """In characters, from 1."""
    end_line: int
    end_column: int
    """Behind its last character."""
    severity: Severity
    finding: str
    quote: str
    """The file's own words."""
    part: int
    """Which part of the audit found it, from 0."""
    places: int = 1
    """How often the file has these words; where several findings quote them, each has a place."""

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """What findings are sorted by: the worst first, then as they stand in the folder."""
        rank = SEVERITIES.index(self.severity)
        return (rank, self.path, self.line, self.column, self.finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A finding that no file shows; it is none, and is said so that nobody wonders."""

    part: int
    record: str
    """The file that it names, as the model spelled it."""
    finding: str
    reason: str


class Lines:
    """Where the lines of a text begin; a line ends at a line feed."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def located(
    citation: Citation, lines: Lines, part: int, *, paths: Sequence[str], start: int, places: int
) -> list[Finding]:
    """Return a finding in each of the files that hold this very text.

    Args:
        lines: of the text.
        paths: the file that was read, and those that are identical to it.
        start: where its quote begins, of the places that it has.
    """
    line, column = lines.place(start)
    end_line, end_column = lines.place(start + len(citation.quote))
    return [
        Finding(
            path=path,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            severity=severity_of(citation.severity),
            finding=" ".join(citation.finding.split()),
            quote=citation.quote,
            part=part,
            places=places,
        )
        for path in paths
    ]


def severity_of(said: str | None) -> Severity:
    """Return the severity that a word means."""
    word = (said or "").strip().lower()
    if word in SEVERITIES:
        return word
    return _WORDS.get(word, "unknown")
