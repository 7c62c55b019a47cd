"""Quotes are found by code, in the record's own words and at its own offsets."""

import re
from time import process_time
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.quotes import find_quote
from corpus.records import Part
from corpus.verdicts import Quote

TEXT = "The gate\n  was on fire; they said \u201cnothing new\u201d."


def part(text: str = TEXT, *, start: int = 0) -> Part:
    return Part(ordinal=0, id="a", text=text, start=start)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("on fire", "on fire"),
        (" on  fire ", "on fire"),
        ("gate was on", "gate\n  was on"),
        ('"on fire"', "on fire"),
        ("\u201cnothing new\u201d", "\u201cnothing new\u201d"),
        ("'nothing new'", "nothing new"),
    ],
)
def test_words_are_found_where_they_stand(words: str, found: str) -> None:
    quote = find_quote(part(), words)
    assert quote is not None
    assert quote.text == found
    assert TEXT[quote.start : quote.end] == quote.text


@pytest.mark.parametrize("words", ["on Fire", "on fires", "gate . fire", ".*", "", " \n", '""'])
def test_other_words_are_not(words: str) -> None:
    assert find_quote(part(), words) is None


FORMS = "Zo\u00eb f\u00fchrt die B\u00fccher;\n \ud55c\uad6d \u1ec7 q\u0308 na\u00efve"


@pytest.mark.parametrize(
    "words", ["Zo\u00eb f\u00fchrt", "B\u00fccher; \ud55c\uad6d", "\u1ec7 q\u0308", "na\u00efve"]
)
@pytest.mark.parametrize("quoted", ["NFC", "NFD"])
@pytest.mark.parametrize("held", ["NFC", "NFD"])
def test_an_accent_may_stand_with_its_letter_or_behind_it(
    words: str, quoted: Literal["NFC", "NFD"], held: Literal["NFC", "NFD"]
) -> None:
    text = normalize(held, FORMS)
    quote = find_quote(part(text, start=7), normalize(quoted, words))
    assert quote is not None
    assert text[quote.start - 7 : quote.end - 7] == quote.text
    assert normalize("NFC", quote.text).split() == words.split()


@pytest.mark.parametrize(
    "words",
    [
        "Zo f\u00fchrt",
        "\u00fchrt die Bu",
        "Zoe\u0301",
        "\ud558 \u1ec7",
        "\u00fchrt die Bu\u0308cher; \u1112",
    ],
)
def test_another_accent_or_none_is_another_word(words: str) -> None:
    assert find_quote(part(FORMS), words) is None
    assert find_quote(part(normalize("NFD", FORMS)), words) is None


def test_offsets_are_those_of_the_record() -> None:
    assert find_quote(part("on fire", start=1_000), "fire") == Quote(
        text="fire", start=1_003, end=1_007
    )


@given(st.text(), st.integers(0, 50), st.integers(0, 50), st.integers(0, 9))
def test_whatever_stands_in_a_text_is_found_there(text: str, at: int, end: int, start: int) -> None:
    words = text[at:end]
    quote = find_quote(part(text, start=start), words)
    assert (quote is None) == (not words.split())
    if quote is not None:
        assert text[quote.start - start : quote.end - start] == quote.text


@given(st.text("ab \n\u2003"), st.text("ab \n"))
def test_it_finds_what_a_search_for_the_words_with_any_space_between_would(
    text: str, words: str
) -> None:
    pieces = words.split()
    found = re.search(r"\s+".join(map(re.escape, pieces)), text) if pieces else None
    quote = find_quote(part(text), words)
    assert (quote is None) == (found is None)
    if quote is not None and found is not None and words not in text:
        assert (quote.start, quote.end) == found.span()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a " * 100_000, "a  " * 50_000 + "b"),
        ("a" + " " * 200_000, "a  b"),
        ("ab \n" * 50_000 + "c", "ab  " * 50_000 + "c"),
    ],
)
def test_a_long_quote_in_a_long_text_takes_no_time(text: str, words: str) -> None:
    before = process_time()
    find_quote(part(text), words)
    assert process_time() - before < 1.0
