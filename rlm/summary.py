"""A result in numbers, as receipts and `--json` show it."""

from __future__ import annotations

from corpus.results import Ranking, Tally

__all__ = ["missing_lines", "summarise"]

_TOP = 20
_REASONS = 5


def summarise(result: Tally | Ranking | None) -> dict[str, object]:
    """Return plain data: numbers, strings, lists and mappings only."""
    match result:
        case None:
            return {}
        case Ranking():
            top = [
                {"rank": row.rank, "id": row.id, "score": round(row.score, 4)}
                for row, _ in zip(result.rows(), range(_TOP), strict=False)
            ]
            return {
                "kind": "ranking",
                "records": result.records,
                "judge": result.judge,
                "notes": list(result.notes),
                "top": top,
            }
        case Tally():
            return {
                "kind": "tally",
                "count": result.count,
                "coverage": list(result.coverage),
                "records": result.records,
                "states": dict(result.states),
                "labels": dict(result.labels),
                "expected": None if result.expected is None else round(result.expected, 2),
                "identical": result.identical,
                "labelled": result.labelled,
                "judge": result.judge,
                "passes": result.passes,
                "votes": result.votes,
                "notes": list(result.notes),
            }


def missing_lines(result: Tally) -> tuple[str, ...]:
    """Say in a few lines which records were never judged, by reason."""
    counts: dict[str, int] = {}
    for ordinal in result.ids_of("unresolved").ordinals.tolist():
        reason = result.reason(ordinal)
        counts[reason] = counts.get(reason, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{n:,} record(s) unresolved: {reason}" for reason, n in ranked[:_REASONS]]
    rest = sum(n for _, n in ranked[_REASONS:])
    return (*lines, f"{rest:,} record(s) unresolved for other reasons") if rest else tuple(lines)
