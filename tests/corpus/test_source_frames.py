"""Parquet files and data frames."""

import datetime as dt
import sys
from pathlib import Path

import pytest

from corpus.sources import open_source
from corpus.sources.frames import Frame
from executors.errors import MissingExtra, SourceError
from tests.support.reading import counted, pairs, records_of, stored

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = {"id": [1, 2, 3], "text": ["one", None, "a\0b"], "label": ["x", "y", "z"]}
READ = [("1", "one"), ("2", ""), ("3", "a\0b")]


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(ROWS), path)
    return path


def test_parquet_is_read_by_batches_with_its_rows_named(parquet: Path) -> None:
    source = open_source(parquet)
    assert pairs(source) == READ
    assert records_of(source)[1].where == "t.parquet:row 2"
    assert counted(source) == {"nul-characters": 1}


def test_several_parquet_files_are_one_source(parquet: Path) -> None:
    pq.write_table(pa.table({"id": [9], "text": ["nine"]}), parquet.parent / "u.parquet")
    assert pairs(open_source(parquet.parent)) == [*READ, ("9", "nine")]
    pq.write_table(pa.table({"id": [9]}), parquet.parent / "v.parquet")
    with pytest.raises(SourceError, match="no column 'text'"):
        records_of(open_source(parquet.parent))


def test_parquet_that_cannot_be_read_is_told(tmp_path: Path, parquet: Path) -> None:
    cut = stored(tmp_path, "cut/t.parquet", parquet.read_bytes()[:-20])
    with pytest.raises(SourceError, match="cannot be read as Parquet"):
        open_source(cut)
    with pytest.raises(SourceError, match=r"(?s)no column 'txt'.*'label' \(as in 'x'\)"):
        open_source(parquet, text="txt")


def test_without_pyarrow_the_extra_is_named_after_the_path_was_checked(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SourceError, match="no file or folder"):
        open_source(parquet.parent / "nope.parquet")
    with pytest.raises(MissingExtra, match=r"rlm-recurse\[parquet\]"):
        open_source(parquet)


def test_strings_of_parquet_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    raw = pa.array([b"caf\xe9", b"x"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": [1, 2], "text": raw}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    assert pairs(source) == [("1", "caf\ufffd"), ("2", "x")]
    assert counted(source) == {"lone-surrogates": 1}


@pytest.mark.parametrize("frame", [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)])
def test_frames_are_read_like_files(frame: Frame) -> None:
    source = open_source(frame)
    assert pairs(source) == READ
    assert source.info.text_columns == ("text",)
    assert pairs(open_source(frame, text="label"))[0] == ("1", "x")
    with pytest.raises(SourceError, match="no column 'nope'"):
        open_source(frame, text="nope")


def test_an_index_that_says_something_is_the_id() -> None:
    frame = pd.DataFrame({"text": ["a", "b", "c"]})[::2]
    source = open_source(frame)
    assert pairs(source) == [("0", "a"), ("2", "c")]
    assert source.info.said[0] == "ids are the frame's index"
    assert pairs(open_source(pd.DataFrame({"text": ["a"]}))) == [("1", "a")]


def test_missing_and_typed_cells() -> None:
    when = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)
    frame = pd.DataFrame(
        {"id": [when, when + dt.timedelta(1)], "text": pd.array(["a", pd.NA], dtype="string")}
    )
    assert pairs(open_source(frame)) == [
        ("2026-01-31T00:00:00+00:00", "a"),
        ("2026-02-01T00:00:00+00:00", ""),
    ]
    floats = pd.DataFrame({"id": [1.0, None], "text": ["a", "b"]})
    assert pairs(open_source(floats)) == [("1.0", "a"), ("", "b")]


def test_frames_that_hold_no_rows_yet_are_told() -> None:
    with pytest.raises(SourceError, match="lazy frame"):
        open_source(pl.DataFrame(ROWS).lazy())
    with pytest.raises(SourceError, match="2 columns are called 'text'"):
        open_source(pd.DataFrame([["a", "b"]], columns=["text", "text"]))


def test_a_frame_of_an_unknown_library_is_not_iterated_by_its_columns() -> None:
    class DataFrame:
        columns = ("id", "text")

        def __iter__(self) -> object:
            return iter(self.columns)

    with pytest.raises(SourceError, match="is not read as it is"):
        open_source(DataFrame())


def test_a_series_is_an_iterable_of_texts() -> None:
    assert pairs(open_source(pd.Series(["a", "b"]))) == [("1", "a"), ("2", "b")]
    assert pairs(open_source(pl.Series(["a", "b"]))) == [("1", "a"), ("2", "b")]
