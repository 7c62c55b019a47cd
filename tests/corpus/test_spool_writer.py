"""Records are hashed and packed by the slice, and a slice stays small."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpus.records import Record
from corpus.sources.base import SourceInfo, SourceWarnings
from corpus.spool import Spool
from corpus.spool_writer import SpoolWriter


def test_of_long_records_no_second_one_is_held(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "spool")
    written: list[int] = []

    def records() -> Iterator[Record]:
        for n in range(3):
            written.append(writer.records)
            yield Record(id=f"r{n}", text="x" * (1 << 18))

    writer.add(records())
    writer.abandon()
    assert written == [0, 1, 2]


def test_what_lies_on_either_side_of_a_slice_is_read_back_as_it_was(tmp_path: Path) -> None:
    ids = ["a", "ä", " b ", "c"]
    records = [
        Record(id=f"{ids[n % 4]}{n}", text="" if n % 5 == 0 else f"text {n} é", where=None)
        for n in range(600)
    ]
    writer = SpoolWriter(tmp_path / "spool")
    writer.add(records)
    writer.finish(SourceInfo(name="memory", format="memory"), SourceWarnings(), "refuse")
    with Spool.open(tmp_path / "spool") as spool:
        assert list(spool) == records
        assert spool.empty == 120
        assert [spool.find(record.id.strip()) for record in records] == list(range(600))
