"""JSONL and plain lines: every line is a record, a counted oddity, or a typed error with its place."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corpus.sources import open_source
from executors.errors import SourceError, ValidationError
from tests.support.reading import counted, pairs, records_of, stored

AB = '{"id":"a","text":"one"}\n{"id":"b","text":"two"}\n'


def test_each_line_is_a_record_with_its_place(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.jsonl", AB))
    assert [(r.id, r.text, r.where) for r in records_of(source)] == [
        ("a", "one", "t.jsonl:1"),
        ("b", "two", "t.jsonl:2"),
    ]
    assert source.info.said == ("id column 'id' (named so)", "text column 'text' (named so)")


@pytest.mark.case("K7-5", "K7-11")
@pytest.mark.parametrize("packed", [False, True])
def test_blank_lines_are_passed_over_and_counted(tmp_path: Path, packed: bool) -> None:
    raw = AB.replace("\n", "\n\n  \r\n", 1).encode()
    path = stored(tmp_path, "t.jsonl", gzip.compress(raw) if packed else raw)
    source = open_source(path)
    assert pairs(source) == [("a", "one"), ("b", "two")]
    assert counted(source) == {"blank-lines": 2}


@pytest.mark.case("K7-7", "K7-10")
@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, char: str) -> None:
    text = stored(tmp_path, "t.txt", f"a{char}b\r\nc\n")
    assert pairs(open_source(text)) == [("1", f"a{char}b"), ("2", "c")]
    if char > " ":
        line = stored(tmp_path, "t.jsonl", f'{{"id":1,"text":"a{char}b"}}\n')
        assert pairs(open_source(line)) == [("1", f"a{char}b")]


def test_one_carriage_return_is_part_of_the_line_end(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.txt", "a\r\r\nb\rc\n")
    assert pairs(open_source(path)) == [("1", "a\r"), ("2", "b\rc")]


def test_a_torn_last_line_is_counted_and_an_earlier_one_is_an_error(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.jsonl", AB + '{"id":"c","te'))
    assert len(records_of(source)) == 2
    assert [w.sentence for w in source.warnings] == [
        '1 torn last line(s), left out (t.jsonl:3: \'{"id":"c","te\')'
    ]
    broken = open_source(stored(tmp_path, "u.jsonl", '{"id":"c","te\n' + AB))
    with pytest.raises(SourceError, match=r"(?s)no JSON.*|u\.jsonl:1"):
        records_of(broken)


@pytest.mark.case("K7-5", "K7-11")
@pytest.mark.parametrize(
    "raw",
    [AB.replace("\n", "\r").encode(), gzip.compress(gzip.compress(AB.encode())), b'{"id":"c"'],
)
def test_a_file_of_one_line_that_is_no_row_is_an_error_and_not_an_empty_corpus(
    tmp_path: Path, raw: bytes
) -> None:
    with pytest.raises(SourceError, match=r"t\.jsonl:1: no JSON"):
        records_of(open_source(stored(tmp_path, "t.jsonl", raw)))


def test_bad_lines_are_listed_by_the_twenty_or_left_out_and_counted(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.jsonl", AB + "no\n[1]\n5\n{}\n" + '"just a text"\n' * 0)
    with pytest.raises(SourceError) as refused:
        records_of(open_source(path))
    assert [f"t.jsonl:{n}" in str(refused.value) for n in (3, 4, 5, 6)] == [True] * 4
    skipping = open_source(path, on_bad="skip")
    assert len(records_of(skipping)) == 2
    assert counted(skipping) == {"bad-rows": 4}


def test_reading_stops_at_the_twentieth_bad_line(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.jsonl", AB + "no\n" * 1_000)
    with pytest.raises(SourceError, match=r"20 row\(s\) are no record \(stopped there\)"):
        records_of(open_source(path))


@pytest.mark.case("K5-1", "K5-4")
def test_halves_of_surrogate_pairs_become_replacement_characters(tmp_path: Path) -> None:
    lines = r'{"id":"a","text":"x\udc88y"}' + "\n" + r'{"id":"b","text":"\ud83d\ude00"}' + "\n"
    source = open_source(stored(tmp_path, "t.jsonl", lines))
    assert pairs(source) == [("a", "x\ufffdy"), ("b", "\U0001f600")]
    assert counted(source) == {"lone-surrogates": 1}


@pytest.mark.case("K5-7")
def test_nul_is_kept_and_counted(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.jsonl", r'{"id":"a","text":"x\u0000y"}' + "\n"))
    assert pairs(source) == [("a", "x\0y")]
    assert counted(source) == {"nul-characters": 1}


@pytest.mark.parametrize("spelled", ["1", "1.0", "1.10", "1e5", "12345678901234567890123", "-0.0"])
def test_number_ids_stay_as_they_are_spelled(tmp_path: Path, spelled: str) -> None:
    path = stored(tmp_path, "t.jsonl", f'{{"id":{spelled},"text":"x"}}\n')
    assert pairs(open_source(path)) == [(spelled, "x")]


def test_what_a_strict_parser_refuses_beside_the_columns_is_read_and_counted(
    tmp_path: Path,
) -> None:
    lines = (
        '{"id":1,"text":"x","score":NaN}\n'
        f'{{"id":2,"text":"y","n":{"9" * 5_000}}}\n'
        '{"id":3,"text":"a\tb"}\n'
    )
    source = open_source(stored(tmp_path, "t.jsonl", lines))
    assert pairs(source) == [("1", "x"), ("2", "y"), ("3", "a\tb")]
    assert counted(source) == {"lenient-json": 2}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id":1,"text":"a","text":"b"}', "'text' stands twice"),
        (r'{"id":1,"text":"a","te\u0078t":"b"}', "'text' stands twice"),
        ('{"id":1,"text":' + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper"),
        ('{"id":true,"text":"a"}', "the id True is neither"),
        ('{"id":[1],"text":"a"}', "is neither text nor a number"),
        ('{"id":1}', "no 'text' among 'id'"),
    ],
)
def test_rows_that_could_be_read_two_ways_are_refused(tmp_path: Path, line: str, why: str) -> None:
    path = stored(tmp_path, "t.jsonl", AB + line + "\n")
    with pytest.raises(SourceError) as refused:
        records_of(open_source(path))
    assert why in str(refused.value)
    assert "t.jsonl:3" in str(refused.value)


def test_null_texts_are_empty_and_lists_are_json(tmp_path: Path) -> None:
    lines = '{"id":1,"text":null}\n{"id":2,"text":[{"role":"user"}]}\n{"id":3,"text":5}\n'
    source = open_source(stored(tmp_path, "t.jsonl", lines))
    assert pairs(source) == [("1", ""), ("2", '[{"role": "user"}]'), ("3", "5")]
    assert counted(source) == {"nested-text": 1}


def test_lines_of_strings_are_texts(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.jsonl", '"one"\n"two"\n')
    assert pairs(open_source(path)) == [("1", "one"), ("2", "two")]


# ---------------------------------------------------------------- encodings


@pytest.mark.case("K7-1")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    raw = '{"id":"é","text":"a\u2028\U0001f600"}\n\n{"id":"b","text":"x"}'.encode(encoding)
    source = open_source(stored(tmp_path, "t.jsonl", raw))
    assert source.info.encoding == encoding
    assert pairs(source) == [("é", "a\u2028\U0001f600"), ("b", "x")]


@pytest.mark.case("K7-1")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_its_mark_is_known_by_its_nul_bytes(tmp_path: Path, encoding: str) -> None:
    lines = '{"id":"é","text":"a\u2028\U0001f600"}\n{"id":"b","text":"x"}\n'
    source = open_source(stored(tmp_path, "t.jsonl", lines.encode(encoding)))
    assert pairs(source) == [("é", "a\u2028\U0001f600"), ("b", "x")]
    assert f"encoding {encoding}" in source.info.said
    rows = open_source(stored(tmp_path, "t.csv", "id,text\n1,é\n".encode(encoding)))
    assert pairs(rows) == [("1", "é")]


@pytest.mark.case("K7-16")
def test_windows_text_is_read_strictly_and_said(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.txt", b"caf\xe9 \x80 5\n"))
    assert pairs(source) == [("1", "café € 5")]
    assert counted(source) == {"other-encoding": 1}
    assert "encoding cp1252" in source.info.said


@pytest.mark.case("K7-16", "K5-1")
def test_damage_in_utf8_is_replaced_and_never_read_as_another_encoding(tmp_path: Path) -> None:
    raw = '{"id":1,"text":"é"}\n{"id":2,"text":"'.encode() + b'caf\xe9"}\n'
    source = open_source(stored(tmp_path, "t.jsonl", raw))
    assert pairs(source) == [("1", "é"), ("2", "caf\ufffd")]
    assert counted(source) == {"replaced-bytes": 1}


def test_bytes_of_no_encoding_are_replaced_last_and_counted(tmp_path: Path) -> None:
    source = open_source(stored(tmp_path, "t.txt", b"a\x9d\xe9b\n"))
    assert pairs(source) == [("1", "a\ufffd\ufffdb")]
    assert counted(source) == {"replaced-bytes": 1}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "shift_jis", "utf-16-le", "gb18030"])
def test_a_named_encoding_is_obeyed(tmp_path: Path, encoding: str) -> None:
    text = "\u0436 \u65e5" if encoding == "gb18030" else "\xe9" if encoding == "latin-1" else "z"
    path = stored(tmp_path, "t.txt", f"{text}\nb\n".encode(encoding))
    assert pairs(open_source(path, encoding=encoding)) == [("1", text), ("2", "b")]


def test_an_unknown_encoding_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="'klingon'"):
        open_source(stored(tmp_path, "t.txt", "x"), encoding="klingon")


@pytest.mark.case("K7-4")
def test_the_locale_decides_nothing(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.jsonl", '{"id":"é","text":"日本"}\n')
    code = (
        "import sys; from corpus.sources import open_source;"
        "print(ascii([(r.id, r.text) for r in open_source(sys.argv[1]).records()]))"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=plain, capture_output=True, check=True
    )
    assert done.stdout.strip() == ascii([("é", "日本")]).encode()


# ---------------------------------------------------------------- standard input


@pytest.mark.parametrize(
    ("piped", "expected"),
    [
        (AB, [("a", "one"), ("b", "two")]),
        (
            "just a line\n{not json\n\nlast",
            [("1", "just a line"), ("2", "{not json"), ("4", "last")],
        ),
        ('[{"id": 7, "text": "x"}]', [("7", "x")]),
        ("", []),
    ],
)
def test_standard_input_is_rows_or_lines(piped: str, expected: list[tuple[str, str]]) -> None:
    code = (
        "from corpus.sources import open_source;"
        "print([(r.id, r.text) for r in open_source('-').records()])"
    )
    for raw in (piped.encode(), gzip.compress(piped.encode())):
        done = subprocess.run(
            [sys.executable, "-c", code], input=raw, capture_output=True, check=True
        )
        assert done.stdout.decode().strip() == repr(expected)
