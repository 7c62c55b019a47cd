"""Long records are read in parts: exact offsets, nothing between them, whole characters."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.chunks import split
from corpus.records import Part, is_blank
from executors.errors import ValidationError
from executors.tokens import estimate
from tests.support.nasty import NASTY_TEXTS, any_text


def parts(text: str, tokens: int, overlap: int = 0) -> tuple[Part, ...]:
    whole = Part(ordinal=7, id="r", text=text)
    return split(whole, max_tokens=tokens, overlap_tokens=overlap)


def letters(text: str) -> list[int]:
    return [at for at, char in enumerate(text) if not is_blank(char)]


@given(any_text(), st.integers(1, 40), st.data())
def test_parts_cover_the_text_at_exact_offsets(text: str, tokens: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, tokens // 2))
    found = parts(text, tokens, overlap)
    for part in found:
        assert text[part.start : part.start + len(part.text)] == part.text
        assert estimate(part.text) <= tokens or len(part.text) == 1
    covered = {at for part in found for at in range(part.start, part.start + len(part.text))}
    assert covered.issuperset(letters(text))
    assert [(p.index, p.of) for p in found] == [(n, len(found)) for n in range(len(found))]


def test_neighbours_share_about_the_overlap() -> None:
    text = " ".join(f"word{n}" for n in range(500))
    found = parts(text, 60, 12)
    shared = [a.start + len(a.text) - b.start for a, b in pairwise(found)]
    assert all(15 <= characters <= 36 for characters in shared), shared


def test_cuts_fall_after_paragraphs_then_sentences_then_words() -> None:
    paragraphs = parts(("word " * 15 + "\n\n") * 4, 60)
    assert all(part.text.endswith("\n\n") for part in paragraphs)
    sentences = parts("Here is a sentence of words. " * 20, 40)
    assert all(part.text.endswith(". ") for part in sentences)
    words = parts("word " * 100, 10)
    assert all(part.text.endswith("word ") for part in words)


@pytest.mark.case("K7-22", "K7-19")
def test_separators_alone_have_no_parts() -> None:
    assert parts("", 5) == ()
    assert parts(" \n\n\u200b" * 1_000, 5, 2) == ()
    assert parts(NASTY_TEXTS["separators alone"], 5, 2)


@pytest.mark.parametrize("overlap", [0, 3])
def test_a_character_stays_with_its_marks(overlap: int) -> None:
    text = "e\u0301\u0302" * 200 + "\U0001f44d\U0001f3fd" * 50 + "x\r\n" * 50
    for part in parts(text, 7, overlap):
        for at in (part.start, part.start + len(part.text)):
            following = text[at : at + 1] or " "
            assert not unicodedata.combining(following)
            assert following not in "\U0001f3fd\n"


def test_a_pile_of_marks_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 500
    assert "".join(part.text for part in parts(text, 10)) == text


@pytest.mark.parametrize("text", ["x" * 400_000, "word " * 80_000, "\n" * 200_000 + "x"])
def test_splitting_counts_each_character_a_bounded_number_of_times(text: str) -> None:
    counted = 0

    def count(piece: str) -> int:
        nonlocal counted
        counted += len(piece)
        return estimate(piece)

    whole = Part(ordinal=0, id="r", text=text)
    assert split(whole, max_tokens=100, overlap_tokens=10, count=count)
    assert counted < 30 * len(text)


def test_bounds_that_leave_no_way_forward_are_refused() -> None:
    with pytest.raises(ValidationError, match="max_tokens=0"):
        parts("x", 0)
    with pytest.raises(ValidationError, match="overlap_tokens=6"):
        parts("x", 10, 6)
