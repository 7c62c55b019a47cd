"""The ledger: every record comes out exactly once, whatever the judge says."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.codes import FIRST_LABEL, MATCHED, NOT, UNRESOLVED, UNSURE
from corpus.ledger import Ledger
from corpus.records import Part
from corpus.verdicts import Chosen, Matched, NotMatched, Quote, Unresolved, Unsure, Verdict
from corpus.votes import Votes, fold_passes
from executors.errors import InternalError, ValidationError

YES, NO = Matched(), NotMatched()
OPEN, DOUBT = Unresolved(reason="lost"), Unsure(reason="cannot tell")


def part(ordinal: int, index: int = 0, of: int = 1) -> Part:
    return Part(ordinal=ordinal, id=f"r{ordinal}", text="x", index=index, of=of)


def folded(parts: Sequence[Verdict], labels: tuple[str, ...] = ()) -> tuple[int, str]:
    ledger = Ledger(1, passes=1, labels=labels)
    for index, verdict in enumerate(parts):
        ledger.add(part(0, index, len(parts)), 0, verdict)
    return int(ledger.codes("any")[0]), ledger.reason(0)


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([NO, YES, OPEN], MATCHED),
        ([NO, OPEN, DOUBT], UNRESOLVED),
        ([NO, DOUBT], UNSURE),
        ([NO, NO], NOT),
    ],
)
def test_parts_of_a_record_fold_by_precedence(parts: list[Verdict], code: int) -> None:
    assert folded(parts)[0] == code
    assert folded(parts[::-1])[0] == code


def test_parts_that_disagree_on_a_label_are_unsure_and_named() -> None:
    code, reason = folded([Chosen(label="bug"), Chosen(label="praise")], ("bug", "praise"))
    assert code == UNSURE
    assert "bug / praise" in reason


def test_parts_that_agree_on_a_label_keep_it() -> None:
    code, _ = folded([Chosen(label="praise"), Chosen(label="praise")], ("bug", "praise"))
    assert code == FIRST_LABEL + 1


@pytest.mark.case("K6-1")
def test_a_record_that_nobody_judged_is_unresolved_and_never_a_no() -> None:
    ledger = Ledger(3, passes=2)
    ledger.add(part(1), 0, NO)
    ledger.add(part(1), 1, NO)
    assert ledger.codes("any").tolist() == [UNRESOLVED, NOT, UNRESOLVED]


def test_a_record_with_a_part_missing_is_unresolved_unless_another_matched() -> None:
    ledger = Ledger(2, passes=1)
    ledger.add(part(0, 0, 2), 0, NO)
    ledger.add(part(1, 1, 2), 0, YES)
    assert ledger.codes("any").tolist() == [UNRESOLVED, MATCHED]


@pytest.mark.parametrize("of", [1, 2])
def test_judging_a_part_twice_in_a_pass_is_our_fault(of: int) -> None:
    ledger = Ledger(1, passes=1)
    ledger.add(part(0, 0, of), 0, YES)
    with pytest.raises(InternalError, match="judged twice"):
        ledger.add(part(0, 0, of), 0, NO)


@pytest.mark.parametrize(
    ("passes", "votes", "code"),
    [
        ([NOT, MATCHED, UNRESOLVED], "any", MATCHED),
        ([NOT, UNRESOLVED, UNSURE], "any", UNRESOLVED),
        ([NOT, UNSURE, NOT], "any", UNSURE),
        ([NOT, MATCHED, MATCHED], "majority", MATCHED),
        ([NOT, NOT, UNRESOLVED], "majority", NOT),
        ([NOT, MATCHED], "majority", UNSURE),
        ([MATCHED, UNRESOLVED], "majority", UNRESOLVED),
        ([MATCHED, MATCHED], "all", MATCHED),
        ([MATCHED, NOT], "all", NOT),
        ([MATCHED, UNSURE], "all", UNSURE),
        ([16, 16, UNSURE], "any", 16),
        ([16, 17, UNRESOLVED], "any", UNSURE),
        ([UNSURE, UNRESOLVED, 17], "any", 17),
        ([16, 16, 17], "majority", 16),
        ([16, 17, UNRESOLVED], "majority", UNRESOLVED),
        ([16, 17], "all", UNSURE),
        ([17, 17], "all", 17),
    ],
)
def test_passes_fold_by_vote(passes: list[int], votes: Votes, code: int) -> None:
    rows = np.array([[p, NOT if p < FIRST_LABEL else p] for p in passes], dtype=np.uint16)
    assert fold_passes(rows, votes)[0] == code


def test_an_unknown_vote_is_refused() -> None:
    rows = np.ones((2, 1), dtype=np.uint16)
    with pytest.raises(ValidationError, match="votes='most'"):
        fold_passes(rows, "most")  # type: ignore[arg-type]


verdicts = st.sampled_from([YES, NO, OPEN, DOUBT])


@given(
    st.lists(st.lists(verdicts, min_size=1, max_size=4), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
    st.floats(0, 1),
)
def test_whatever_is_judged_in_whatever_order_each_record_comes_out_once(
    records: list[list[Verdict]], random: object, kept: float
) -> None:
    ledger = Ledger(len(records), passes=1)
    parts = [
        (part(ordinal, index, len(of)), verdict)
        for ordinal, of in enumerate(records)
        for index, verdict in enumerate(of)
    ]
    random.shuffle(parts)  # type: ignore[attr-defined]
    judged = parts[: int(len(parts) * kept)]
    for each, verdict in judged:
        ledger.add(each, 0, verdict)
    codes = ledger.codes("any").tolist()
    assert len(codes) == len(records)
    assert set(codes) <= {NOT, UNSURE, UNRESOLVED, MATCHED}
    for ordinal, of in enumerate(records):
        said = [v for p, v in judged if p.ordinal == ordinal]
        assert (codes[ordinal] == MATCHED) == (YES in said)
        if len(said) < len(of) and YES not in said:
            assert codes[ordinal] == UNRESOLVED


@pytest.mark.parametrize("passes", [(OPEN, DOUBT), (DOUBT, OPEN), (OPEN, NO), (NO, OPEN)])
def test_the_reason_is_that_of_the_verdict_that_wins(passes: tuple[Verdict, Verdict]) -> None:
    ledger = Ledger(1, passes=2)
    for pass_index, verdict in enumerate(passes):
        ledger.add(part(0), pass_index, verdict)
    assert (ledger.codes("any")[0], ledger.reason(0)) == (UNRESOLVED, "lost")
    assert folded(passes) == (UNRESOLVED, "lost")


def test_of_two_reasons_of_one_kind_the_later_stays_and_one_text_may_explain_both_kinds() -> None:
    ledger = Ledger(1, passes=3)
    ledger.add(part(0), 0, Unsure(reason="odd"))
    ledger.add(part(0), 1, Unresolved(reason="odd"))
    ledger.add(part(0), 2, Unsure(reason="later"))
    assert ledger.reason(0) == "odd"
    assert folded([Unsure(reason="one"), Unsure(reason="two")]) == (UNSURE, "two")


def test_the_quote_of_the_first_pass_is_kept_whichever_came_first() -> None:
    one, other = (Matched(quote=Quote(text=text, start=0, end=3)) for text in ("one", "two"))
    kept: list[Quote] = []
    for order in ((0, 1), (1, 0)):
        ledger = Ledger(1, passes=2)
        for pass_index in order:
            ledger.add(part(0), pass_index, (one, other)[pass_index])
        kept.append(ledger.quotes[0])
    assert kept == [one.quote, one.quote]
