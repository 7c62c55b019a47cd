"""The block of a result and the tree of a run, drawn from receipts that are not trusted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from corpus.events import JudgeNoted
from executors.ids import NodeId
from rlm.receipts.receipts import NodeReceipt, ReceiptFold, Receipts, Totals
from rlm.render.lines import as_text
from rlm.render.text import calls_of, result_block, spend_of, times, tree

START = datetime(2026, 1, 1, tzinfo=UTC)
TALLY: dict[str, object] = {
    "kind": "tally",
    "count": 1_874,
    "coverage": [1_874, 1_934],
    "records": 6_046,
    "states": {
        "matched": 1_874, "not_matched": 4_100, "unsure": 0,
        "unresolved": 60, "empty": 12, "left_out": 0,
    },
    "labels": {},
    "expected": 1_902.34,
    "identical": 230,
    "labelled": 80,
    "judge": "chat openai:gpt-x",
    "passes": 2,
    "votes": "any",
    "notes": ["only the first 60 words of each record were read"],
}  # fmt: skip
PAID = Totals(
    calls=1_512, attempts=1_540, failed=28, possibly_paid=3, shared=2, input=1_200_000,
    output=30_000, cost=Decimal("0.4312"), unpriced=3,
)  # fmt: skip


def node(id_: str, name: str, seconds: float = 1.0, **facts: object) -> NodeReceipt:
    made = NodeReceipt(
        id=id_, name=name, started=START, finished=START + timedelta(seconds=seconds)
    )
    for fact, value in facts.items():
        setattr(made, fact, value)
    return made


def receipts(
    result: dict[str, object],
    *nodes: NodeReceipt,
    blocker: str | None = None,
    totals: Totals | None = None,
) -> Receipts:
    return Receipts(
        run="20260101-000000-3f9a2c",
        task="is this spam?",
        version="0.1.0",
        source={},
        options={},
        blocker=blocker,
        nodes=nodes,
        totals=totals or Totals(),
        roles={},
        models=(),
        directory=Path("/runs/one"),
        result=result,
    )


def test_a_count_says_what_is_certain_and_what_it_cost() -> None:
    made = receipts(TALLY, blocker="unresolved-records", totals=PAID)
    block = result_block(made, missing=["60 record(s) unresolved: the call failed: rate-limited"])
    assert as_text(block) == snapshot("""\
incomplete: at least 1,874, at most 1,934 of 6,046 records match: is this spam?
  1,874 matched, 4,100 not matched, 0 unsure, 60 unresolved, 12 empty, 0 left out
  coverage range: 1,874 to 1,934: matched, and that plus unsure and unresolved
  judge: chat openai:gpt-x, 2 passes, votes any
  expected: 1,902.3, the sum of the calibrated probabilities; far from the count, more labels are needed
  identical: 230 records with the text of an earlier one: judged once, counted each
  labelled: 80 records with a person's label, which overrides the judge
  incomplete: unresolved-records
    60 record(s) unresolved: the call failed: rate-limited
  note: only the first 60 words of each record were read
  cost: 1,512 calls, 1,230,000 tokens, 0.4312 USD and 3 calls of unknown price
  calls: 2 shared with an identical call, 28 failed, 3 attempts without an answer that may have been billed: bounds count them
  receipt: /runs/one/receipt.json
""")


def test_a_choice_of_labels_lists_each_of_them() -> None:
    labels = {**TALLY, "labels": {"billing": 900, "[red]bug": 974}, "expected": None, "passes": 1}
    assert as_text(result_block(receipts(labels))) == snapshot("""\
1,874 of 6,046 records have a label: is this spam?
        900  billing
        974  [red]bug
  1,874 matched, 4,100 not matched, 0 unsure, 60 unresolved, 12 empty, 0 left out
  coverage range: 1,874 to 1,934: labelled, and that plus unsure and unresolved
  judge: chat openai:gpt-x, 1 pass
  identical: 230 records with the text of an earlier one: judged once, counted each
  labelled: 80 records with a person's label, which overrides the judge
  note: only the first 60 words of each record were read
  cost: 0 calls
  receipt: /runs/one/receipt.json
""")


def test_a_ranking_states_no_number_of_matches() -> None:
    ranking: dict[str, object] = {
        "kind": "ranking",
        "records": 6_046,
        "judge": "encoder minilm, without labels",
        "notes": [],
        "top": [
            {"rank": 1, "id": "m-17\u202e", "score": 0.91234},
            {"rank": 2, "id": "[/INST]", "score": 0.9},
        ],
    }
    block = result_block(receipts(ranking, blocker="uncalibrated-judge"), missing=["no label"])
    assert as_text(block) == snapshot("""\
no count, 6,046 records ranked: is this spam?
      1  0.9123  m-17\\u202e
      2  0.9000  [/INST]
  judge: encoder minilm, without labels
  incomplete: uncalibrated-judge
    no label
  cost: 0 calls
  receipt: /runs/one/receipt.json
""")


@pytest.mark.case("D19")
def test_scores_without_calibration_are_not_called_a_count() -> None:
    block = as_text(result_block(receipts(TALLY, blocker="uncalibrated-judge")))
    assert block.startswith("no count, 6,046 records scored: is this spam?\n  judge: chat")
    assert "1,874" not in block


def test_a_run_without_a_result_says_so() -> None:
    assert as_text(result_block(receipts({}, blocker="empty-corpus"))) == snapshot("""\
no result: is this spam?
  incomplete: empty-corpus
  cost: 0 calls
  receipt: /runs/one/receipt.json
""")


@pytest.mark.case("K13-8", "K13-10")
def test_the_tree_shows_time_calls_warnings_and_what_was_said() -> None:
    made = receipts(
        TALLY,
        node("root", "count", 83.2),
        node("root.0", "read tickets.csv", 0.4, said=("6,046 records", "id column 'id' (named so)"),
             warnings={"3 torn last line(s), left out (a.jsonl:9)": 3, "labels were odd": 2}),
        node("root.2", "judge by chat openai:gpt-x", 82.0, windows=1_512, items=12_092, unresolved=60,
             foreign=2, repaired=5, snippets=["Sure! [bold]Here\x1b[31m"], totals=PAID),
        node("root.2.0", "", 40.0),
        node("root.3", "late", error="halted"),
    )  # fmt: skip
    assert as_text(tree(made)) == snapshot("""\
count  1 min 23 s
├─ read tickets.csv  0.4 s
│     6,046 records
│     id column 'id' (named so)
│     3 torn last line(s), left out (a.jsonl:9)
│     labels were odd (2 times)
├─ judge by chat openai:gpt-x  1 min 22 s, 1,512 windows, 12,092 items, 1,512 calls, 1,230,000 tokens, 0.4312 USD and 3 calls of unknown price
│  │  60 items left unresolved
│  │  2 items not shown but answered for, dropped
│  │  5 items answered when asked again
│  │  2 shared with an identical call, 28 failed, 3 attempts without an answer that may have been billed: bounds count them
│  │  unreadable reply: Sure! [bold]Here\\x1b[31m
│  └─ root.2.0  40 s
└─ late  1.0 s
      ended early: halted
""")


def test_a_node_that_never_ended_has_no_time() -> None:
    assert as_text(tree(receipts({}, NodeReceipt(id="root", name="count")))) == "count\n"


def test_no_node_is_left_out_and_none_stands_twice_whatever_the_ids() -> None:
    """A receipt may name parents that are not there, or go deeper than a stack of calls."""
    deep = [node("root" + ".0" * depth, f"level {depth}") for depth in range(2_000)]
    made = receipts({}, node("lost.1.1", "an orphan"), *deep, node("root.0", "a second one"))
    shown = as_text(tree(made))
    assert shown.count("\n") == 2_002
    assert shown.count("an orphan") == shown.count("level 1999") == 1


def test_spend_is_unknown_where_no_price_is_and_nothing_where_no_call_was() -> None:
    assert spend_of(Totals()) == "0 calls"
    unpriced = Totals(calls=2, unpriced=2, unmetered=1, replayed=4)
    assert spend_of(unpriced) == snapshot("2 calls, 0 known tokens, price unknown")


LOST = Totals(
    calls=484, input=9_000, cost=Decimal("0.2084"), failed=18, possibly_paid=19, lost=16,
    lost_tokens=9_000, lost_usd=Decimal("0.00681"), unanswered_tokens=1_000,
    unanswered_usd=Decimal("0.0005"),
)  # fmt: skip


def test_what_lost_calls_may_have_cost_is_told_beside_the_cost_and_rounded_up() -> None:
    """The bounds count it, so that a bill without it cannot be held against them."""
    alone = replace(LOST, possibly_paid=16, unanswered_tokens=0, unanswered_usd=Decimal(0))
    assert spend_of(alone) == (
        "484 calls, 9,000 tokens, 0.2084 USD, and at most 0.0069 more for 16 calls that were lost "
        "(counted on the bounds)"
    )
    assert spend_of(LOST).endswith(
        ", and at most 0.0074 more for 16 calls that were lost and 3 attempts without an answer "
        "(counted on the bounds)"
    )
    assert calls_of(LOST).startswith("2 failed, 16 lost in flight when a process died, 3 attempts")


def test_lost_calls_without_a_price_are_told_in_tokens_and_those_of_old_receipts_in_words() -> None:
    unpriced = Totals(failed=1, possibly_paid=1, lost=1, lost_tokens=1_200)
    assert spend_of(unpriced) == (
        "0 calls, and at most 1,200 tokens more for 1 call that was lost (counted on the bounds)"
    )
    assert spend_of(Totals(lost=2)) == "0 calls, and whatever 2 calls that were lost cost"
    assert spend_of(Totals(lost=1, lost_tokens=1, lost_usd=Decimal("1e99")))


def test_the_server_is_named_with_the_judge_where_it_is_not_the_vendors_own() -> None:
    made = replace(receipts(TALLY), server="http://127.0.0.1:8000")
    shown = as_text(result_block(made))
    assert "  judge: chat openai:gpt-x at http://127.0.0.1:8000, 2 passes, votes any\n" in shown


def test_a_warning_that_counts_itself_is_not_counted_twice() -> None:
    assert times("3 lines left out", 3) == "3 lines left out"
    assert times("a label was odd", 1_200) == "a label was odd (1,200 times)"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*TALLY, "top"]), JSON),
    st.sampled_from(["tally", "ranking", "else"]),
)
def test_any_receipt_from_elsewhere_can_be_shown(result: dict[str, object], kind: str) -> None:
    text = as_text(result_block(receipts({**result, "kind": kind})))
    assert "\x1b" not in text
    assert "receipt: /runs/one/receipt.json" in text


def test_what_is_said_of_replies_and_endings_is_said_once_and_in_words() -> None:
    odd = node("root", "count", snippets=["Sure!"] * 3 + ["No."], error="CancelledError")
    shown = as_text(tree(receipts({}, odd)))
    assert shown.count("unreadable reply: ") == 2
    assert shown.endswith("ended early: cancelled\n")


def test_receipts_are_one_line_in_a_notebook() -> None:
    shown = repr(receipts(TALLY, node("root", "count"), blocker="halted", totals=PAID))
    assert shown == snapshot(
        "Receipts(run='20260101-000000-3f9a2c', calls=1512, blocker='halted', path='/runs/one/receipt.json')"
    )


def test_a_receipt_keeps_each_unreadable_reply_once() -> None:
    fold = ReceiptFold()
    for window, snippet in enumerate(["Sure!"] * 6 + ["No."]):
        fold(
            JudgeNoted(node=NodeId("root"), at=START, window=window, pass_index=0, snippet=snippet)
        )
    (kept,) = fold.receipts(Path("/runs/one"), {}).nodes
    assert kept.snippets == ["Sure!", "No."]


def test_a_count_of_which_nothing_was_judged_says_its_question_once() -> None:
    states = {"matched": 0, "not_matched": 0, "unresolved": 9, "empty": 0}
    result: dict[str, object] = {"kind": "tally", "records": 9, "count": 0, "states": states}
    first = as_text(result_block(receipts(result, blocker="halted"))[:1])
    assert first == "no count, none of 9 records was judged: is this spam?\n"
