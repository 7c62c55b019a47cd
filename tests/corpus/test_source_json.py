"""JSON files: one array, streamed, each value with its line."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.sources import open_source
from executors.errors import SourceError
from tests.support.nasty import NASTY_TEXTS, any_text
from tests.support.reading import counted, pairs, records_of, stored


def test_values_of_an_array_have_their_lines(tmp_path: Path) -> None:
    raw = '[\n  {"id": 1,\n   "text": "x]"},\n\n  {"id": 2.50, "text": "\\"[{"}\n]\n'
    records = records_of(open_source(stored(tmp_path, "t.json", raw)))
    assert [(r.id, r.text, r.where) for r in records] == [
        ("1", "x]", "t.json:2"),
        ("2.50", '"[{', "t.json:5"),
    ]


def test_an_envelope_is_opened_and_what_else_is_in_it_is_counted(tmp_path: Path) -> None:
    raw = '{"meta": {"n": [1]}, "tags": ["a"], "records": [{"id": 1, "text": "x"}], "more": [2]}'
    source = open_source(stored(tmp_path, "t.json", raw))
    assert pairs(source) == [("1", "x")]
    assert counted(source) == {"other-arrays": 2}


def test_two_arrays_of_records_are_refused(tmp_path: Path) -> None:
    raw = '{"train": [{"id": 1, "text": "x"}], "test": [{"id": 2, "text": "y"}]}'
    with pytest.raises(SourceError, match="'train' and 'test'"):
        records_of(open_source(stored(tmp_path, "t.json", raw)))


def test_a_json_file_of_lines_is_read_as_lines(tmp_path: Path) -> None:
    path = stored(tmp_path, "t.json", '{"id":1,"text":"x"}\n{"id":2,"text":"y"}\n')
    source = open_source(path)
    assert source.info.format == "jsonl"
    assert pairs(source) == [("1", "x"), ("2", "y")]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('[{"id":1,"text":"x"},]', "where none can stand"),
        ('[{"id":1,"text":"x"} {"id":2,"text":"y"}]', "where none can stand"),
        ('[{"id":1,"text":"x"}] more', "something follows"),
        ('{"id":1,"note":{"text":"x"},"tags":[]}', "no array of objects"),
        ('{"id" "x"}', "where none can stand"),
        ("17", "begins with '1'"),
        ('[{"id":1,"text":"x"},\n{"id":2,"te', "the file ends inside a value"),
        ('[{"id":1,"text":"x"}', "the file ends inside a value"),
        ('[{"id":1,"text":"x","text":"y"}]', "'text' stands twice"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('[{"id":1,"text":"x"}, 5]', "the number 5, not an object"),
    ],
)
def test_what_is_no_array_of_records_is_a_typed_error(tmp_path: Path, raw: str, why: str) -> None:
    path = stored(tmp_path, "t.json", raw)
    with pytest.raises(SourceError, match=r"t\.json") as refused:
        records_of(open_source(path, id="id", text="text", format="json"))
    assert why in str(refused.value)


@pytest.mark.parametrize("raw", ["", "[]", " [ ] ", '{"records": []}'])
def test_nothing_is_no_error(tmp_path: Path, raw: str) -> None:
    assert pairs(open_source(stored(tmp_path, "t.json", raw))) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.fixed_dictionaries({"text": any_text(), "more": _JSON}), max_size=5), st.data())
def test_any_array_is_read_back(rows: list[dict[str, object]], data: st.DataObject) -> None:
    spaced = data.draw(st.sampled_from([None, 2]))
    raw = json.dumps(rows, indent=spaced, ensure_ascii=data.draw(st.booleans()))
    stream = io.BytesIO(raw.encode("utf-8", "surrogatepass"))
    found = pairs(open_source(stream, format="json", text="text"))
    assert [text for _, text in found] == [_sound(str(row["text"])) for row in rows]


def _sound(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_every_nasty_text_survives(tmp_path: Path) -> None:
    rows = [{"id": name, "text": text} for name, text in NASTY_TEXTS.items()]
    source = open_source(stored(tmp_path, "t.json", json.dumps(rows, indent=1)))
    assert pairs(source) == [(name, _sound(text)) for name, text in NASTY_TEXTS.items()]
