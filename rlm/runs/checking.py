"""Checks a run against itself: do its files say the same, down to the texts?

Nothing is asked, and nothing is changed. What fits together is consistent; whether it is what once
happened can only be said against a root that was published elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpus.codes import EMPTY, LEFT_OUT
from corpus.identity import DIGEST_SIZE, digest_of
from corpus.records import is_blank
from corpus.repeats import fingerprint, first_of_each, sorted_order
from corpus.results import Ranking, Tally, ranked_by_probability
from corpus.spool import Spool
from corpus.tally_file import load_result
from executors.errors import RunDirError
from rlm.receipts.receipts import Receipts
from rlm.runs.foreign import refuse_links
from rlm.runs.manifest import Manifest
from rlm.runs.merkle import Chain
from rlm.runs.roots import criterion_of, result_root
from rlm.summary import summarise

__all__ = [
    "Checked",
    "RunCheck",
    "check_roots",
    "is_the_same",
    "record_differences",
    "vote_differences",
]

_BATCH = 4_096  # records at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found."""

    content_root: str | None
    """As it comes out of the files; None where they hold no result."""
    differences: tuple[str, ...]
    """What does not fit, as sentences; none where all does."""
    notes: tuple[str, ...] = ()
    """What is as it should be, and good to know."""

    @property
    def consistent(self) -> bool:
        """All files say the same."""
        return not self.differences


def check_roots(directory: Path, kind: type[RunCheck] | None = None) -> Checked:
    """Compute the roots of a run from its files, and compare what these say of each other.

    Reads each record once, some thousand at a time.

    Args:
        kind: how a result is checked; None is that of a count.

    Raises:
        RunDirError: it is no run that ended, or it was made elsewhere and holds links.
    """
    refuse_links(directory)
    manifest = Manifest.load(directory)
    try:
        receipts = Receipts.load(directory)
    except (OSError, ValueError, TypeError) as error:
        raise RunDirError(
            f"the run in {str(directory)!r} holds no receipt to check", where=str(error)
        ) from None
    check = (kind or RunCheck)(directory, manifest, receipts)
    differences = tuple(check.differences())
    return Checked(
        content_root=check.content_root, differences=differences, notes=tuple(check.notes)
    )


class RunCheck:
    """Looks for what does not fit in the files of one run; of a count, and its parts of any."""

    def __init__(self, directory: Path, manifest: Manifest, receipts: Receipts) -> None:
        self._directory = directory
        self._manifest = manifest
        self._receipts = receipts
        self.content_root: str | None = None
        self.notes: list[str] = []

    def differences(self) -> Iterator[str]:
        """Yield what does not fit."""
        if self._manifest.content_root != self._receipts.content_root:
            yield "manifest.json and receipt.json state different content roots"
        yield from self._log()
        yield from self._contents()

    def _contents(self) -> Iterator[str]:
        if not (self._directory / "spool" / "meta.json").exists():
            if self._receipts.content_root is not None:
                yield "the receipt states a content root, and there are no records"
            return
        try:
            with Spool.open(self._directory / "spool") as spool:
                yield from record_differences(spool)
                yield from self._result(spool)
        except (RunDirError, OSError, ValueError, LookupError) as error:
            yield f"the result cannot be read: {error}"

    def _log(self) -> Iterator[str]:
        """Look for the log's root among the links of the chain; more may have been added since."""
        chain, wanted = Chain(), self._receipts.log_root
        later = 0
        found = False
        try:
            with (self._directory / "events.jsonl").open("rb") as lines:
                for line in lines:
                    chain.add(line)
                    later += found
                    found = found or chain.root == wanted
        except OSError as error:
            yield f"events.jsonl cannot be read: {error.strerror}"
            return
        if not found:
            yield "events.jsonl is not the log of which the receipt states the root"
        elif later:
            self.notes.append(f"{later:,} event(s) came after the session of the receipt")

    def _result(self, spool: Spool) -> Iterator[str]:
        result = self._load(spool)
        if result is None:
            if self._receipts.content_root is not None:
                yield "the receipt states a content root, and there is no result"
            return
        if isinstance(result, Tally):
            yield from vote_differences(result)
        self.content_root = result_root(result, criterion_of(self._manifest))
        if self.content_root != self._receipts.content_root:
            yield "records and verdicts have another content root than the receipt states"
        if not is_the_same(summarise(result), self._receipts.result):
            yield "records and verdicts give another result than the receipt states"

    def _load(self, spool: Spool) -> Tally | Ranking | None:
        found = load_result(self._directory / "verdicts", spool)
        ranks = self._receipts.blocker == "uncalibrated-judge"
        return ranked_by_probability(found) if ranks and isinstance(found, Tally) else found


def is_the_same(one: object, other: object) -> bool:
    """Whether two values are the same once JSON has brought them back."""
    return bool(json.loads(json.dumps(one)) == json.loads(json.dumps(other)))


def record_differences(spool: Spool) -> Iterator[str]:
    """Yield where the tables of a spool do not fit its records."""
    wrong_ids = wrong_texts = wrong_blanks = 0
    for start in range(0, len(spool), _BATCH):
        some = range(start, min(start + _BATCH, len(spool)))
        ids, texts = spool.id_digests[some.start : some.stop], spool.digests[some.start : some.stop]
        records = spool.read(some)
        wrong_ids += _unlike(ids.tobytes(), b"".join([digest_of(one.id) for one in records]))
        wrong_texts += _unlike(texts.tobytes(), b"".join([digest_of(one.text) for one in records]))
        blank = np.array([is_blank(one.text) for one in records], dtype=np.bool_)
        wrong_blanks += int((blank != spool.is_empty[some.start : some.stop]).sum())
    for count, what in (
        (wrong_ids, "have another id than when they were read"),
        (wrong_texts, "have another text than when they were read"),
        (wrong_blanks, "are empty, or are not, and the spool says otherwise"),
    ):
        if count:
            yield f"{count:,} record(s) {what}"
    order, _ = sorted_order(spool.id_digests)
    if not np.array_equal(order, spool.by_id):
        yield "the spool's order of ids is another one"
    by_text, repeats = sorted_order(spool.digests)
    if not np.array_equal(first_of_each(by_text, repeats), spool.representative):
        yield "the spool's table of identical texts is another one"
    if fingerprint(order, spool.id_digests, spool.digests) != spool.fingerprint:
        yield "the spool's fingerprint is that of other records"


def _unlike(one: bytes, other: bytes) -> int:
    """Return how many digests differ."""
    kind = np.dtype(f"V{DIGEST_SIZE}")
    return int((np.frombuffer(one, dtype=kind) != np.frombuffer(other, dtype=kind)).sum())


def vote_differences(result: Tally) -> Iterator[str]:
    """Yield where the final states are not those that the passes give."""
    judged = result.ledger.codes(result.votes)[result.spool.representative]
    same = (judged == result.codes) | (result.codes == EMPTY) | (result.codes == LEFT_OUT)
    same[list(result.by_person)] = True
    if count := int((~same).sum()):
        yield f"{count:,} record(s) have another state than the votes of their passes give"
    if (result.codes == EMPTY).sum() != (result.spool.is_empty & (result.codes != LEFT_OUT)).sum():
        yield "some records are counted as empty that are not, or the other way round"
