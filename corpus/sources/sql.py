"""SQLite files and open database connections: a table, or a query that only reads."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import quote

from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import HEAD, choose
from corpus.sources.options import ReadOptions
from corpus.sources.rows import Place, RowSource
from executors.errors import SourceError, ValidationError

__all__ = ["Connection", "Cursor", "open_connection", "open_sqlite"]

_BATCH = 500
_NAME = re.compile(r'[^\W\d][\w$]*(\.[^\W\d][\w$]*)?|"(?:[^"]|"")+"')
_QUIET = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_READS = re.compile(r"\s*\(*\s*(select|with|values|table|show)\b", re.IGNORECASE)
_WRITES = re.compile(
    r"\b(into|insert|update|delete|merge|drop|alter|truncate|create|grant|attach|vacuum|copy|call|pragma)\b",
    re.IGNORECASE,
)


class Cursor(Protocol):
    """What is used of a DB-API cursor."""

    @property
    def description(self) -> Sequence[Sequence[object]] | None:
        """Columns of the result, names first."""
        ...

    def execute(self, operation: str, /) -> object:
        """Run a query."""
        ...

    def fetchmany(self, size: int, /) -> Sequence[object]:
        """Return the next rows."""
        ...

    def close(self) -> object:
        """Free what the cursor holds."""
        ...


class Connection(Protocol):
    """What is used of a DB-API connection."""

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        ...


def open_sqlite(path: str, options: ReadOptions) -> RowSource:
    """Open a SQLite file for reading alone.

    Raises:
        SourceError: the file, table or column cannot be read.
        ValidationError: the query does more than read.
    """
    query = options.query
    if query is None:
        query = _only_table(path)
    return _open(Path(path).name, query, lambda: _sqlite_cursor(path), options, origins=(path,))


def open_connection(connection: Connection, options: ReadOptions) -> RowSource:
    """Read a query of the caller's own connection, in the caller's thread; it stays open.

    Raises:
        SourceError: the query or a column cannot be read.
        ValidationError: there is no query, or it does more than read.
    """
    if options.query is None:
        raise ValidationError(
            "a database connection needs a query",
            hint="give a table or a SELECT: query='tickets', query='SELECT id, body FROM tickets'",
        )
    name = f"{type(connection).__module__.partition('.')[0]} query"
    faults = _faults_of(connection)

    @contextmanager
    def opened() -> Generator[Cursor]:
        with closing(connection.cursor()) as cursor, _told(name, faults):
            yield cursor

    return _open(name, options.query, opened, options, in_loop=True)


def _open(
    name: str,
    query: str,
    opened: Callable[[], AbstractContextManager[Cursor]],
    options: ReadOptions,
    *,
    origins: tuple[str, ...] = (),
    in_loop: bool = False,
) -> RowSource:
    """Choose the columns from the first rows; the query runs again for the reading itself."""
    statement = _reading(query)
    with opened() as cursor:
        names = _execute(cursor, statement)
        rows = [_row(row, names) for row in cursor.fetchmany(HEAD)]
    columns = choose(rows, names, id=options.id, text=options.text, where=name)

    def places(_: SourceWarnings, __: Complaints) -> Iterator[Place]:
        number = 0
        with opened() as cursor:
            again = _execute(cursor, statement)
            while batch := cursor.fetchmany(_BATCH):
                for row in batch:
                    number += 1
                    yield f"{name}:row {number}", str(number), _row(row, again)

    info = SourceInfo(
        name=name,
        format="sqlite" if origins else "query",
        id_column=columns.id,
        text_columns=columns.texts,
        said=(*columns.said, f"rows of: {statement[:120]}"),
        origins=origins,
    )
    return RowSource(
        info=info, columns=columns, rows=places, on_bad=options.on_bad, in_loop=in_loop
    )


def _reading(query: str) -> str:
    """Return the statement to run: a table's name becomes a SELECT.

    Raises:
        ValidationError: the query does more than read, as far as its words tell.
    """
    plain = query.strip().rstrip(";").strip()
    if _NAME.fullmatch(plain):
        return f"SELECT * FROM {plain}"  # noqa: S608 - it is one name and nothing else
    bare = _QUIET.sub(" ", plain)
    if _READS.match(bare) and ";" not in bare and not _WRITES.search(bare):
        return plain
    raise ValidationError(
        f"the query {query[:80]!r} is no single query that reads",
        hint="give a table, or one SELECT; keep writes and several statements out of it",
    )


def _execute(cursor: Cursor, statement: str) -> list[str]:
    cursor.execute(statement)
    return [str(column[0]) for column in cursor.description or ()]


def _row(row: object, names: Sequence[str]) -> Mapping[str, object]:
    if isinstance(row, Mapping):
        return cast("Mapping[str, object]", row)
    return dict(zip(names, cast("Sequence[object]", row), strict=True))


@contextmanager
def _sqlite_cursor(path: str) -> Generator[Cursor]:
    uri = f"file:{quote(str(Path(path).resolve()))}?mode=ro"
    with _told(path, (sqlite3.Error,)):
        # One thread at a time uses it, but not always the same one.
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        with closing(connection):
            connection.text_factory = _lenient
            with closing(connection.cursor()) as cursor:
                yield cursor


def _lenient(raw: bytes) -> str:
    """Keep bytes that are no UTF-8 as halves of surrogate pairs, which are replaced and counted."""
    return raw.decode("utf-8", "surrogateescape")


def _only_table(path: str) -> str:
    with _sqlite_cursor(path) as cursor:
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
        )
        names = [str(cast("Sequence[object]", row)[0]) for row in cursor.fetchmany(100)]
    if len(names) == 1:
        return '"' + names[0].replace('"', '""') + '"'
    raise SourceError(
        f"{len(names)} tables in {path!r}",
        where=f"tables: {', '.join(map(repr, names))}" if names else None,
        hint="name one with --query TABLE, or give a SELECT (query=…)",
    )


def _faults_of(connection: Connection) -> tuple[type[Exception], ...]:
    """Return the driver's own error class, where the connection names it (DB-API extension)."""
    found: object = getattr(connection, "Error", None)
    return (found,) if isinstance(found, type) and issubclass(found, Exception) else ()


@contextmanager
def _told(name: str, faults: tuple[type[Exception], ...]) -> Generator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except faults as error:
        raise SourceError(
            f"the database says: {error}",
            where=name,
            hint="check the file, the table and the columns of the query",
        ) from error
