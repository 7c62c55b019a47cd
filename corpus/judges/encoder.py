"""The encoder judge: one pooled vector a record under a calibrated head, and the ranking without one.

It decides at a calibrated probability of one half and is never unsure. It reads the first words of
a record only, and says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from corpus.judges.base import JudgeInfo, Window
from corpus.judges.head import Head
from corpus.questions import YES, Question, YesNo
from corpus.verdicts import Chosen, Matched, NotMatched, Verdict
from corpus.windows import Readable
from executors.ids import content_key
from executors.models.encoders.load import Encoder

__all__ = ["EncoderJudge", "cut_note", "is_longer", "rank"]

_BATCH: Final = 64

Scores = NDArray[np.float32]


class EncoderJudge:
    """Judges by the head's probability of each record's vector."""

    def __init__(self, encoder: Encoder, head: Head, question: Question, *, labels: int) -> None:
        self._encoder = encoder
        self._head = head
        self._question = question
        self._cut = 0
        self._info = JudgeInfo(
            kind="encoder",
            name=f"encoder {encoder.name}, head taught by {labels} labels",
            identity=content_key(encoder.name, encoder.version, head.to_json()),
            deterministic=True,
            scoring=True,
            pools=True,
            window=_BATCH,
        )

    @property
    def info(self) -> JudgeInfo:
        """Constant for the life of the judge."""
        return self._info

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the count has to know of what was read so far."""
        return cut_note(self._cut, self._encoder.max_words)

    async def judge(self, window: Window) -> Sequence[Verdict]:
        """Return a verdict with its calibrated probability for each record."""
        texts = [part.text for part in window.items]
        self._cut += sum(is_longer(text, self._encoder.max_words) for text in texts)
        vectors = await anyio.to_thread.run_sync(self._encoder.encode, texts)
        return [self._verdict(row) for row in self._head.probabilities(vectors)]

    def _verdict(self, row: NDArray[np.float64]) -> Verdict:
        classes = self._head.classes
        if isinstance(self._question, YesNo):
            yes = float(row[classes.index(YES)])
            return Matched(probability=yes) if yes >= 0.5 else NotMatched(probability=yes)
        best = int(np.argmax(row))
        return Chosen(label=classes[best], probability=float(row[best]))


def is_longer(text: str, words: int) -> bool:
    """Return whether a text has more words than that."""
    return len(text) > words and len(text.split(None, words)) > words


def cut_note(cut: int, words: int) -> tuple[str, ...]:
    """Say how many texts were not read to their end; nothing when all were."""
    if not cut:
        return ()
    return (
        f"{cut:,} text(s) are longer than the first {words} words, which is what the encoder read",
    )


async def rank(
    source: Readable,
    ordinals: NDArray[np.uint32],
    encoder: Encoder,
    description: str,
    *,
    on_batch: Callable[[int], None],
) -> tuple[Scores, tuple[str, ...]]:
    """Return the cosine of each record to a description, in the order of `ordinals`, and notes.

    Args:
        on_batch: called with the number of records of each finished batch.
    """
    query = (await anyio.to_thread.run_sync(encoder.encode, [description]))[0]
    scores = np.empty(len(ordinals), dtype=np.float32)
    cut = 0
    for start in range(0, len(ordinals), _BATCH):
        some = ordinals[start : start + _BATCH].tolist()
        texts = [part.text for parts in source.parts(some) for part in parts]
        cut += sum(is_longer(text, encoder.max_words) for text in texts)
        vectors = await anyio.to_thread.run_sync(encoder.encode, texts)
        scores[start : start + len(texts)] = vectors @ query
        on_batch(len(texts))
    return scores, cut_note(cut, encoder.max_words)
