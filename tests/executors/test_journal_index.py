"""The index is derived: damaged, foreign, outdated or gone, it is made again from the segments."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.errors import DiskFault, RunDirError
from executors.ids import ContentKey
from executors.journal.answers import answers
from executors.journal.journal import RunJournal
from executors.journal.records import Filed, Paid, Spent
from executors.messages import ModelReply
from tests.executors.journals import (
    FOUND,
    PAID,
    SCOPE,
    file_call,
    key,
    notes_of,
    opened,
    segments,
)

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]


async def a_run(directory: Path, calls: int = 200) -> None:
    """File calls in two sessions, with a note each."""
    for first in (0, calls // 2):
        async with opened(directory) as journal:
            for n in range(first, first + calls // 2):
                await file_call(journal, key(n))
                journal.note(SCOPE, n.to_bytes(16, "big"), [n])


async def is_whole(directory: Path, calls: int = 200) -> tuple[str, ...]:
    """Check that nothing of the run is missing; return the warnings."""
    async with opened(directory) as journal:
        assert all(journal.find(key(n)) == FOUND for n in range(calls))
        assert notes_of(journal) == {n.to_bytes(16, "big"): n for n in range(calls)}
        assert (journal.spent.calls, journal.lost) == (calls, ())
        return journal.warnings


# ---------------------------------------------------------------- damage


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database, whatever its name says" * 300)


def header_alone(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 500)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def a_bad_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[2 * 4096 : 4 * 4096] = b"\xa5" * (2 * 4096)
    path.write_bytes(data)


def of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE calls (theirs TEXT)")
        file.commit()


def of_a_newer_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")


def of_segments_that_were_longer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE segments SET done = done + 1000000")
        file.commit()


def of_segments_that_are_gone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE segments SET name = 'gone-1-1.jsonl' WHERE id = 1")
        file.commit()


def with_text_that_is_none(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE segments SET name = CAST(X'e9ff' AS TEXT) WHERE id = 1")
        file.commit()


def with_a_cost_that_is_none(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE totals SET usd = '0x0'")
        file.commit()


def with_a_schema_of_no_letters(path: Path) -> None:
    """One byte of the table's statement changed, which SQLite reads before anything else."""
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"CREATE TABLE totals", b"CREATE \xe9ABLE totals"))


@pytest.mark.case("S42")
@pytest.mark.parametrize(
    "damage",
    [
        garbage,
        header_alone,
        half,
        a_bad_page,
        of_another_program,
        of_a_newer_version,
        of_segments_that_were_longer,
        of_segments_that_are_gone,
        with_text_that_is_none,
        with_a_cost_that_is_none,
        with_a_schema_of_no_letters,
    ],
)
async def test_an_index_that_is_no_good_is_made_again_with_a_warning(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    await a_run(tmp_path)
    assert await is_whole(tmp_path) == ()
    damage(tmp_path / "index.sqlite")
    (warning,) = await is_whole(tmp_path)
    assert "made again" in warning
    assert str(tmp_path / "index.sqlite") in warning
    assert await is_whole(tmp_path) == ()


async def test_a_damaged_page_is_noticed_wherever_it_lies(tmp_path: Path) -> None:
    await a_run(tmp_path)
    await is_whole(tmp_path)
    path = tmp_path / "index.sqlite"
    whole = path.read_bytes()
    for begin in range(0, len(whole), 4096):
        path.write_bytes(whole[:begin] + b"\xa5" * 4096 + whole[begin + 4096 :])
        (warning,) = await is_whole(tmp_path)
        assert "made again" in warning


async def test_an_index_that_is_gone_is_made_again(tmp_path: Path) -> None:
    await a_run(tmp_path)
    (tmp_path / "index.sqlite").unlink()
    assert await is_whole(tmp_path) == ()


async def test_an_index_that_breaks_under_a_run_stops_it(tmp_path: Path) -> None:
    await a_run(tmp_path)
    async with opened(tmp_path) as journal:
        assert journal._index is not None
        journal._index._file.execute("DROP TABLE calls")
        with pytest.raises(DiskFault, match="index of the run cannot be read"):
            journal.find(key(1))
    (warning,) = await is_whole(tmp_path)
    assert "made again" in warning


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE notes SET value = X'ff'",
        "UPDATE calls SET segment = 99",
        "UPDATE calls SET place = 'x'",
    ],
)
async def test_a_value_that_is_damaged_stops_one_session_and_no_more(
    tmp_path: Path, damage: str
) -> None:
    await a_run(tmp_path)
    await is_whole(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as file:
        file.execute(damage)
        file.commit()
    async with opened(tmp_path) as journal:
        with pytest.raises(DiskFault, match="cannot be read"):
            _ = journal.find(key(1)), notes_of(journal)
    await is_whole(tmp_path)


def test_a_place_where_no_index_can_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").mkdir()
    with pytest.raises(RunDirError, match=r"(?s)index of the run cannot be made.*index.sqlite"):
        RunJournal.open(tmp_path)


async def test_a_segment_that_is_damaged_under_a_run_is_asked_for_again(tmp_path: Path) -> None:
    await a_run(tmp_path, 2)
    async with opened(tmp_path) as journal:
        first = segments(tmp_path)[0]
        first.write_bytes(b"x" * first.stat().st_size)
        assert journal.find(key(0)) is None
        first.unlink()
        with pytest.raises(DiskFault, match="cannot be read"):
            journal.find(key(0))


@pytest.mark.parametrize(
    "damage",
    [
        (b'"u":[200', b'"u":[-20'),
        (b'"u":[200', b'"u":[1.0'),
        (b'"x":"1: yes"', b'"x":"1: yes","q":0'),
        (b'"x":"1: yes"', b'"x":"1: yes","m":[]'),
        (b'"x":"1: yes"', b'"x":"1: yes","t":"hot"'),
        (b'"x":"1: yes"', b'"x":"1: yes","l":{}}'),
    ],
)
async def test_an_answer_that_is_damaged_inside_is_asked_for_again(
    tmp_path: Path, damage: tuple[bytes, bytes]
) -> None:
    await a_run(tmp_path, 2)
    first = segments(tmp_path)[0]
    raw = first.read_bytes()
    assert damage[0] in raw
    first.write_bytes(raw.replace(*damage))
    assert [found for found, _, _ in answers(tmp_path)] == [key(1)]
    async with opened(tmp_path) as journal:
        assert journal.find(key(0)) is None
        assert journal.find(key(1)) == FOUND


# ---------------------------------------------------------------- many processes

WORKER = """
import asyncio, sys
from pathlib import Path
from executors.journal.journal import RunJournal
from tests.executors.journals import SCOPE, file_call, key

async def main(first, index):
    journal = RunJournal.open(Path(sys.argv[1]), index=index)
    async with asyncio.TaskGroup() as group:
        for n in range(first, first + 100):
            group.create_task(file_call(journal, key(n)))
    for n in range(first, first + 100):
        journal.note(SCOPE, n.to_bytes(16, "big"), [n])
    await journal.aclose()

asyncio.run(main(int(sys.argv[2]), sys.argv[3] == "index"))
"""


@pytest.mark.case("S43", "K14-1", "K14-2", "K14-4")
@pytest.mark.parametrize("index", ["index", "none"])
async def test_eight_processes_work_on_one_run_directory(tmp_path: Path, index: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), str(n * 100), index],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for n in range(8)
    ]
    assert [process.wait() for process in processes] == [0] * 8
    assert await is_whole(tmp_path, 800) == ()
    assert len(segments(tmp_path)) == 8


async def test_the_newer_answer_wins(tmp_path: Path) -> None:
    newer = ModelReply(text="newer", stop="end")
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        await file_call(journal, key(1), newer)
        assert journal.find(key(1)) == Filed(reply=newer, usd=PAID.usd)
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == Filed(reply=newer, usd=PAID.usd)
        await file_call(journal, key(1))
        assert journal.find(key(1)) == FOUND
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == FOUND


# ---------------------------------------------------------------- any sequence


class Model:
    """What a journal has to know, kept in dicts."""

    def __init__(self) -> None:
        self.found: dict[ContentKey, Filed] = {}
        self.open: list[Counter[ContentKey]] = [Counter()]
        self.noted: dict[bytes, object] = {}
        self.notes: dict[bytes, object] = {}
        self.calls = self.tokens = 0
        self.usd = Decimal(0)

    def close(self, call: ContentKey, paid: Paid) -> None:
        if self.open[-1][call]:
            self.open[-1][call] -= 1
        self.calls += paid.attempts > 0
        self.tokens += paid.tokens
        self.usd += paid.usd or 0

    def reopen(self) -> None:
        self.open.append(Counter())
        self.notes = dict(self.noted)

    @property
    def spent(self) -> Spent:
        lost = sum(sum(session.values()) for session in self.open)
        return Spent(
            calls=self.calls + lost, tokens=self.tokens + 7 * lost, usd=self.usd, lost=lost
        )


small = st.integers(0, 3).map(key)
paid = st.builds(
    Paid,
    tokens=st.integers(0, 9),
    usd=st.none() | st.decimals(0, 1, places=3),
    attempts=st.integers(0, 3),
)
replies = st.builds(
    ModelReply,
    text=st.text() | st.just("\udc80 half"),
    stop=st.sampled_from(["end", "end", "max_tokens"]),
    reasoning=st.none() | st.text(),
)
steps = st.one_of(
    st.tuples(st.just("intent"), small),
    st.tuples(st.just("answer"), small, replies, paid),
    st.tuples(st.just("failed"), small, paid),
    st.tuples(st.just("void"), small),
    st.tuples(st.just("note"), st.integers(0, 3), st.integers() | st.text() | st.none()),
    st.tuples(st.just("reopen"), st.booleans()),
)


async def play(directory: Path, sequence: list[tuple[object, ...]]) -> None:
    model, journal = Model(), RunJournal.open(directory)
    for step in [*sequence, ("reopen", False), ("reopen", True)]:
        match step:
            case ("intent", str(call)):
                journal.intent(ContentKey(call), tokens=7, usd=None)
                model.open[-1][ContentKey(call)] += 1
            case ("answer", str(call), ModelReply() as reply, Paid() as cost):
                await journal.answer(ContentKey(call), reply, cost)
                model.close(ContentKey(call), cost)
                if reply.stop == "end":
                    model.found[ContentKey(call)] = Filed(reply=reply, usd=cost.usd)
            case ("failed", str(call), Paid() as cost):
                journal.failed(ContentKey(call), None, cost)
                model.close(ContentKey(call), cost)
            case ("void", str(call)):
                journal.void(ContentKey(call), "why")
                model.found.pop(ContentKey(call), None)
            case ("note", int(n), int() | str() | None as value):
                journal.note(SCOPE, n.to_bytes(16, "big"), [value])
                model.noted[n.to_bytes(16, "big")] = value
            case ("reopen", bool(afresh)):
                await journal.aclose()
                if afresh:
                    (directory / "index.sqlite").unlink()
                journal = RunJournal.open(directory)
                model.reopen()
                assert journal.spent == model.spent
                assert journal.warnings == ()
            case _:
                raise AssertionError(step)
        assert {n: journal.find(key(n)) for n in range(4)} == {
            n: model.found.get(key(n)) for n in range(4)
        }
        assert notes_of(journal) == model.notes
    await journal.aclose()


@settings(max_examples=40)
@given(st.lists(steps, max_size=25))
def test_after_any_sequence_a_journal_knows_what_a_dict_would(
    tmp_path_factory: pytest.TempPathFactory, sequence: list[tuple[object, ...]]
) -> None:
    anyio.run(play, tmp_path_factory.mktemp("run"), sequence)
