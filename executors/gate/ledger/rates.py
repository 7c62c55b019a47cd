"""How many were admitted of late: one row each, counted within a window of a minute.

The window is open at its far end: an admission exactly 60 s ago no longer counts. What was refused
leaves no row. Clocks of processes may differ and go back: rows count by their time, in whatever
order they were written, also those that seem to be of a moment to come.
"""

from __future__ import annotations

import sqlite3
from typing import Final

__all__ = ["admitted", "write_admission"]

_WINDOW: Final = 60.0
# Rows are kept longer than they count: another process's clock may be behind.
_KEPT: Final = 3_600.0


def admitted(file: sqlite3.Connection, kind: str, now: float) -> int:
    """Return how many of a kind were admitted within the window."""
    row = file.execute(
        "SELECT count(*) FROM admissions WHERE kind = ? AND at > ?", (kind, now - _WINDOW)
    ).fetchone()
    return int(row[0])


def write_admission(file: sqlite3.Connection, kind: str, now: float, n: int) -> None:
    """Write that so many were admitted."""
    file.execute("DELETE FROM admissions WHERE at <= ?", (now - _KEPT,))
    file.executemany("INSERT INTO admissions VALUES (?, ?)", [(kind, now)] * n)
