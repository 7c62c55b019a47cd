"""Folders and patterns: a file is a record, or files of rows are one source."""

import gzip
import io
import os
from pathlib import Path

import pytest
import zstandard

from corpus.sources import open_source
from executors.errors import SourceError, ValidationError
from tests.support.reading import counted, pairs, records_of, stored


@pytest.mark.case("K6-14")
def test_files_of_one_name_in_two_folders_are_two_records(tmp_path: Path) -> None:
    stored(tmp_path, "dirA/x.txt", "one")
    stored(tmp_path, "dirB/x.txt", "two")
    assert pairs(open_source(tmp_path)) == [("dirA/x.txt", "one"), ("dirB/x.txt", "two")]
    pattern = open_source(str(tmp_path / "*" / "x.txt"))
    assert pairs(pattern) == [("dirA/x.txt", "one"), ("dirB/x.txt", "two")]


def test_what_is_no_text_of_the_folder_is_passed_over_and_counted(tmp_path: Path) -> None:
    outside = stored(tmp_path, "outside.txt", "secret")
    folder = tmp_path / "in"
    stored(folder, "a.md", "text")
    stored(folder, "b.png", b"\x89PNG\r\n")
    stored(folder, "c.bin", b"ab\0cd")
    stored(folder, ".git/config", "hidden")
    stored(folder, "torn.gz", gzip.compress(b"x" * 5_000)[:20])
    (folder / "link").symlink_to(outside)
    (folder / "inside").symlink_to("a.md")
    (folder / "loop").symlink_to(".")
    os.mkfifo(folder / "pipe")
    source = open_source(folder)
    assert pairs(source) == [("a.md", "text"), ("inside", "text")]
    assert counted(source) == {
        "binary-files": 2,
        "hidden-files": 1,
        "outside-links": 2,
        "unreadable-files": 2,
    }


def test_texts_of_files_are_whole_and_decoded_each_for_itself(tmp_path: Path) -> None:
    stored(tmp_path, "a.txt", "one\r\n\n two\n")
    stored(tmp_path, "b.txt", "é\u2028".encode("utf-16"))
    stored(tmp_path, "c.txt", b"caf\xe9")
    stored(tmp_path, "d.txt.gz", gzip.compress(b"packed"))
    stored(tmp_path, "e.txt", "")
    assert pairs(open_source(tmp_path)) == [
        ("a.txt", "one\r\n\n two\n"),
        ("b.txt", "é\u2028"),
        ("c.txt", "café"),
        ("d.txt.gz", "packed"),
        ("e.txt", ""),
    ]


def test_files_of_rows_are_one_source(tmp_path: Path) -> None:
    stored(tmp_path, "1.csv", "id,text\n")
    stored(tmp_path, "2.csv", "id,text\na,x\n")
    stored(tmp_path, "3.csv", "text,id\ny,b\n")
    source = open_source(tmp_path)
    assert pairs(source) == [("a", "x"), ("b", "y")]
    assert source.info.format == "csv"
    stored(tmp_path, "4.csv", "id,words\nc,z\n")
    with pytest.raises(SourceError, match=r"(?s)no column 'text'.*4\.csv"):
        records_of(open_source(tmp_path))


def test_made_ids_of_several_files_carry_the_file(tmp_path: Path) -> None:
    stored(tmp_path, "a.jsonl", '{"text":"x"}\n')
    stored(tmp_path, "b.jsonl", '{"text":"y"}\n')
    assert pairs(open_source(tmp_path)) == [("a.jsonl:1", "x"), ("b.jsonl:1", "y")]


def test_a_single_text_file_is_lines_unless_told(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.txt", "a\nb\n")
    assert pairs(open_source(path)) == [("1", "a"), ("2", "b")]
    assert pairs(open_source(path, format="text")) == [("t.txt", "a\nb\n")]


def test_a_missing_path_suggests_what_is_there(tmp_path: Path) -> None:
    stored(tmp_path, "tickets.csv", "id,text\n")
    with pytest.raises(SourceError, match=r"did you mean 'tickets\.csv'"):
        open_source(tmp_path / "ticket.csv")
    with pytest.raises(SourceError, match="no file matches"):
        open_source(str(tmp_path / "*.jsonl"))


def test_a_file_may_be_called_like_a_pattern(tmp_path: Path) -> None:
    path = stored(tmp_path, "a[1].txt", "x\n")
    assert pairs(open_source(path)) == [("1", "x")]


def test_an_unknown_format_lists_the_choices(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.dat", "x")
    with pytest.raises(SourceError, match="cannot tell the format"):
        open_source(path)
    with pytest.raises(ValidationError, match=r"(?s)'yaml'.*jsonl"):
        open_source(path, format="yaml")


def test_a_folder_without_files_is_an_empty_corpus(tmp_path: Path) -> None:
    assert pairs(open_source(tmp_path)) == []


# ---------------------------------------------------------------- packed bytes

ROWS = b'{"id":"a","text":"one"}\n{"id":"b","text":"two"}\n'


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.gz", "t.zst"])
@pytest.mark.parametrize("packing", ["gzip", "zstd", "members", "frames"])
def test_packed_bytes_are_known_by_their_magic(tmp_path: Path, name: str, packing: str) -> None:
    half = len(ROWS) // 3
    packed = {
        "gzip": gzip.compress(ROWS),
        "zstd": zstandard.compress(ROWS),
        "members": gzip.compress(ROWS[:half]) + gzip.compress(ROWS[half:]),
        "frames": zstandard.compress(ROWS[:half]) + zstandard.compress(ROWS[half:]),
    }[packing]
    assert pairs(open_source(stored(tmp_path, name, packed))) == [("a", "one"), ("b", "two")]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_bytes_that_end_too_early_are_an_error(tmp_path: Path, pack: "type[bytes]") -> None:
    rows = b"".join(
        b'{"id":"%d","text":"%s"}\n' % (n, os.urandom(40).hex().encode()) for n in range(9_000)
    )
    packed = pack(rows)
    path = stored(tmp_path, "t.jsonl", packed[: len(packed) * 3 // 4])
    with pytest.raises(SourceError, match=r"(?s)t\.jsonl.*packed and damaged"):
        records_of(open_source(path))


def test_an_open_file_is_read_once(tmp_path: Path) -> None:
    with stored(tmp_path, "t.jsonl", ROWS).open("rb") as stream:
        source = open_source(stream)
        assert pairs(source) == [("a", "one"), ("b", "two")]
        with pytest.raises(SourceError, match="read but once"):
            records_of(source)
    with pytest.raises(ValidationError, match="opened as text"):
        open_source(io.StringIO("x"))
