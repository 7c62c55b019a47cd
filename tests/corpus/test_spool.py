"""Pass 0: a source is read once; ids, blanks and repeats are known from then on."""

import asyncio
import json
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest
from anyio import lowlevel
from hypothesis import given
from hypothesis import strategies as st

from corpus.identity import digest_of, normal_id
from corpus.records import Part, Record
from corpus.repeats import first_of_each, sorted_order
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from executors.errors import DuplicateIds, RunDirError, SourceError
from tests.support.nasty import NASTY_IDS, any_text, nasty_corpus
from tests.support.reading import stored

pytestmark = pytest.mark.anyio


async def spool(items: list[tuple[str, str]], folder: Path) -> Spool:
    return await build_spool(open_source(items), folder / "spool")


async def test_records_come_back_equal_and_in_order(tmp_path: Path) -> None:
    items = [("b", "two"), ("a", "one\n"), ("é", "drei \U0001f600"), ("e", ""), ("n", "a\0b")]
    built = await spool(items, tmp_path)
    assert [(record.id, record.text) for record in built] == items
    again = Spool.open(tmp_path / "spool")
    assert list(again) == list(built)
    assert (len(again), again.info, again.warnings) == (5, built.info, built.warnings)
    assert again.record(1) == Record(id="a", text="one\n", where="item 2")
    assert (again.id(2), again.where(2)) == ("é", "item 3")
    assert again.read([4, 0, 1, 2, 0]) == [again.record(n) for n in (4, 0, 1, 2, 0)]
    assert again.warnings[0].sentence.startswith("1 text(s) with NUL characters")


async def test_ordinals_outside_are_index_errors(tmp_path: Path) -> None:
    built = await spool([("a", "x")], tmp_path)
    for ordinal in (-1, 1):
        with pytest.raises(IndexError, match="there are 1"):
            built.record(ordinal)
        with pytest.raises(IndexError):
            built.digest(ordinal)


async def test_equal_texts_point_at_the_first_of_them(tmp_path: Path) -> None:
    built = await spool([("a", "x"), ("b", "y"), ("c", "x"), ("d", " "), ("e", "x")], tmp_path)
    assert built.representative.tolist() == [0, 1, 0, 3, 0]
    assert built.is_empty.tolist() == [False, False, False, True, False]
    assert (built.identical, built.empty) == (2, 1)
    assert built.digest(0) == built.digest(4) != built.digest(1)


@pytest.mark.parametrize("held", [1, 40, 1 << 20])
@pytest.mark.parametrize("skipped", [0, 30, 1 << 20])
async def test_records_are_read_alike_however_many_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, skipped: int
) -> None:
    items = [("same" if n % 9 == 1 else f"r{n}", f"é {n} " * (n % 5)) for n in range(40)]
    source = open_source(items)
    built = await build_spool(source, tmp_path / "spool", on_duplicate="suffix")
    monkeypatch.setattr("corpus.spool._RUN_BYTES", held)
    monkeypatch.setattr("corpus.spool._SKIPPED_BYTES", skipped)
    for asked in ([], [7], range(40), range(39, -1, -1), [1, 2, 5, 5, 30, 0, 1, 39, 10, 11]):
        records = [built.record(ordinal) for ordinal in asked]
        assert [record.text for record in records] == [items[n][1] for n in asked]
        assert built.read(asked) == records
        parts = [part for some in built.parts(asked) for part in some]
        assert parts == [
            Part(ordinal=n, id=record.id, text=record.text)
            for n, record in zip(asked, records, strict=True)
        ]
    assert len({record.id for record in built}) == 40


@pytest.mark.case("K6-11", "K6-13")
async def test_repeated_ids_are_refused_with_the_first_twenty_places(tmp_path: Path) -> None:
    rows = "".join(f'{{"id":{n % 900},"text":"{n}"}}\n' for n in range(930))
    source = open_source(stored(tmp_path, "t.jsonl", rows))
    with pytest.raises(DuplicateIds, match=r"(?s)30 record\(s\).*'0' at t\.jsonl:901") as refused:
        await build_spool(source, tmp_path / "spool")
    assert refused.value.total == 30
    assert len(refused.value.examples) == 20
    assert list((tmp_path / "spool").iterdir()) == []


async def test_missing_ids_are_refused_with_their_places(tmp_path: Path) -> None:
    rows = (
        '{"id":"a","text":"x"}\n{"id":null,"text":"y"}\n{"id":"\u200b","text":"z"}\n{"text":"t"}\n'
    )
    source = open_source(stored(tmp_path, "t.jsonl", rows))
    with pytest.raises(SourceError, match=r"(?s)3 record\(s\) have no id.*t\.jsonl:2, t\.jsonl:3"):
        await build_spool(source, tmp_path / "spool")


async def test_a_suffix_makes_ids_unique_without_meeting_others(tmp_path: Path) -> None:
    items = [("a", "1"), ("a", "2"), ("a#2", "3"), ("", "4"), ("a", "5"), ("", "6"), ("row-4", "7")]
    built = await build_spool(open_source(items), tmp_path / "s", on_duplicate="suffix")
    expected = ["a", "a#3", "a#2", "row-4#2", "a#4", "row-6", "row-4"]
    again = Spool.open(tmp_path / "s")
    assert [record.id for record in again] == expected
    assert [again.id(n) for n in range(7)] == expected
    assert [again.find(id_) for id_ in expected] == list(range(7))
    assert [record.text for record in built] == list("1234567")
    assert {w.code: w.count for w in built.warnings} == {"renamed-ids": 4}


@pytest.mark.case("K6-20")
async def test_ids_are_found_by_their_normal_form_and_keep_their_own(tmp_path: Path) -> None:
    items = [("e\u0301", "x"), ("\u200bA1\u00a0", "y"), ("1", "z"), ("01", "w"), ("1.0", "v")]
    built = await spool(items, tmp_path)
    assert [built.find(id_) for id_ in ("\u00e9", "A1", " 1 ", "01", "1.0", "a1", "2")] == [
        *(0, 1, 2, 3, 4),
        None,
        None,
    ]
    assert built.id(0) == "e\u0301"


@pytest.mark.case("K6-20")
async def test_ids_that_differ_by_form_alone_are_kept_counted_and_never_guessed(
    tmp_path: Path,
) -> None:
    built = await spool([("e\u0301", "x"), ("\u00e9", "y"), (" a", "z"), ("a ", "w")], tmp_path)
    assert [built.find(id_) for id_ in ("e\u0301", "\u00e9", " a")] == [0, 1, 2]
    assert {w.code: w.count for w in built.warnings} == {"near-ids": 2}
    with pytest.raises(SourceError, match="may mean several"):
        built.find("a")


@given(any_text())
def test_the_normal_form_of_an_id_is_its_own_normal_form(id_: str) -> None:
    assert normal_id(normal_id(id_)) == normal_id(id_)


async def test_nasty_ids_stay_apart(tmp_path: Path) -> None:
    built = await build_spool(open_source(nasty_corpus()), tmp_path / "spool")
    for id_ in NASTY_IDS:
        ordinal = built.find(id_)
        assert ordinal is not None
        assert built.id(ordinal) == id_


# ---------------------------------------------------------------- on disk


async def test_a_build_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def breaks() -> Iterator[str]:
        yield from ["x"] * 100
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await build_spool(open_source(breaks()), tmp_path / "spool")
    assert list((tmp_path / "spool").iterdir()) == []
    assert len(await spool([("a", "x")], tmp_path)) == 1


async def test_a_cancelled_build_stops_and_leaves_no_file(tmp_path: Path) -> None:
    scope = anyio.CancelScope()

    async def stream() -> AsyncIterator[str]:
        for number in range(10_000):
            if number == 5_000:
                scope.cancel()
            if number > 9_000:
                pytest.fail("went on after it was cancelled")
            yield str(number)
            await lowlevel.checkpoint()

    with scope:
        await build_spool(open_source(stream), tmp_path / "spool")
    assert scope.cancelled_caught
    assert list((tmp_path / "spool").iterdir()) == []


async def test_a_build_that_ctrl_c_cancels_waits_for_its_reader(tmp_path: Path) -> None:
    """It cancels by asyncio, in the middle of a slice: the reader is at work in its thread."""
    reading = threading.Event()

    class Slow:
        in_loop = False
        info = open_source(["text"]).info
        warnings = open_source(["text"]).warnings

        def records(self) -> Iterator[Record]:
            for number in range(9_000):
                reading.set()
                time.sleep(0.0002)
                yield Record(id=str(number), text=f"text {number}")

    source = Slow()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(build_spool(source, tmp_path / "spool"))
        await anyio.to_thread.run_sync(reading.wait)
        task.cancel()
    assert task.cancelled()
    assert list((tmp_path / "spool").iterdir()) == []


async def test_what_a_killed_build_left_is_written_over(tmp_path: Path) -> None:
    stored(tmp_path, "spool/records.bin", b"half a record")
    stored(tmp_path, "spool/meta.json.new", b"{")
    with pytest.raises(RunDirError, match="no finished spool"):
        Spool.open(tmp_path / "spool")
    assert [r.text for r in await spool([("a", "x")], tmp_path)] == ["x"]


async def test_a_finished_spool_is_never_written_over(tmp_path: Path) -> None:
    await spool([("a", "x")], tmp_path)
    with pytest.raises(RunDirError, match="holds a spool already"):
        await spool([("b", "y")], tmp_path)
    assert Spool.open(tmp_path / "spool").id(0) == "a"


async def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    await spool([("a", "x")], tmp_path)
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name", ["records.bin", "offsets.bin", "texts.bin", "order.bin", "first.bin", "empty.bin"]
)
async def test_damage_is_told_when_it_is_opened(tmp_path: Path, name: str) -> None:
    await spool([("a", "x"), ("b", "y")], tmp_path)
    path = tmp_path / "spool" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RunDirError, match="damaged"):
        Spool.open(tmp_path / "spool")
    path.unlink()
    with pytest.raises(RunDirError, match="damaged"):
        Spool.open(tmp_path / "spool")


async def test_no_record_has_half_a_character_for_an_id(tmp_path: Path) -> None:
    assert (await spool([("a", "x")], tmp_path)).find("a\ud800") is None


@pytest.mark.parametrize(
    "name",
    ["records.bin", "offsets.bin", "texts.bin", "ids.bin", "order.bin", "first.bin", "empty.bin"],
)
async def test_another_byte_is_told_to_who_goes_on_with_it(tmp_path: Path, name: str) -> None:
    """A table of zeros, as a power cut leaves one, would count each record as the first one."""
    await spool([("a", "x"), ("b", "y")], tmp_path)
    path = tmp_path / "spool" / name
    raw = path.read_bytes()
    Spool.open(tmp_path / "spool", checked=True).close()
    path.write_bytes(bytes(len(raw)) if any(raw) else b"\1" * len(raw))
    with pytest.raises(RunDirError, match="is not what was written") as told:
        Spool.open(tmp_path / "spool", checked=True)
    assert "rlm count" in str(told.value)


async def test_a_spool_of_before_there_were_sums_is_opened(tmp_path: Path) -> None:
    await spool([("a", "x")], tmp_path)
    meta = json.loads((tmp_path / "spool" / "meta.json").read_bytes())
    del meta["sums"]
    stored(tmp_path, "spool/meta.json", json.dumps(meta))
    assert len(Spool.open(tmp_path / "spool", checked=True)) == 1


@pytest.mark.parametrize("meta", ["", "{}", '{"version": 99}', "[1]", '{"version": 1}'])
async def test_a_broken_meta_file_is_told(tmp_path: Path, meta: str) -> None:
    await spool([("a", "x")], tmp_path)
    stored(tmp_path, "spool/meta.json", meta)
    with pytest.raises(RunDirError):
        Spool.open(tmp_path / "spool")


@pytest.mark.case("K7-17", "K5-14")
async def test_the_meta_file_is_json_in_utf8_without_raw_nul(tmp_path: Path) -> None:
    built = await spool([("é\u2028", "a\0b")], tmp_path)
    raw = (tmp_path / "spool/meta.json").read_bytes()
    assert b"\0" not in raw
    assert json.loads(raw.decode("utf-8"))["fingerprint"] == built.fingerprint


async def test_threads_may_read_at_once(tmp_path: Path) -> None:
    items = [(str(n), f"text {n} " * 50) for n in range(300)]
    built = await spool(items, tmp_path)

    def whole(_: int) -> list[tuple[str, str]]:
        return [(record.id, record.text) for record in built]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(whole, range(8)):
            assert found == items


async def test_reading_after_close_is_an_error(tmp_path: Path) -> None:
    with await spool([("a", "x")], tmp_path) as built:
        assert built.id(0) == "a"
    with pytest.raises(OSError, match="Bad file descriptor"):
        built.id(0)


# ---------------------------------------------------------------- while it is built


async def test_progress_is_told(tmp_path: Path) -> None:
    told: list[int] = []
    source = open_source([str(n) for n in range(4_500)])
    await build_spool(source, tmp_path / "spool", on_progress=told.append)
    assert told[-1] == 4_500
    assert told == sorted(told)


async def test_the_loop_goes_on_while_a_source_is_read(tmp_path: Path) -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await lowlevel.checkpoint()

    path = stored(tmp_path, "t.txt", "line\n" * 20_000)
    async with anyio.create_task_group() as group:
        group.start_soon(count_turns)
        await build_spool(open_source(path), tmp_path / "spool")
        group.cancel_scope.cancel()
    assert turns > 10


@given(st.lists(st.sampled_from("abcd"), max_size=12))
def test_repeats_are_those_that_a_dictionary_finds(texts: list[str]) -> None:
    raw = b"".join(digest_of(text) for text in texts)
    digests = np.frombuffer(raw, dtype=np.uint8).reshape(-1, 16)
    order, repeats = sorted_order(digests)
    assert first_of_each(order, repeats).tolist() == [texts.index(text) for text in texts]


def test_half_a_digest_met_by_chance_is_no_repeat() -> None:
    rows = [b"same____" + tail for tail in (b"zzzzzzzz", b"aaaaaaaa", b"zzzzzzzz", b"mmmmmmmm")]
    digests = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, 16)
    order, repeats = sorted_order(digests)
    assert order.tolist() == [1, 3, 0, 2]
    assert first_of_each(order, repeats).tolist() == [0, 1, 0, 3]


async def test_what_was_opened_for_a_build_that_fails_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    async def stream() -> AsyncIterator[str]:
        try:
            for number in range(100_000):
                yield str(number)
        finally:
            closed.append("stream")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("corpus.spool_writer._write_all", full)
    monkeypatch.setattr("corpus.spool_writer._HELD_BYTES", 1)
    with pytest.raises(RunDirError, match="No space left"):
        await build_spool(open_source(stream), tmp_path / "spool")
    assert closed == ["stream"]
    assert list((tmp_path / "spool").iterdir()) == []


# An audit hook stays for the life of the process; it listens only while somebody wants to know.
_openers: set[int] | None = None


def _who_opens(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and _openers is not None and "spool" in str(args[0]):
        _openers.add(threading.get_ident())


sys.addaudithook(_who_opens)


async def test_the_files_of_a_spool_are_never_opened_on_the_loops_thread(tmp_path: Path) -> None:
    global _openers
    source = open_source([("a", "x"), ("b", "y")])
    _openers = set()
    try:
        with await build_spool(source, tmp_path / "spool") as built:
            assert len(built) == 2
        assert _openers
        assert threading.get_ident() not in _openers
    finally:
        _openers = None
