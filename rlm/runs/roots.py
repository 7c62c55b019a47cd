"""The two roots of a run: what came out, whatever happened on the way, and what a session did.

`content_root` is one hash over what a count says: the question, the nodes that answered it, and for
each record its id, its text, its state, its label and its quote, in the order of hashed ids. No
time, cost, path, reason or order of passes is in it. So an undisturbed run, one that was killed and
resumed, one over the same records in another order and one on many machines have the same root,
and another verdict, text or id makes another one. A probability is in it where it is the result
itself, as in a ranking.

`log_root` is a chain over the lines of `events.jsonl`: it belongs to one session.

Neither is signed. Who can write the directory can write its roots: only a root that was published
elsewhere shows more than that the files fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import add
from pathlib import Path
from typing import Final, assert_never

import numpy as np
from numpy.typing import NDArray

from corpus.codes import FIRST_LABEL
from corpus.criterion import Criterion
from corpus.identity import DIGEST_SIZE
from corpus.results import Ranking, Tally, state_of
from corpus.spool import Spool
from corpus.verdicts import Quote
from executors.ids import ContentKey, NodeId
from rlm.runs.manifest import Manifest, question_of
from rlm.runs.merkle import Chain, MerkleTree, sized

__all__ = ["content_root", "criterion_of", "log_root", "result_root"]

_FORMAT: Final = b"rlm content 1"
_BATCH: Final = 1 << 14  # records at a time
_MATCHED: Final = sized("matched")


def content_root(
    result: Tally | Ranking, *, question: ContentKey, nodes: Iterable[tuple[NodeId, str]]
) -> str:
    """Return the hash over a result, 64 hex digits. Linear in the records, some MB at most.

    Args:
        question: key of what was asked.
        nodes: id and name of each node that has a part in the result.
    """
    tree = MerkleTree()
    tree.add(b"question" + sized(_FORMAT, question, str(result.records)))
    for node, name in sorted(nodes):
        tree.add(b"node" + sized(node, name))
    match result:
        case Tally():
            leaves = _verdicts(result)
        case Ranking():
            leaves = _scores(result)
        case _:
            assert_never(result)
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def criterion_of(manifest: Manifest) -> Criterion:
    """Return what a run judges."""
    description = manifest.options.get("description")
    return Criterion(
        question=question_of(manifest),
        description=description if isinstance(description, str) else None,
    )


def result_root(result: Tally | Ranking, criterion: Criterion) -> str:
    """Return the content root of a count: of what was asked, and of who judged.

    The nodes are those that a count has in any session. What a node of an earlier session was
    called, a killed process may have taken with it.
    """
    nodes = ((NodeId("root"), "count"), (NodeId("root.2"), f"judge by {result.judge}"))
    return content_root(result, question=criterion.key, nodes=nodes)


def log_root(path: Path) -> str:
    """Return the last link of the chain over the lines of a log."""
    chain = Chain()
    with path.open("rb") as lines:
        for line in lines:
            chain.add(line)
    return chain.root


def _verdicts(result: Tally) -> Iterator[bytes]:
    said = _said(result)
    quotes, first = result.ledger.quotes, result.spool.representative
    for ordinals, heads in _records(result.spool):
        verdicts = [said[code] for code in result.codes[ordinals].tolist()]
        if not quotes:
            yield from map(add, heads, verdicts)
            continue
        judged = first[ordinals].tolist()
        for head, verdict, ordinal in zip(heads, verdicts, judged, strict=True):
            quote = quotes.get(ordinal) if verdict.startswith(_MATCHED) else None
            yield head + verdict + _quoted(quote)


def _said(result: Tally) -> dict[int, bytes]:
    """Return what each final code says: the state, and the label by its name."""
    labels = result.ledger.labels
    codes: list[int] = np.unique(result.codes).tolist()
    return {
        code: sized(state_of(code), labels[code - FIRST_LABEL] if code >= FIRST_LABEL else "")
        for code in codes
    }


def _quoted(quote: Quote | None) -> bytes:
    return b"" if quote is None else sized(quote.text, str(quote.start), str(quote.end))


def _scores(result: Ranking) -> Iterator[bytes]:
    for ordinals, heads in _records(result.spool):
        # As many digits as receipts show: the last ones differ between processors.
        scores = [f"{score:.4f}" for score in result.scores[ordinals].tolist()]
        yield from (head + sized("score", score) for head, score in zip(heads, scores, strict=True))


def _records(spool: Spool) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
    """Yield ordinals and hashes of ids and texts, some thousand at a time, in the order of ids."""
    for start in range(0, len(spool), _BATCH):
        ordinals = spool.by_id[start : start + _BATCH].astype(np.int64)
        both = np.concatenate((spool.id_digests[ordinals], spool.digests[ordinals]), axis=1)
        raw = both.tobytes()
        size = 2 * DIGEST_SIZE
        yield ordinals, [b"record" + raw[at : at + size] for at in range(0, len(raw), size)]
