"""Teaching the encoder's head: labels gathered, a head fitted, its quality said."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from corpus.judges.encoder import EncoderJudge
from corpus.judges.head import Head, HeadOrigin, fit_head, labels_hash
from corpus.questions import Question, classes_of
from corpus.spool import Spool
from executors.errors import LabelsError, ValidationError
from executors.ids import content_key
from rlm.corpora import Corpus
from rlm.labelling.file import read_labels
from rlm.labels import Label, LabelSetting, Taught
from rlm.options.options import CountOptions

if TYPE_CHECKING:
    from executors.models.encoders.load import Encoder

__all__ = ["Lesson", "gather_labels", "taught_judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A judge that was taught, and what its reader has to know."""

    judge: EncoderJudge
    head_json: str
    said: tuple[str, ...]
    warnings: tuple[str, ...]


async def gather_labels(
    options: CountOptions,
    corpus: Corpus | None,
    spool: Spool,
    question: Question,
    encoder: Encoder | None,
) -> tuple[Label, ...]:
    """Return the labels that were given, and those of a person who is asked now.

    Raises:
        LabelsError: a file cannot be read.
        SourceError: a column is not there.
    """
    known = await anyio.to_thread.run_sync(_given, options, corpus)
    if options.labels is not None and not known and options.ask_labels is None:
        raise LabelsError(
            f"labels={options.labels!r} holds no label",
            hint="give labels, or leave them out to have the records ranked",
        )
    if options.ask_labels is None:
        return known
    if encoder is None:
        raise LabelsError(
            "labels are asked for to teach the encoder, and this count has another judge",
            hint="leave --label out, or count with the encoder",
        )
    setting = LabelSetting(spool=spool, question=question, encoder=encoder, known=known)
    return tuple(await anyio.to_thread.run_sync(options.ask_labels, setting))


def _given(options: CountOptions, corpus: Corpus | None) -> tuple[Label, ...]:
    labels = options.labels
    match labels:
        case None:
            return ()
        case tuple():
            return labels
        case Mapping():
            return tuple(
                Label(id=_spelled(id_), label=_spelled(label)) for id_, label in labels.items()
            )
        case str() | os.PathLike():
            path = Path(labels)
            if path.exists() or path.suffix or os.sep in str(path):
                return tuple(read_labels(path))
            return _column(corpus, str(labels))


def _spelled(value: object) -> str:
    """Spell an id or a label of a mapping as files do: numbers by their digits, truth in words."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _column(corpus: Corpus | None, name: str) -> tuple[Label, ...]:
    if corpus is None:
        raise LabelsError(
            f"labels cannot come from the column {name!r}: the corpus is not read again",
            hint="give the corpus too, or labels as a file or a mapping",
        )
    records = corpus.column(name).records()
    if isinstance(records, AsyncIterator):
        raise LabelsError(
            f"labels cannot come from the column {name!r} of an async source",
            hint="give them as a mapping or a file",
        )
    return tuple(
        Label(id=record.id, label=record.text.strip(), by=f"column {name}")
        for record in records
        if record.text.strip()
    )


def taught_judge(
    encoder: Encoder,
    spool: Spool,
    question: Question,
    taught: Taught,
    *,
    kept: Path | None = None,
) -> Lesson:
    """Fit a head on the labelled records and wrap it as a judge. Blocking.

    Args:
        kept: the head of an earlier session. Where the lesson is the same it is taken over: another
            processor, or another order of the records, would fit one that differs in its last
            digits, and so in a verdict here and there.

    Raises:
        LabelsError: too few labels, or all of one class.
    """
    texts = _distinct(spool, taught)
    ids = [record.id for record in spool.read(sorted(taught.classes))]
    given = [taught.classes[n] for n in sorted(taught.classes)]
    origin = HeadOrigin(
        encoder=encoder.name,
        encoder_version=encoder.version,
        labels_hash=labels_hash(zip(ids, given, strict=True)),
        created_by=", ".join(sorted(set(taught.by.values()))),
        lesson=_lesson(spool, texts),
    )
    head = None if kept is None else _kept_head(kept, origin, classes_of(question))
    if head is None:
        head = fit_head(
            encoder.encode([record.text for record in spool.read(texts.ordinals)]),
            texts.classes,
            classes_of(question),
            seed=0,
            origin=origin,
            weights=texts.weights,
        )
    judge = EncoderJudge(encoder, head, question, labels=len(given))
    same = len(given) - len(texts.ordinals)
    said = [str(head.quality)]
    if same:
        said.append(f"{len(given)} labels stand on {len(texts.ordinals)} distinct texts")
    warnings = [*texts.warnings, *head.warnings]
    return Lesson(judge=judge, head_json=head.to_json(), said=tuple(said), warnings=tuple(warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """Labelled texts, each once: a text in two folds would be tested on what it was taught."""

    ordinals: list[int]
    classes: list[str]
    weights: list[float] | None
    """How many records each stands for; None where all stand for one."""
    warnings: list[str]


def _lesson(spool: Spool, texts: _Texts) -> str:
    weights = texts.weights or [1.0] * len(texts.ordinals)
    lines = zip(texts.ordinals, texts.classes, weights, strict=True)
    parts = sorted((spool.digest(n).hex(), name, repr(weight)) for n, name, weight in lines)
    return content_key(*chain.from_iterable(parts))


def _kept_head(path: Path, origin: HeadOrigin, classes: tuple[str, ...]) -> Head | None:
    """Return the head of a file, where this very lesson taught it."""
    try:
        head = Head.from_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return head if head.origin == origin and head.classes == classes else None


def _distinct(spool: Spool, taught: Taught) -> _Texts:
    labelled = sorted(taught.classes)
    weights = _weights(labelled, taught.weights) or [1.0] * len(labelled)
    classes: dict[int, str] = {}
    total: dict[int, float] = {}
    torn: set[int] = set()
    for ordinal, weight in zip(labelled, weights, strict=True):
        first = int(spool.representative[ordinal])
        if classes.setdefault(first, taught.classes[ordinal]) != taught.classes[ordinal]:
            torn.add(first)
        total[first] = total.get(first, 0.0) + weight
    warnings = [f"{len(torn)} text(s) are labelled in two ways; the first label taught"]
    return _Texts(
        ordinals=list(classes),
        classes=list(classes.values()),
        weights=list(total.values()) if len(set(total.values())) > 1 else None,
        warnings=warnings if torn else [],
    )


def _weights(ordinals: Sequence[int], known: Mapping[int, float]) -> list[float] | None:
    """Return what each label stands for; one without a weight among others stands for the mean."""
    found = [known[ordinal] for ordinal in ordinals if ordinal in known]
    if not found:
        return None
    mean = sum(found) / len(found)
    return [known.get(ordinal, mean) for ordinal in ordinals]
