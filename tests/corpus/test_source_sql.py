"""Databases: a table or a query that only reads."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from corpus.sources import open_source, sql
from corpus.spool import build_spool
from executors.errors import SourceError, ValidationError
from tests.support.reading import counted, pairs, records_of, stored


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    return database(
        tmp_path / "t.db",
        "CREATE TABLE tickets (id INTEGER, subject TEXT, body TEXT, label TEXT)",
        "INSERT INTO tickets VALUES (1, 'a', 'one', 'x'), (2, NULL, NULL, 'y')",
        "INSERT INTO tickets VALUES (3, 'c', cast(x'636166e9' AS TEXT), 'z')",
    )


def test_the_only_table_of_a_file_is_read(tickets: Path) -> None:
    source = open_source(tickets)
    assert pairs(source) == [("1", "a\n\none"), ("2", ""), ("3", "c\n\ncaf\ufffd")]
    assert counted(source) == {"lone-surrogates": 1}
    assert records_of(source)[0].where == "t.db:row 1"


def test_a_query_or_a_table_may_be_named(tickets: Path) -> None:
    query = "SELECT id, body FROM tickets WHERE id < 3 -- not ; one more"
    assert pairs(open_source(tickets, query=query)) == [("1", "one"), ("2", "")]
    assert pairs(open_source(tickets, query="tickets", text="subject"))[0] == ("1", "a")


def test_several_tables_are_listed(tmp_path: Path) -> None:
    path = database(tmp_path / "t.sqlite", "CREATE TABLE a (x)", 'CREATE TABLE "b c" (x)')
    with pytest.raises(SourceError, match="'a', 'b c'"):
        open_source(path)
    with pytest.raises(SourceError, match="0 tables"):
        open_source(database(tmp_path / "u.sqlite"), format="sqlite")


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM tickets",
        "SELECT 1; DROP TABLE tickets",
        "WITH gone AS (DELETE FROM tickets RETURNING *) SELECT * FROM gone",
        "WITH new AS (SELECT 9, 'a', 'b', 'c') REPLACE INTO tickets SELECT * FROM new",
        "SELECT * INTO copy FROM tickets",
        "PRAGMA user_version = 5",
        "",
        "tickets; DROP TABLE tickets",
    ],
)
def test_queries_that_write_are_refused(tickets: Path, query: str) -> None:
    with closing(sqlite3.connect(tickets)) as connection:
        for source in (tickets, connection):
            with pytest.raises(ValidationError, match="no single query that reads"):
                open_source(source, query=query)
        assert connection.execute("SELECT count(*) FROM tickets").fetchone() == (3,)


def test_a_file_is_opened_for_reading_alone(tickets: Path) -> None:
    with sql._sqlite_cursor(str(tickets)) as cursor, pytest.raises(sqlite3.OperationalError):
        cursor.execute("DELETE FROM tickets")


def test_words_in_quotes_and_comments_are_not_taken_for_writes(tickets: Path) -> None:
    query = """SELECT id, body AS "update", 'drop; it' AS x /* delete */ FROM tickets"""
    assert len(pairs(open_source(tickets, query=query, text="update"))) == 3


def test_a_connection_of_the_callers_is_read_and_left_open(tickets: Path) -> None:
    with closing(sqlite3.connect(tickets)) as connection:
        connection.row_factory = sqlite3.Row
        source = open_source(connection, query="SELECT id, body FROM tickets WHERE id < 3")
        assert pairs(source) == [("1", "one"), ("2", "")]
        assert connection.execute("SELECT 1").fetchone()[0] == 1
        with pytest.raises(ValidationError, match="needs a query"):
            open_source(connection)
        with pytest.raises(SourceError, match="no such column: nope"):
            open_source(connection, query="SELECT nope FROM tickets")


@pytest.mark.anyio
async def test_a_connection_is_spooled_in_the_thread_it_was_made_in(
    tickets: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tickets)) as connection:
        source = open_source(connection, query="SELECT id, body FROM tickets WHERE id < 3")
        assert len(await build_spool(source, tmp_path / "spool")) == 2


def test_any_driver_of_the_standard_kind_will_do() -> None:
    class Cursor:
        description = (("id", None), ("text", None))

        def __init__(self) -> None:
            self.rows: list[object] = [(n, f"text {n}") for n in range(3)]

        def execute(self, operation: str, /) -> object:
            return None

        def fetchmany(self, size: int, /) -> list[object]:
            taken, self.rows = self.rows[:size], self.rows[size:]
            return taken

        def close(self) -> object:
            return None

    class Connection:
        def cursor(self) -> Cursor:
            return Cursor()

    source = open_source(Connection(), query="select * from t")
    assert pairs(source) == [("0", "text 0"), ("1", "text 1"), ("2", "text 2")]


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    broken = stored(tmp_path, "t.db", b"SQLite format 3\0" + b"x" * 500)
    with pytest.raises(SourceError, match="the database says"):
        open_source(broken)
    with pytest.raises(ValidationError, match="is no database"):
        open_source(stored(tmp_path, "t.jsonl", "{}"), query="x")


@pytest.fixture(autouse=True)
def writes_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reading leaves the bytes of a database as they are."""
    path: Path | None = None
    if "tickets" in request.fixturenames:
        path = request.getfixturevalue("tickets")
    before = path.read_bytes() if path else b""
    yield
    assert path is None or path.read_bytes() == before
