"""Rules and terms: what code alone says of a text."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest
from hypothesis import given

from corpus.exact import count_exact, exact, regex_predicate, terms_predicate
from corpus.records import Record
from corpus.sources import open_source
from executors.errors import ValidationError
from tests.support.nasty import any_text

pytestmark = pytest.mark.anyio


async def slowly(*texts: str) -> AsyncIterator[Record]:
    for number, text in enumerate(texts):
        yield Record(id=str(number), text=text)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("straße", "Die STRASSE ist lang"),
        ("caf\u00e9", "un cafe\u0301."),
        ("C++", "I write c++, mostly"),
        (".*", "literally .* here"),
        ("charge back", "a charge\n  back"),
        ("退款", "我要退款了"),
        ("環불", "환불을 環불을"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("it's", "it's"),
        ("<|endoftext|>", "a <|endoftext|> b"),
    ],
)
def test_terms_are_found_whatever_their_case_and_form(term: str, text: str) -> None:
    assert terms_predicate([term])(text)


@pytest.mark.parametrize(
    ("term", "text"),
    [("art", "party"), ("cafe", "cafe\u0301s"), ("कि", "किताब"), ("5", "$55"), ("err", "my_err")],
)
def test_a_whole_word_is_not_part_of_another(term: str, text: str) -> None:
    assert not terms_predicate([term])(text)


def test_parts_of_words_count_when_asked() -> None:
    assert terms_predicate(["art"], whole_words=False)("party")


def test_any_or_all_of_the_terms() -> None:
    assert terms_predicate(["a", "b"], mode="any")("b c")
    assert not terms_predicate(["a", "b"], mode="all")("b c")
    assert terms_predicate(["a", "b"], mode="all")("b, a")


@pytest.mark.case("K7-20")
async def test_empty_texts_match_nothing() -> None:
    everything = regex_predicate("x*")
    found = await count_exact(open_source(["", " ", "\u200b"]), everything)
    assert (found.count, found.ids, found.looked_at) == (0, (), 3)
    assert (await count_exact([], everything)).looked_at == 0


@pytest.mark.case("R-077")
async def test_an_asynchronous_source_is_searched_like_a_list() -> None:
    refund = terms_predicate(["refund"])
    assert [r.id async for r in exact(slowly("a refund", "no", "REFUND"), refund)] == ["0", "2"]
    assert (await count_exact(slowly("a refund", "no"), refund)).count == 1


async def test_matching_reads_no_further_than_asked() -> None:
    read: list[str] = []

    def source() -> Iterator[Record]:
        for name in "abc":
            read.append(name)
            yield Record(id=name, text="yes")

    async with aclosing(exact(source(), terms_predicate(["yes"]))) as found:
        assert (await anext(found)).id == "a"
    assert read == ["a"]


@given(any_text(), any_text())
def test_no_text_and_no_term_is_an_exception(term: str, text: str) -> None:
    try:
        holds = terms_predicate([term])
    except ValidationError:
        return
    assert holds(text) in (True, False)
    assert holds(f"x {term} y") or term != term.strip()


@pytest.mark.parametrize("terms", [[], [""], ["ok", "  "]])
def test_blank_terms_are_refused(terms: list[str]) -> None:
    with pytest.raises(ValidationError):
        terms_predicate(terms)


@pytest.mark.parametrize("pattern", ["", "(", "[", "*", "(?P<x>a)(?P<x>b)", "a{99999999999}"])
def test_a_broken_pattern_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        regex_predicate(pattern)


def test_a_pattern_is_found_in_either_form() -> None:
    assert regex_predicate("(?i)caf\u00e9$")("CAFE\u0301")
