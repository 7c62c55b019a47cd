"""Which columns are read: named, or detected and said, or a typed error that lists them."""

import pytest

from corpus.sources import open_source
from corpus.sources.columns import choose
from executors.errors import SourceError
from tests.support.reading import records_of

LONG = "a text of quite some words that goes on and on for a while"


@pytest.mark.parametrize(
    ("row", "id_column", "texts"),
    [
        ({"id": 1, "text": "x"}, "id", ("text",)),
        ({"ID": 1, "Text": "x", "label": LONG}, "ID", ("Text",)),
        ({"uuid": "u", "title": "t", "content": "c"}, "uuid", ("title", "content")),
        ({"ticketId": 1, "Subject": "s", "Body": "b"}, "ticketId", ("Subject", "Body")),
        ({"n": 1, "blurb": LONG, "city": "Rome"}, None, ("blurb",)),
        ({"id": 1, "words": "only column"}, "id", ("words",)),
        ({"id": 1, "headline": "h", "story": LONG}, "id", ("headline", "story")),
        ({"id": 1, "reply": "short", "label": LONG * 9, "url": LONG * 9}, "id", ("reply",)),
        ({"id": 1, "text": "x", "description": LONG}, "id", ("text",)),
        ({"message_id": "m", "message": "x"}, "message_id", ("message",)),
    ],
)
def test_columns_are_detected(
    row: dict[str, object], id_column: str | None, texts: tuple[str, ...]
) -> None:
    info = open_source([row]).info
    assert (info.id_column, info.text_columns) == (id_column, texts)


def test_what_was_decided_is_said() -> None:
    said = open_source([{"id": 1, "subject": "s", "words": LONG}]).info.said
    assert said == ("id column 'id' (named so)", "text columns 'subject' + 'words' (longest texts)")
    assert open_source([{"text": "x"}]).info.said[0].startswith("no id column: ids are made")


def test_no_clear_text_column_lists_them_with_samples() -> None:
    with pytest.raises(SourceError) as refused:
        open_source([{"id": 1, "left": "one thing", "right": "another"}])
    shown = str(refused.value)
    assert "--text NAME" in shown
    assert "'left' (as in 'one thing')" in shown


def test_two_columns_that_may_both_be_the_text_are_not_guessed_between() -> None:
    with pytest.raises(SourceError, match="no column is clearly the text"):
        open_source([{"id": 1, "question": LONG, "answers": LONG + "!"}])


def test_a_wrong_name_lists_what_is_there() -> None:
    with pytest.raises(SourceError, match=r"(?s)no column 'txt'.*'id' \(as in 1\), 'text'"):
        open_source([{"id": 1, "text": "x"}], text="txt")


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(SourceError, match="2 columns are called 'text'"):
        choose([{"id": "1", "text": "x"}], ["id", "text", "text"], where="t.csv")


def test_several_text_columns_are_parted_by_a_blank_line_where_they_hold_something() -> None:
    rows: list[dict[str, object]] = [
        {"id": 1, "a": "x", "b": "y"},
        {"id": 2, "a": None, "b": "y"},
        {"id": 3, "a": "x"},
    ]
    source = open_source(rows, text=["a", "b"])
    assert [record.text for record in records_of(source)] == ["x\n\ny", "y", "x"]


def test_an_id_column_by_ending_must_not_repeat_in_the_first_rows() -> None:
    rows = [{"user_id": 1, "row_id": 1, "text": "x"}, {"user_id": 1, "row_id": 2, "text": "y"}]
    assert open_source(rows).info.id_column == "row_id"
