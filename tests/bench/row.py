"""One line of a benchmark table: what was measured, its floor in the same run, and the bar."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Row", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement against a bar; smaller is better."""

    name: str
    ours: float
    unit: str
    bar: float
    """In `unit`, or as a ratio to the floor where `relative`."""
    floor: float | None = None
    """The same work done barely, in the same run; None where the bar is absolute."""
    relative: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the floor."""
        return None if self.floor is None else self.ours / self.floor

    @property
    def ok(self) -> bool:
        """At its bar or better."""
        if self.relative:
            return self.ratio is not None and self.ratio <= self.bar
        return self.ours <= self.bar


def table(rows: list[Row]) -> str:
    """Return rows as aligned text, each with its verdict."""
    head = ("what", "ours", "floor", "ratio", "bar", "", "note")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _cells(row: Row) -> tuple[str, ...]:
    bar = f"{row.bar:g}x floor" if row.relative else f"{row.bar:g} {row.unit}"
    return (
        row.name,
        f"{row.ours:.4g} {row.unit}",
        "" if row.floor is None else f"{row.floor:.4g} {row.unit}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        bar,
        "ok" if row.ok else "MISSED",
        row.note,
    )
