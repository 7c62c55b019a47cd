"""CSV and TSV: what spreadsheets and exports really write."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.sources import open_source
from executors.errors import SourceError
from tests.support.nasty import NASTY_TEXTS, encodable_text
from tests.support.reading import counted, pairs, records_of, stored

BOM = b"\xef\xbb\xbf"


@pytest.mark.case("K7-1")
def test_a_byte_order_mark_does_not_hide_the_first_column(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.csv", BOM + b"id,text\n1,hi\n")
    assert pairs(open_source(path)) == [("1", "hi")]


@pytest.mark.case("K7-2")
def test_a_byte_order_mark_before_a_quoted_header_shifts_nothing(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.csv", BOM + b'"last, first",age\n"Doe, Jane",30\n')
    source = open_source(path, id="age", text="last, first")
    assert pairs(source) == [("30", "Doe, Jane")]


def test_quotes_line_feeds_and_delimiters_inside_fields(tmp_path: Path) -> None:
    raw = 'id,text\r\n1,"a ""b"", c\r\nd"\r\n"2",x"y\r\n3,\r\n'
    source = open_source(stored(tmp_path, "t.csv", raw))
    assert pairs(source) == [("1", 'a "b", c\r\nd'), ("2", 'x"y'), ("3", "")]
    assert [record.where for record in records_of(source)] == ["t.csv:2", "t.csv:4", "t.csv:5"]


@pytest.mark.case("K7-13")
def test_a_field_has_no_limit_and_the_process_keeps_its_own(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "x" * 200_000
    path = stored(tmp_path, "t.csv", f'id,text\n1,{long}\n2,"{long}\n{long}"\n')
    assert [len(text) for _, text in pairs(open_source(path))] == [200_000, 400_001]
    assert csv.field_size_limit() == before


@pytest.mark.case("K7-14")
@pytest.mark.parametrize(
    "rows", ['1,"abc\n2,def\n', '1,"abc\n2,"def"\n3,x\n', '1,"abc\n2,def\n3,"x, y"\n4,z\n']
)
def test_an_open_quote_is_an_error_that_names_its_line(tmp_path: Path, rows: str) -> None:
    path = stored(tmp_path, "t.csv", "id,text\n0,fine\n" + rows)
    with pytest.raises(SourceError, match="opens on line 3") as refused:
        records_of(open_source(path, id="id", text="text"))
    assert refused.value.where == "t.csv:3"


def test_text_after_a_closing_quote_is_kept_as_written_and_counted(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.csv", 'id,text\n1,"he said "no" to me"\n2,b\n'))
    assert pairs(source) == [("1", 'he said "no" to me'), ("2", "b")]
    assert counted(source) == {"quotes-inside": 1}


def test_rows_that_are_too_long_are_refused_since_a_text_would_be_cut(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.csv", "id,text\n1,a, b\n2,c\n3,d,,\n")
    with pytest.raises(SourceError, match=r"(?s)t\.csv:2: 3 fields, but the header has 2"):
        records_of(open_source(path))
    source = open_source(path, on_bad="skip")
    assert pairs(source) == [("2", "c"), ("3", "d")]
    assert counted(source) == {"bad-rows": 1}


def test_short_rows_are_counted_unless_a_wanted_cell_is_missing(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.csv", "id,text,more\n1,a\n2,b,c\n"))
    assert pairs(source) == [("1", "a"), ("2", "b")]
    assert counted(source) == {"short-rows": 1}
    with pytest.raises(SourceError, match=r"u\.csv:2: 1 field"):
        records_of(open_source(stored(tmp_path, "u.csv", "id,text\n1\n2,b\n")))


@pytest.mark.parametrize("last", ["3", '3,"half a te'])
def test_a_torn_last_row_is_counted(tmp_path: Path, last: str) -> None:
    source = open_source(stored(tmp_path, "t.csv", "id,text\n1,a\n" + last))
    assert pairs(source) == [("1", "a")]
    assert counted(source) == {"torn-last-line": 1}


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("t.csv", "id;text\n1;a,b\n", "columns are parted by ';'"),
        ("t.csv", "sep=|\nid|text\n1|a,b\n", "columns are parted by '|'"),
        ("t.tsv", "id\ttext\n1\ta,b\n", None),
        ("t.csv", 'id,"te;xt;;"\n1,"a,b"\n', None),
    ],
)
def test_the_delimiter_is_taken_from_the_header(
    tmp_path: Path, name: str, raw: str, said: str | None
) -> None:
    source = open_source(stored(tmp_path, name, raw))
    assert [text for _, text in pairs(source)] == ["a,b"]
    assert said is None or said in source.info.said


@pytest.mark.parametrize(
    ("raw", "cell"), [("1,hello world\n2,bye now\n", "1"), (f"{'long ' * 30}\nb\n", "long long")]
)
def test_a_first_row_that_is_taken_for_the_header_is_said(
    tmp_path: Path, raw: str, cell: str
) -> None:
    said = open_source(stored(tmp_path, "t.csv", raw)).info.said
    assert [s for s in said if "taken for the header" in s and cell in s]
    plain = open_source(stored(tmp_path, "u.csv", "id,text\n1,a\n"))
    assert not [s for s in plain.info.said if "header" in s]


def test_a_single_column_is_not_cut_at_commas(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.csv", "text\nhello, world\n\nbye\n"))
    assert pairs(source) == [("2", "hello, world"), ("4", "bye")]


def test_bare_carriage_returns_are_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="bare carriage returns"):
        open_source(stored(tmp_path, "t.csv", "id,text\r1,a\r2,b\r"))


def test_the_label_column_never_reaches_a_text(tmp_path: Path) -> None:
    raw = "id,subject,body,label\n1,hello,the body,spam\n"
    source = open_source(stored(tmp_path, "t.csv", raw))
    assert pairs(source) == [("1", "hello\n\nthe body")]
    assert source.info.text_columns == ("subject", "body")


@given(st.lists(encodable_text() | st.sampled_from(sorted(NASTY_TEXTS.values())), max_size=6))
def test_what_a_csv_writer_writes_is_read_back(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "text"), *((f"r{n}", text) for n, text in enumerate(texts))])
    raw = io.BytesIO(written.getvalue().encode("utf-8"))
    source = open_source(raw, format="csv", id="id", text="text")
    assert pairs(source) == [(f"r{n}", text) for n, text in enumerate(texts)]
