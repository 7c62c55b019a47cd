"""`index.sqlite`: where to find what the segments of earlier sessions say. Derived, never needed.

It is brought up to date when a run is opened, and only read after that. One that is damaged, of
another program or version, or older than its segments' places is made again from the segments.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, cast

from executors.errors import DiskFault, RunDirError
from executors.ids import ContentKey
from executors.journal.indexing import Indexing
from executors.journal.json_lines import decode
from executors.journal.reading import SegmentFile, whole_lines
from executors.journal.records import Spent
from executors.replies import JsonValue

__all__ = ["Index", "Lost", "Place", "drop_index"]

_APPLICATION: Final = 0x726C6D6A  # "rlmj"
_VERSION: Final = 2
_WAIT_SECONDS: Final = 10.0
_BUILDING, _READING = 32_768, 2_048  # KiB of pages that are held
# What reading raises where the pages hold together and a value in them is not what was written.
_DAMAGED: Final = (ArithmeticError, LookupError, TypeError, ValueError)

_SCHEMA: Final = """
CREATE TABLE segments (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, done INTEGER NOT NULL);
CREATE TABLE calls (
  key BLOB PRIMARY KEY, segment INTEGER NOT NULL, place INTEGER NOT NULL, length INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tools (
  key BLOB PRIMARY KEY, segment INTEGER NOT NULL, place INTEGER NOT NULL, length INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE intents (
  segment INTEGER NOT NULL, key BLOB NOT NULL, tokens INTEGER NOT NULL, usd TEXT,
  times INTEGER NOT NULL, PRIMARY KEY (segment, key)
) WITHOUT ROWID;
CREATE TABLE scopes (id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL);
CREATE TABLE notes (
  scope INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE TABLE totals (
  calls INTEGER NOT NULL, tokens INTEGER NOT NULL, usd TEXT NOT NULL,
  bad INTEGER NOT NULL, unknown INTEGER NOT NULL
);
INSERT INTO totals VALUES (0, 0, '0', 0, 0);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A call that left and of which nothing is known: possibly paid."""

    key: ContentKey
    tokens: int
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line stands."""

    segment: Path
    begin: int
    length: int


class _Stale(Exception):
    """The file is no index of these segments."""


class Index:
    """The index of a run's earlier sessions.

    Attributes:
        calls: clean answers that can be found.
        tools: runs of tools that can be found.
        lost: intents that nothing followed.
        spent: what the sessions drew, with what is lost at its worst case.
        warnings: what was amiss, for people.

    Args:
        path: the file.
        segments: the segments there are, the oldest first.

    Raises:
        RunDirError: it can be neither read nor made.
    """

    def __init__(self, path: Path, segments: list[SegmentFile]) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._paths: dict[int, Path] = {}
        self.calls = self.tools = 0
        self.lost: tuple[Lost, ...] = ()
        self.spent = Spent()
        self._file = self._opened(segments)

    def place(self, key: ContentKey) -> Place | None:
        """Return where the last clean answer to a call stands."""
        return self._place("SELECT segment, place, length FROM calls WHERE key = ?", key)

    def tool(self, key: ContentKey) -> Place | None:
        """Return where the last line about a tool's run stands."""
        return self._place("SELECT segment, place, length FROM tools WHERE key = ?", key)

    def _place(self, query: str, key: ContentKey) -> Place | None:
        with self._reading():
            row = self._file.execute(query, (bytes.fromhex(key),)).fetchone()
            if row is None:
                return None
            number, begin, length = map(int, row)
            return Place(self._paths[number], begin, length)

    def notes(self, scope: ContentKey) -> Iterator[tuple[bytes, JsonValue]]:
        """Yield the notes of a scope; may be read in any thread."""
        file = _connect(self.path)
        try:
            with self._reading():
                for key, value in file.execute(
                    "SELECT notes.key, value FROM notes JOIN scopes ON scope = id"
                    " WHERE scopes.key = ?",
                    (scope,),
                ):
                    yield key, cast("JsonValue", decode(value))
        finally:
            file.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # ---------------------------------------------------------------- opening

    def _opened(self, segments: list[SegmentFile]) -> sqlite3.Connection:
        try:
            if self.path.exists():
                try:
                    return self._updated(segments)
                except (_Stale, sqlite3.DatabaseError, *_DAMAGED) as error:
                    if _is_locked(error):
                        raise
                    self.warnings.append(
                        f"the index {str(self.path)!r} was made again from the journal: {error}"
                    )
                    drop_index(self.path)
            return self._updated(segments)
        except (OSError, sqlite3.Error) as error:
            raise RunDirError(
                f"the index of the run cannot be made: {error}",
                where=str(self.path),
                hint="make room, or name a run directory on a local disk that you may write to",
            ) from error

    def _updated(self, segments: list[SegmentFile]) -> sqlite3.Connection:
        file = _connect(self.path)
        try:
            file.execute("PRAGMA journal_mode = WAL")
            # In order, or a loss of power could leave the mark of what was read without what it read.
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute(f"PRAGMA cache_size = -{_BUILDING}")
            with _transaction(file):
                _prepare(file)
                self._update(file, segments)
            file.execute(f"PRAGMA cache_size = -{_READING}")
            file.execute("PRAGMA shrink_memory")
            self._load(file, segments)
            return file
        except BaseException:
            file.close()
            raise

    def _update(self, file: sqlite3.Connection, segments: list[SegmentFile]) -> None:
        known: dict[str, tuple[int, int]] = {
            name: (number, done)
            for number, name, done in file.execute("SELECT id, name, done FROM segments")
        }
        names = {segment.path.name for segment in segments}
        if missing := known.keys() - names:
            raise _Stale(f"the segment {min(missing)!r} is gone")
        before = self._bad(file)
        for segment in segments:
            name, size = segment.path.name, segment.path.stat().st_size
            number, done = known.get(name, (0, 0))
            if size < done:
                raise _Stale(f"the segment {name!r} is shorter than it was")
            if size == done:
                continue
            if not number:
                number = cast(
                    "int",
                    file.execute(
                        "INSERT INTO segments (name, done) VALUES (?, 0)", (name,)
                    ).lastrowid,
                )
            end = Indexing(file, segment.path, number).run(whole_lines(segment.path, done), done)
            file.execute("UPDATE segments SET done = ? WHERE id = ?", (end, number))
        self._warn(file, before)

    def _bad(self, file: sqlite3.Connection) -> tuple[int, int]:
        row = file.execute("SELECT bad, unknown FROM totals").fetchone()
        return cast("tuple[int, int]", row)

    def _warn(self, file: sqlite3.Connection, before: tuple[int, int]) -> None:
        bad, unknown = self._bad(file)
        if bad > before[0]:
            self.warnings.append(
                f"{bad - before[0]} damaged line(s) of the journal were skipped, and kept beside it"
            )
        if unknown > before[1]:
            self.warnings.append(
                f"{unknown - before[1]} line(s) of the journal are of a newer version and not used"
            )

    def _load(self, file: sqlite3.Connection, segments: list[SegmentFile]) -> None:
        """Read what a session asks for at its beginning."""
        paths = {segment.path.name: segment.path for segment in segments}
        rows = file.execute("SELECT id, name FROM segments")
        self._paths = {number: paths[name] for number, name in rows}
        self.calls = cast("int", file.execute("SELECT count(*) FROM calls").fetchone()[0])
        self.tools = cast("int", file.execute("SELECT count(*) FROM tools").fetchone()[0])
        lost = self.lost = tuple(_lost(file))
        calls, tokens, usd = file.execute("SELECT calls, tokens, usd FROM totals").fetchone()
        self.spent = Spent(
            calls=calls + len(lost),
            tokens=tokens + sum(one.tokens for one in lost),
            usd=Decimal(usd) + sum((one.usd or Decimal(0) for one in lost), Decimal(0)),
            lost=len(lost),
        )

    @contextmanager
    def _reading(self) -> Generator[None]:
        """Stop the run when the index breaks under it: the next one makes it again."""
        try:
            yield
        except (sqlite3.Error, *_DAMAGED) as error:
            if not isinstance(error, sqlite3.Error):  # that is found when it is opened again
                with suppress(OSError):
                    drop_index(self.path)
            raise DiskFault(
                f"the index of the run cannot be read any more: {error}", where=str(self.path)
            ) from error


def _lost(file: sqlite3.Connection) -> Iterator[Lost]:
    for key, tokens, usd, times in file.execute(
        "SELECT key, tokens, usd, times FROM intents ORDER BY segment, key"
    ):
        known = None if usd is None else Decimal(usd)
        for _ in range(times):
            yield Lost(key=ContentKey(key.hex()), tokens=tokens, usd=known)


def drop_index(path: Path) -> None:
    """Delete an index with its side files."""
    for end in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).unlink()


def _connect(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)  # SQLite gives its side files the mode of the file
    return sqlite3.connect(
        path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )


def _prepare(file: sqlite3.Connection) -> None:
    """Make the tables of a new file; refuse one that is not whole, or not ours."""
    application = file.execute("PRAGMA application_id").fetchone()[0]
    version = file.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (_APPLICATION, _VERSION):
        verdict = file.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise _Stale(f"it is damaged ({verdict})")
        return
    if application == _APPLICATION:
        raise _Stale(f"it is of version {version}, and this is {_VERSION}")
    if application or file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise _Stale("it is a file of another program")
    for statement in _SCHEMA.split(";"):
        file.execute(statement)
    file.execute(f"PRAGMA application_id = {_APPLICATION}")
    file.execute(f"PRAGMA user_version = {_VERSION}")


@contextmanager
def _transaction(file: sqlite3.Connection) -> Generator[None]:
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")


def _is_locked(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
