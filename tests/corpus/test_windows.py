"""Windows: bounded by items and tokens, other neighbours in each pass, nothing lost."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from corpus.agenda import BLOCK, Agenda, Block, rotate
from corpus.records import Part
from corpus.windows import Cut, windows
from executors.errors import ValidationError
from executors.tokens import estimate


class Texts:
    """Parts read by ordinal from memory, so many at a time."""

    def __init__(self, texts: list[str], at_once: int = 1_000) -> None:
        self.texts = texts
        self.at_once = at_once

    def parts(self, ordinals: Sequence[int]) -> Iterator[list[Part]]:
        parts = [Part(ordinal=n, id=f"r{n}", text=self.texts[n]) for n in ordinals]
        for start in range(0, len(parts), self.at_once):
            yield parts[start : start + self.at_once]


def block(count: int) -> Block:
    return Block(pass_index=0, first=0, ordinals=ordinals(count))


def ordinals(count: int) -> NDArray[np.uint32]:
    return np.arange(count, dtype=np.uint32)


@pytest.mark.case("R-082")
def test_rotation_starts_later_and_keeps_everything() -> None:
    assert rotate(ordinals(5), 1, items=1, passes=2).tolist() == [2, 3, 4, 0, 1]
    assert rotate(ordinals(0), 3, items=8, passes=2).tolist() == []
    assert rotate(ordinals(20), 1, items=8, passes=2)[0] == 5
    assert rotate(ordinals(20), 2, items=8, passes=3)[0] == 6


def test_a_window_is_bounded_by_items_and_by_tokens() -> None:
    source = Texts(["a" * 30, "b" * 30, "c" * 30, "d"])
    cut = Cut(items=3, tokens=20, overlap=0)
    found = [[p.id for p in w.items] for w in windows(source, block(4), cut)]
    assert found == [["r0", "r1"], ["r2", "r3"]]


def test_a_record_longer_than_a_window_is_read_in_parts_that_point_into_it() -> None:
    text = " ".join(f"word{n}" for n in range(200))
    cut = Cut(items=8, tokens=100, overlap=10)
    parts = [p for w in windows(Texts([text]), block(1), cut) for p in w.items]
    assert [p.index for p in parts] == list(range(parts[0].of))
    assert all(text[p.start : p.start + len(p.text)] == p.text for p in parts)
    assert parts[0].start == 0
    assert parts[-1].start + len(parts[-1].text) == len(text)


def test_a_judge_that_reads_whole_records_gets_them_whole() -> None:
    cut = Cut(items=2, tokens=16, overlap=0, whole=True)
    found = list(windows(Texts(["x" * 1_000, "y"]), block(2), cut))
    assert [len(w.items) for w in found] == [2]


@pytest.mark.case("R-081")
@pytest.mark.parametrize("bad", [{"items": 0}, {"items": True}, {"tokens": 3}, {"overlap": -1}])
def test_a_bound_that_is_none_is_refused(bad: dict[str, Any]) -> None:
    """D13: the baseline fell back to defaults without a word."""
    with pytest.raises(ValidationError, match="is not a bound"):
        Cut(**bad)


def test_an_overlap_of_more_than_half_a_window_is_refused() -> None:
    with pytest.raises(ValidationError, match="more than half"):
        Cut(tokens=100, overlap=60)


@given(
    st.lists(st.text(max_size=200), max_size=40),
    st.integers(1, 9),
    st.integers(0, 3),
)
def test_each_pass_shows_every_part_of_every_record_once(
    texts: list[str], items: int, pass_index: int
) -> None:
    cut = Cut(items=items, tokens=16, overlap=2)
    agenda = Agenda.whole(ordinals(len(texts)), 4)
    found = [
        (p.ordinal, p.index, p.of)
        for block in agenda.blocks(pass_index, items=items)
        for w in windows(Texts(texts), block, cut)
        for p in w.items
    ]
    assert len(set(found)) == len(found)
    for ordinal in range(len(texts)):
        mine = sorted(index for o, index, _ in found if o == ordinal)
        of = {n for o, _, n in found if o == ordinal}
        assert mine == list(range(of.pop()))


@given(
    st.lists(st.text("ab é", max_size=60), max_size=40),
    st.integers(1, 9),
    st.integers(16, 200),
    st.integers(1, 40),
)
def test_the_same_windows_come_out_however_many_parts_are_read_at_once(
    texts: list[str], items: int, tokens: int, at_once: int
) -> None:
    """So that what decides them is never how a spool lies on its disk."""
    cut = Cut(items=items, tokens=tokens, overlap=2)
    found = list(windows(Texts(texts, at_once), block(len(texts)), cut))
    assert found == list(windows(Texts(texts, 1), block(len(texts)), cut))
    for window, after in pairwise(found):
        weight = sum(estimate(part.text) for part in window.items)
        assert len(window.items) <= items
        assert weight <= tokens
        more = weight + estimate(after.items[0].text)
        assert len(window.items) == items or more > tokens


def test_no_window_reaches_from_one_block_into_the_next() -> None:
    """So that a block can be cut anywhere, alone, into the same windows."""
    count = BLOCK + 3
    texts = Texts([str(n) for n in range(count)])
    blocks = list(Agenda.whole(ordinals(count), 1).blocks(0, items=5))
    assert [len(b.ordinals) for b in blocks] == [BLOCK, 3]
    first, second = (list(windows(texts, b, Cut(items=5))) for b in blocks)
    assert len(first[-1].items) == BLOCK % 5
    assert [p.ordinal for w in second for p in w.items] == [BLOCK, BLOCK + 1, BLOCK + 2]
    assert len({w.index for w in first + second}) == len(first) + len(second)


def test_a_window_that_is_done_is_left_out_and_any_other_stays_whole() -> None:
    done = np.array([True, True, True, False, True, True])
    found = list(windows(Texts(list("abcdef")), block(6), Cut(items=2), done=done))
    assert [[p.ordinal for p in w.items] for w in found] == [[2, 3]]
    assert [w.index for w in found] == [1]


def test_a_block_that_is_done_is_not_even_read() -> None:
    class Unread:
        def parts(self, ordinals: Sequence[int]) -> Iterator[list[Part]]:
            raise AssertionError(ordinals)

    assert list(windows(Unread(), block(2), Cut(), done=np.ones(2, dtype=np.bool_))) == []
