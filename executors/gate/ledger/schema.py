"""The tables of a ledger, and how a file is told from another program's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

__all__ = ["APPLICATION", "NotOurs", "prepare"]

APPLICATION: Final = 0x726C6D6C  # "rlml"
_VERSION: Final = 1

# Amounts are whole: calls, tokens, billionths of a USD. A cap of NULL is no bound.
_SCHEMA: Final = """
CREATE TABLE family (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  calls INTEGER NOT NULL, tokens INTEGER NOT NULL, usd INTEGER NOT NULL,
  unpriced INTEGER, priced INTEGER NOT NULL,
  turns INTEGER NOT NULL, tool_rounds INTEGER NOT NULL, children INTEGER NOT NULL,
  terminated TEXT
);
INSERT INTO family VALUES (1, 0, 0, 0, NULL, 0, 0, 0, 0, NULL);
CREATE TABLE resources (name TEXT PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE caps (
  name TEXT PRIMARY KEY, cap INTEGER, human INTEGER NOT NULL, exempt INTEGER NOT NULL,
  warned INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE holders (
  holder TEXT PRIMARY KEY,
  calls INTEGER NOT NULL, tokens INTEGER NOT NULL, usd INTEGER NOT NULL, seen REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE blocks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, holder TEXT NOT NULL,
  calls INTEGER NOT NULL, tokens INTEGER NOT NULL, usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL, exempt INTEGER NOT NULL, lapsed INTEGER NOT NULL, expires REAL NOT NULL
);
CREATE TABLE admissions (kind TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX by_time ON admissions (kind, at);
"""


class NotOurs(Exception):
    """The file is another program's, or of a version that is not known here."""


def prepare(file: sqlite3.Connection, fill: Callable[[sqlite3.Connection], None] | None) -> None:
    """Make the tables of a new file, within a transaction of the caller's.

    Args:
        fill: writes the first totals.

    Raises:
        NotOurs: and nothing was changed.
        sqlite3.DatabaseError: the file is damaged.
    """
    application = file.execute("PRAGMA application_id").fetchone()[0]
    version = file.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (APPLICATION, _VERSION):
        verdict = file.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        return
    if application == APPLICATION:
        raise NotOurs(f"it is of version {version}, and this program knows {_VERSION}")
    if application or file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise NotOurs("it is a file of another program")
    for statement in _SCHEMA.split(";"):
        file.execute(statement)
    file.execute(f"PRAGMA application_id = {APPLICATION}")
    file.execute(f"PRAGMA user_version = {_VERSION}")
    if fill is not None:
        fill(file)
