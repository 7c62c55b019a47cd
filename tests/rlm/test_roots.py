"""Roots: one hash over what came out, whatever happened on the way; one over what was done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.ledger import Ledger
from corpus.results import tally
from corpus.sources import open_source
from corpus.spool import build_spool
from corpus.verdicts import Chosen, Quote, Unsure, Verdict
from executors.ids import ContentKey, NodeId
from rlm import Caps, Completed, count
from rlm.counting import CountOutcome
from rlm.recursion import RecurseOutcome
from rlm.resuming import resume
from rlm.runs.manifest import Manifest
from rlm.runs.merkle import Chain, MerkleTree, sized
from rlm.runs.roots import content_root, log_root
from rlm.testing import ScriptedModel, judge_script

# ---------------------------------------------------------------- the tree


def recursive(leaves: Sequence[bytes]) -> bytes:
    """The definition of RFC 6962, word by word."""
    if not leaves:
        return blake2b(digest_size=32).digest()
    if len(leaves) == 1:
        return blake2b(b"\x00" + leaves[0], digest_size=32).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    both = recursive(leaves[:split]) + recursive(leaves[split:])
    return blake2b(b"\x01" + both, digest_size=32).digest()


@pytest.mark.parametrize("size", [*range(20), 31, 32, 33, 100])
def test_the_tree_is_the_one_of_its_definition(size: int) -> None:
    leaves = [str(n).encode() for n in range(size)]
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root() == recursive(leaves).hex()


def test_an_inner_node_never_passes_for_a_leaf() -> None:
    whole, forged = MerkleTree(), MerkleTree()
    for leaf in (b"a", b"b"):
        whole.add(leaf)
    forged.add(b"".join(blake2b(b"\x00" + leaf, digest_size=32).digest() for leaf in (b"a", b"b")))
    assert whole.root() != forged.root()


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_no_two_sequences_of_parts_are_joined_to_the_same(one: list[str], other: list[str]) -> None:
    assert (sized(*one) == sized(*other)) == (one == other)


def test_a_chain_knows_the_order_of_its_lines() -> None:
    one, other = Chain(), Chain()
    for line in (b"a\n", b"b\n", b"c\n"):
        one.add(line)
    for line in (b"b\n", b"a\n", b"c\n"):
        other.add(line)
    assert one.root != other.root


# ---------------------------------------------------------------- what it is over


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A record and what came out for it."""

    id: str
    text: str
    verdict: Verdict


LABELS = ("hot", "cold")
VERDICTS: st.SearchStrategy[Verdict] = st.one_of(
    st.just(Unsure(reason="dim")),
    st.builds(Chosen, label=st.sampled_from(LABELS)),
    st.builds(
        Chosen,
        label=st.sampled_from(LABELS),
        quote=st.builds(Quote, text=st.text(max_size=3), start=st.just(0), end=st.just(3)),
    ),
)
RECORDS = st.lists(
    st.builds(
        Judged,
        id=st.text("abc", min_size=1, max_size=4),
        text=st.text("xyz", min_size=1, max_size=6),
        verdict=VERDICTS,
    ),
    min_size=1,
    max_size=9,
    unique_by=(lambda record: record.id, lambda record: record.text),
)


def root_of(records: Sequence[Judged], passes: int = 1) -> str:
    with TemporaryDirectory() as folder:
        source = open_source([(record.id, record.text) for record in records])
        with anyio.run(build_spool, source, Path(folder) / "spool") as spool:
            ledger = Ledger(len(spool), passes=passes, labels=LABELS)
            for parts in spool.parts(range(len(spool))):
                for part, record in zip(parts, records, strict=True):
                    for pass_index in range(passes):
                        ledger.add(part, pass_index, record.verdict)
            result = tally(spool, ledger, votes="any", judge="a judge")
            nodes = [(NodeId("root"), "count")]
            return content_root(result, question=ContentKey("q"), nodes=nodes)


@settings(max_examples=50)
@given(RECORDS, st.data())
def test_another_verdict_text_or_id_makes_another_root(
    records: list[Judged], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(records) - 1))
    was = records[place]
    change = data.draw(
        st.sampled_from(
            (
                replace(was, id=was.id + "d"),
                replace(was, text=was.text + "w"),
                replace(was, verdict=Unsure(reason="dim")),
                replace(was, verdict=Chosen(label="hot")),
                replace(was, verdict=Chosen(label="cold")),
                replace(was, verdict=Chosen(label="hot", quote=Quote(text="new!", start=0, end=4))),
            )
        )
    )
    changed = [*records[:place], change, *records[place + 1 :]]
    assert (root_of(changed) == root_of(records)) == (change == was)


@settings(max_examples=30)
@given(RECORDS)
def test_the_order_of_records_the_passes_and_the_reasons_are_not_in_it(
    records: list[Judged],
) -> None:
    shuffled = sorted(records, key=lambda record: blake2b(record.text.encode()).digest())
    reasoned = [
        replace(record, verdict=Unsure(reason="too dark", probability=0.4))
        if isinstance(record.verdict, Unsure)
        else record
        for record in shuffled
    ]
    assert root_of(reasoned, passes=3) == root_of(records)


def test_the_question_and_the_nodes_are_in_it(tmp_path: Path) -> None:
    with anyio.run(build_spool, open_source([("a", "text")]), tmp_path / "spool") as spool:
        result = tally(spool, Ledger(1, passes=1), votes="any", judge="a judge")
        roots = {
            content_root(result, question=ContentKey(question), nodes=[(NodeId(node), name)])
            for question in ("q", "r")
            for node in ("root", "root.1")
            for name in ("count", "judge")
        }
    assert len(roots) == 8


# ---------------------------------------------------------------- runs

RECORDS_OF_RUNS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(100)]


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


def root(outcome: CountOutcome | RecurseOutcome) -> str:
    found = outcome.receipts.content_root
    assert found is not None
    return found


@pytest.mark.anyio
async def test_a_resumed_and_a_shuffled_run_have_the_root_of_an_undisturbed_one(
    tmp_path: Path,
) -> None:
    whole = await count("fire?", RECORDS_OF_RUNS, model=judge(), run=tmp_path / "whole")
    run = tmp_path / "run"
    cut = await count("fire?", RECORDS_OF_RUNS, model=judge(), run=run, caps=Caps(calls=10))
    resumed = await resume(run, model=judge(), caps=Caps(calls=100))
    assert isinstance(resumed, Completed)
    shuffled = await count("fire?", RECORDS_OF_RUNS[::-1], model=judge(), run=run)
    back = await count("fire?", RECORDS_OF_RUNS, model=judge(), run=run)
    assert {root(one) for one in (resumed, shuffled, back)} == {root(whole)}
    assert root(cut) != root(whole)


@pytest.mark.anyio
async def test_manifest_and_receipt_state_the_roots(tmp_path: Path) -> None:
    outcome = await count("fire?", RECORDS_OF_RUNS, terms=("fire",), run=tmp_path / "run")
    receipts = outcome.receipts
    assert Manifest.load(tmp_path / "run").content_root == receipts.content_root
    assert receipts.load(tmp_path / "run") == receipts
    assert receipts.log_root == log_root(tmp_path / "run" / "events.jsonl")


@pytest.mark.anyio
async def test_a_run_without_a_result_has_no_content_root(tmp_path: Path) -> None:
    outcome = await count("fire?", [], terms=("fire",), run=tmp_path / "run")
    assert outcome.receipts.content_root is None
    assert outcome.receipts.log_root is not None
