"""Forgets one record of a run: its text, what was said about it, and what was computed from it.

What stays is that there was a record with this id, and that it was forgotten. It then counts as left
out, also when the corpus is read again. A forgetting that dies half way is asked for again: what
tells where the text still is goes last.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from corpus.codes import LEFT_OUT, Codes
from corpus.identity import normal_id
from corpus.judges.head import Head
from corpus.results import Ranking, Tally, assemble, ranked_by_probability
from corpus.spool import Spool
from corpus.tally_file import drop_result, load_result, save_ranking, save_tally
from executors.errors import RlmError, RunDirError, ValidationError
from executors.ids import NodeId
from executors.journal.forget import forget as forget_calls
from executors.journal.lock import RunLock
from executors.models.encoders.cache import default_cache_path, forget_vectors
from executors.models.encoders.load import ENCODERS, MAX_WORDS, load_encoder
from rlm.events import RecordForgotten, event_line
from rlm.receipts.receipts import ReceiptFold
from rlm.runs.exports import exports_of
from rlm.runs.foreign import refuse_links
from rlm.runs.history import cut_torn_tail, read_events
from rlm.runs.home import write_atomically
from rlm.runs.label_file import keep_labels, kept_labels
from rlm.runs.manifest import Manifest
from rlm.runs.roots import criterion_of, log_root, result_root
from rlm.runs.spools import SPOOL, erase_ids, settle_spool
from rlm.runs.traces import ERASED, Traces, calls_that_tell, rewrite_log
from rlm.summary import summarise

__all__ = ["Forgetting", "forget_record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What was erased, and what was left."""

    id: str
    same_text: int
    """Other records with the same text: it stays with them."""
    notes: int
    """Verdicts in the journal."""
    answers: int
    """Answers and failures whose texts were erased from it."""
    events: int
    labels: int
    head: bool
    """The head that was taught by it went too."""
    vectors: int
    """Entries of the cache of embeddings."""
    exports: tuple[Path, ...]
    """Files with rows of this run: they are not changed."""
    source: str | None
    """Where the corpus was read from: it is not changed."""


def forget_record(
    directory: Path, record: str, *, now: datetime, cache: Path | None = None
) -> Forgetting:
    """Erase one record of a run. Blocking; the run must not be in use.

    Args:
        record: its id.
        cache: the file of embeddings; None takes the user's.

    Raises:
        RunDirError: it is no run, somebody works on it, or it holds no records.
        ValidationError: it holds no such record.
        OutputError: something could not be erased; ask again when that is mended.
    """
    refuse_links(directory)
    manifest = Manifest.load(directory)
    if manifest.kind == "recurse":
        raise RunDirError(
            f"the run in {str(directory)!r} is a recursion: its workers may have quoted the record in "
            "any of their answers",
            hint="delete the run as a whole, with its directory",
        )
    lock = RunLock(directory)
    lock.take()
    try:
        settle_spool(directory)
        return _Forgetter(directory, manifest, now).forget(record, cache or default_cache_path())
    finally:
        lock.release()


class _Forgetter:
    def __init__(self, directory: Path, manifest: Manifest, now: datetime) -> None:
        self._directory = directory
        self._manifest = manifest
        self._now = now

    def forget(self, record: str, cache: Path) -> Forgetting:
        """Erase; the spool comes last, since it alone knows the text."""
        with self._opened() as spool:
            ordinal = _find(spool, record)
            id_, text = spool.id(ordinal), spool.record(ordinal).text
            again = ordinal in spool.forgotten
            others = _same_text(spool, ordinal)
            digest = spool.digest(ordinal)
        self._remember(id_)
        # What other records say too stays with them, wherever it stands.
        text = "" if others else text
        tells = Traces(text)
        calls = calls_that_tell(self._directory, tells)
        gone = forget_calls(self._directory, set() if others else {digest}, calls=calls)
        encoders = _encoders(self._directory, self._manifest)
        vectors = forget_vectors(cache, [text], encoders) if text else 0
        labels, head = self._unlabel(id_)
        events = 0 if again else self._rewrite_log(tells, 1 + self._manifest.forgotten.index(id_))
        self._settle(ordinal, _heir(ordinal, others), tells)
        source = self._manifest.source
        return Forgetting(
            id=id_,
            same_text=len(others),
            notes=gone.notes,
            answers=gone.answers,
            events=events,
            labels=labels,
            head=head,
            vectors=vectors,
            exports=exports_of(self._directory),
            source=None if source is None else source.source,
        )

    def _opened(self) -> Spool:
        if not (self._directory / SPOOL / "meta.json").exists():
            raise RunDirError(
                f"the run in {str(self._directory)!r} holds no records",
                hint="its corpus was never read to the end: nothing has to be forgotten",
            )
        return Spool.open(self._directory / SPOOL)

    def _remember(self, id_: str) -> None:
        """Note the id first of all: from now on its text is erased whenever the corpus is read."""
        if id_ not in self._manifest.forgotten:
            forgotten = (*self._manifest.forgotten, id_)
            self._manifest = self._manifest.model_copy(update={"forgotten": forgotten})
            self._manifest.save(self._directory)

    def _unlabel(self, id_: str) -> tuple[int, bool]:
        """Drop the labels of a record, and the head that was taught by them."""
        labels = kept_labels(self._directory)
        left = [label for label in labels if normal_id(label.id) != normal_id(id_)]
        if len(left) == len(labels):
            return 0, False
        keep_labels(self._directory, left)
        head = self._directory / "head.json"
        taught = head.exists()
        head.unlink(missing_ok=True)
        return len(labels) - len(left), taught

    def _rewrite_log(self, tells: Traces, number: int) -> int:
        log = self._directory / "events.jsonl"
        cut_torn_tail(log)
        said = RecordForgotten(node=NodeId("root"), at=self._now, number=number)
        return rewrite_log(log, tells, last=event_line(said))

    def _settle(self, ordinal: int, heir: int | None, tells: Traces) -> None:
        """Erase the text itself, and put the result and the receipt on what is left."""
        verdicts = self._directory / "verdicts"
        found: Tally | Ranking | None = None
        with self._opened() as spool:
            try:
                found = load_result(verdicts, spool)
            except RunDirError:  # of a forgetting that died right here; a resume makes it anew
                drop_result(verdicts)
            id_ = spool.id(ordinal)
        erase_ids(self._directory, [id_])
        with self._opened() as spool:
            match found:
                case None:
                    result: Tally | Ranking | None = None
                case Tally():
                    result = _without(found, spool, ordinal, heir, tells)
                    save_tally(result, verdicts)
                case Ranking():
                    scores = found.scores.copy()
                    scores[ordinal] = np.nan
                    result = replace(found, spool=spool, scores=scores)
                    save_ranking(result, verdicts)
            self._receipt(result)

    def _receipt(self, result: Tally | Ranking | None) -> None:
        """Fold the receipt anew from what is left of the log, where the run has one."""
        path = self._directory / "receipt.json"
        if not path.exists():
            return
        log = self._directory / "events.jsonl"
        fold = ReceiptFold()
        for event in read_events(log):
            fold(event)
        blocker = fold.receipts(self._directory, {}).blocker
        if isinstance(result, Tally) and blocker == "uncalibrated-judge":
            result = ranked_by_probability(result)
        root = None if result is None else result_root(result, criterion_of(self._manifest))
        receipts = fold.receipts(
            self._directory, summarise(result), content_root=root, log_root=log_root(log)
        )
        write_atomically(path, receipts.to_json())
        self._manifest.model_copy(update={"content_root": root}).save(self._directory)


def _find(spool: Spool, record: str) -> int:
    ordinal = spool.find(record)
    if ordinal is None:
        raise ValidationError(
            f"the run has no record {record!r}",
            hint="list some with: rlm show RUN --state matched, or all with --out FILE",
        )
    return ordinal


def _same_text(spool: Spool, ordinal: int) -> list[int]:
    """Return the other records with the text of one; none where it has no text."""
    if spool.is_empty[ordinal]:
        return []
    same = np.flatnonzero(spool.representative == spool.representative[ordinal])
    return [int(other) for other in same if other != ordinal]


def _heir(ordinal: int, others: list[int]) -> int | None:
    """Return who stands for a text from now on, where this record did."""
    first = min(others, default=-1)
    return first if first > ordinal else None


def _without(result: Tally, spool: Spool, ordinal: int, heir: int | None, tells: Traces) -> Tally:
    """Return a tally in which one record is left out."""
    ledger = result.ledger
    ledger.forget(ordinal, heir, tells)
    codes: Codes = result.codes.copy()
    codes[ordinal] = LEFT_OUT
    return assemble(
        spool,
        ledger,
        codes,
        votes=result.votes,
        judge=result.judge,
        by_person={n: who for n, who in result.by_person.items() if n != ordinal},
        notes=tuple(ERASED if tells(note) else note for note in result.notes),
    )


def _encoders(directory: Path, manifest: Manifest) -> set[tuple[str, str, int]]:
    """Return name, version and words of the encoders that may have seen the texts of a run."""
    found: set[tuple[str, str]] = set()
    with suppress(OSError, ValidationError):
        origin = Head.from_json((directory / "head.json").read_bytes()).origin
        found.add((origin.encoder, origin.encoder_version))
    for name in ENCODERS:
        with suppress(RlmError):  # it is not installed here, so it made nothing here
            encoder = load_encoder(f"encoder:{name}")
            found.add((encoder.name, encoder.version))
            encoder.close()
    given = manifest.options.get("words")
    words = {MAX_WORDS, given if isinstance(given, int) else MAX_WORDS}
    return {(name, version, number) for name, version in found for number in words}
