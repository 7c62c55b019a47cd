"""What the caller holds: texts, pairs, mappings and records, at once or as they come."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.records import Record
from corpus.sources import Source, SourceLike, open_source
from corpus.spool import build_spool
from executors.errors import Halted, SourceError, ValidationError
from tests.support.nasty import any_text, nasty_corpus
from tests.support.reading import counted, pairs, records_of

pytestmark = pytest.mark.anyio


async def came(source: Source) -> list[tuple[str, str]]:
    records = source.records()
    assert isinstance(records, AsyncIterator)
    return [(record.id, record.text) async for record in records]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["a", "b"], [("1", "a"), ("2", "b")]),
        ([("x", "a"), (2, "b")], [("x", "a"), ("2", "b")]),
        ([["x", "a"]], [("x", "a")]),
        ([{"id": 1, "text": "a", "label": "no"}], [("1", "a")]),
        ([{"text": "a"}], [("1", "a")]),
        ([Record(id="r", text="a")], [("r", "a")]),
        ({"x": "a", "y": "b"}, [("x", "a"), ("y", "b")]),
        ((), []),
    ],
)
def test_items_are_records(items: list[str], expected: list[tuple[str, str]]) -> None:
    assert pairs(open_source(items)) == expected


@pytest.mark.case("R-084")
@pytest.mark.parametrize("bad", [{"id": "b"}, None, 5, {"id": ["c"], "text": "y"}, ("a", "b", "c")])
def test_entries_that_are_no_record_are_refused_with_their_places(bad: str) -> None:
    with pytest.raises(SourceError, match="item 2: "):
        records_of(open_source([{"id": "a", "text": "x"}, bad]))


@pytest.mark.case("K5-1", "K5-2")
@given(st.lists(any_text(), max_size=5))
def test_any_texts_come_out_in_order_and_encodable(texts: list[str]) -> None:
    source = open_source(texts)
    found = [record.text for record in records_of(source)]
    assert found == [_sound(text) for text in texts]
    lone = sum(_sound(text).count("\ufffd") > text.count("\ufffd") for text in texts)
    assert counted(source).get("lone-surrogates", 0) == lone
    "".join(found).encode("utf-8")


def _sound(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_the_nasty_corpus_is_all_there() -> None:
    corpus = nasty_corpus()
    found = records_of(open_source(corpus))
    assert [record.id for record in found] == [record.id for record in corpus]
    assert [record.text for record in found] == [_sound(record.text) for record in corpus]


def test_an_iterator_is_read_once_and_says_so() -> None:
    source = open_source(iter(["a", "b"]))
    assert pairs(source) == [("1", "a"), ("2", "b")]
    with pytest.raises(SourceError, match="read before"):
        records_of(source)


def test_an_iterator_is_read_no_further_than_its_head_when_opened() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[str]:
        for number in range(1_000):
            taken.append(number)
            yield "x"

    open_source(numbers())
    assert len(taken) <= 50


@pytest.mark.case("R-077")
async def test_asynchronous_sources_are_read_like_lists() -> None:
    async def stream() -> AsyncIterator[dict[str, object]]:
        for number in range(120):
            yield {"id": number, "text": f"text {number}"}

    async def fetched() -> list[tuple[str, str]]:
        return [("a", "x")]

    async def deferred() -> AsyncIterator[dict[str, object]]:
        return stream()

    expected = [(str(number), f"text {number}") for number in range(120)]
    for given_ in (stream(), stream, deferred):
        source = open_source(given_)
        assert await came(source) == expected
        assert source.info.text_columns == ("text",)
    assert await came(open_source(fetched)) == [("a", "x")]
    assert await came(open_source(lambda: ["a"])) == [("1", "a")]
    with pytest.raises(SourceError, match="the function returned"):
        await came(open_source(cast("SourceLike", lambda: 5)))


@pytest.mark.case("R-076")
async def test_an_empty_corpus_is_no_error(tmp_path: Path) -> None:
    async def nothing() -> list[str]:
        return []

    assert len(await build_spool(open_source([]), tmp_path / "a")) == 0
    assert len(await build_spool(open_source(nothing), tmp_path / "b")) == 0


@pytest.mark.case("R-079")
async def test_what_a_source_raises_is_raised_as_it_is(tmp_path: Path) -> None:
    async def halts() -> AsyncIterator[str]:
        yield "x"
        raise Halted(bound="calls", scope="run", limit="3")

    with pytest.raises(Halted):
        await build_spool(open_source(halts), tmp_path / "spool")
    assert not list((tmp_path / "spool").iterdir())


@pytest.mark.parametrize("thing", [5, None, b"bytes", object()])
def test_what_is_no_source_is_told(thing: str) -> None:
    with pytest.raises(ValidationError, match=r"is no source|are no source"):
        open_source(thing)


def test_named_columns_need_rows_that_have_them() -> None:
    with pytest.raises(SourceError, match="the first items have none"):
        open_source(["a"], text="body")
    assert pairs(open_source([], text="body")) == []
