"""Reads one segment into the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeAlias

from executors.journal.json_lines import encode
from executors.journal.lines import (
    Answered,
    Begun,
    Done,
    Forgotten,
    Intended,
    Noted,
    Unanswered,
    Unknown,
    Voided,
    read_line,
)
from executors.journal.reading import keep_bad
from executors.journal.records import NOTE_KEY_BYTES, Paid
from executors.replies import JsonValue

__all__ = ["Indexing"]

_BATCH: Final = 10_000  # rows that are held in memory before they are written
_CODES: Final = 256  # values whose JSON is kept: most notes are one of a few

_PLACED: Final = (
    "VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " segment = excluded.segment, place = excluded.place, length = excluded.length"
)

_Open: TypeAlias = tuple[int, Decimal | None, int]


class Indexing:
    """One segment's way into the tables; rows are gathered, so that they are written in order."""

    def __init__(self, file: sqlite3.Connection, segment: Path, number: int) -> None:
        self._file = file
        self._segment = segment
        self._number = number
        self._calls: dict[bytes, tuple[int, int] | None] = {}
        self._tools: dict[bytes, tuple[int, int]] = {}
        self._notes: dict[int, dict[bytes, bytes]] = {}
        self._codes: dict[int | str, bytes] = {}
        self._gathered = 0
        self._scopes: dict[str, int] = {}
        self._open: dict[bytes, _Open] = self._still_open()
        self._bad: list[bytes] = []
        self._unknown = 0
        self._paid_calls = self._tokens = 0
        self._usd = Decimal(0)

    def run(self, lines: Iterator[tuple[int, bytes]], begin: int) -> int:
        """Read lines; return where the last whole one ends."""
        for place, raw in lines:
            begin = place + len(raw) + 1
            self._take(place, raw)
            if self._gathered >= _BATCH:
                self._flush()
        self._flush()
        self._finish()
        return begin

    def _take(self, place: int, raw: bytes) -> None:
        match read_line(raw):
            case Intended() as line:
                _, _, times = self._open.get(line.key, (0, None, 0))
                self._open[line.key] = (line.tokens, line.usd, times + 1)
            case Answered() as line:
                self._close(line.key, line.paid)
                if line.clean:
                    self._gathered += 1
                    self._calls[line.key] = (place, len(raw))
            case Unanswered() | Forgotten() as line:
                self._close(line.key, line.paid)
            case Voided(key):
                self._calls[key] = None
            case Noted() as line:
                self._note(line)
            case Begun() | Done() as line:
                self._gathered += 1
                self._tools[line.key] = (place, len(raw))
            case Unknown():
                self._unknown += 1
            case None:
                self._bad.append(raw)

    def _close(self, key: bytes, paid: Paid) -> None:
        tokens, usd, times = self._open.pop(key, (0, None, 0))
        if times > 1:
            self._open[key] = (tokens, usd, times - 1)
        if paid.attempts:  # without any, it never left
            self._paid_calls += 1
        self._tokens += paid.tokens
        self._usd += paid.usd or 0

    def _note(self, line: Noted) -> None:
        scope = self._scopes.get(line.scope)
        if scope is None:
            scope = self._scopes[line.scope] = self._scope(line.scope)
        notes = self._notes.setdefault(scope, {})
        size, keys = NOTE_KEY_BYTES, line.keys
        for n, value in enumerate(line.values):
            notes[keys[n * size : (n + 1) * size]] = self._encoded(value)
        self._gathered += len(line.values)

    def _encoded(self, value: JsonValue) -> bytes:
        """Return a value as JSON, without a line's end: in memory that is no longer than it is."""
        if type(value) is not int and type(value) is not str:
            return encode(value)[:-1]
        found = self._codes.get(value)
        if found is None:
            found = encode(value)[:-1]
            if len(self._codes) < _CODES:
                self._codes[value] = found
        return found

    def _scope(self, key: str) -> int:
        self._file.execute("INSERT OR IGNORE INTO scopes (key) VALUES (?)", (key,))
        found = self._file.execute("SELECT id FROM scopes WHERE key = ?", (key,)).fetchone()
        return int(found[0])

    def _still_open(self) -> dict[bytes, _Open]:
        rows = self._file.execute(
            "SELECT key, tokens, usd, times FROM intents WHERE segment = ?", (self._number,)
        )
        return {
            key: (tokens, None if usd is None else Decimal(usd), times)
            for key, tokens, usd, times in rows
        }

    def _flush(self) -> None:
        """Write what was gathered, in the order of the keys: pages that lie together fill together."""
        self._file.executemany(
            f"INSERT INTO calls {_PLACED}",
            ((key, self._number, *at) for key, at in sorted(self._calls.items()) if at),
        )
        self._file.executemany(
            f"INSERT INTO tools {_PLACED}",
            ((key, self._number, *at) for key, at in sorted(self._tools.items())),
        )
        gone = [(key,) for key, at in self._calls.items() if at is None]
        self._file.executemany("DELETE FROM calls WHERE key = ?", gone)
        for scope, notes in self._notes.items():
            self._file.executemany(
                "INSERT INTO notes VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET value = excluded.value",
                ((scope, key, notes[key]) for key in sorted(notes)),
            )
        self._calls.clear()
        self._tools.clear()
        self._notes.clear()
        self._gathered = 0

    def _finish(self) -> None:
        self._file.execute("DELETE FROM intents WHERE segment = ?", (self._number,))
        self._file.executemany(
            "INSERT INTO intents VALUES (?, ?, ?, ?, ?)",
            [
                (self._number, key, tokens, None if usd is None else str(usd), times)
                for key, (tokens, usd, times) in self._open.items()
            ],
        )
        usd = Decimal(self._file.execute("SELECT usd FROM totals").fetchone()[0]) + self._usd
        self._file.execute(
            "UPDATE totals SET calls = calls + ?, tokens = tokens + ?, usd = ?, bad = bad + ?,"
            " unknown = unknown + ?",
            (self._paid_calls, self._tokens, str(usd), len(self._bad), self._unknown),
        )
        if self._bad:
            keep_bad(self._segment, self._bad)
