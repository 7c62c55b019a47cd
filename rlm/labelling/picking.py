"""Which records a person is asked about: spread over the corpus first, then where the head is unsure.

Labels that were chosen are no fair sample, so each comes with a weight that the head calibrates by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, assert_never

import numpy as np
from numpy.typing import NDArray

from corpus.judges.head import HeadOrigin, fit_head, label_shortage
from corpus.judges.sampling import Sample, by_score, spread, uncertain
from corpus.questions import OneOf, YesNo, classes_of
from corpus.scan import distinct
from executors.models.encoders.load import Vectors
from rlm.labelling.session import Picked
from rlm.labels import LabelSetting

__all__ = ["Picker"]

# Records that are embedded before the first question: some twenty seconds with the default encoder.
_POOL: Final = 2_000
_BATCH: Final = 64
_SEED: Final = 0


class Picker:
    """Chooses records one after another; a `Pick`. The same labels lead to the same choices.

    Args:
        goal: labels wanted in all; half of them are spread.
        description: what a match looks like, for classes too rare to have met; the question if None.
        on_batch: is told how many records were embedded, and of how many, while that goes on.
    """

    def __init__(
        self,
        setting: LabelSetting,
        *,
        goal: int,
        description: str | None = None,
        on_batch: Callable[[int, int], None] | None = None,
    ) -> None:
        self._setting = setting
        self._goal = goal
        self._description = description or setting.question.text
        self._on_batch = on_batch
        self._pool = _pool_of(setting)
        self._row_of = {ordinal: row for row, ordinal in enumerate(self._pool)}
        self._vectors: Vectors | None = None
        self._drawn: list[Picked] = []
        self._draws = 0

    def __call__(self, labels: Mapping[int, str], skipped: frozenset[int]) -> Picked | None:
        """Return the next record that has no label and was not skipped, None when none is left."""
        taken = labels.keys() | skipped
        while True:
            for picked in self._drawn:
                if picked.ordinal not in taken:
                    return picked
            free = len(self._pool) - len(taken & self._row_of.keys())
            if not free:
                return None
            sample = self._draw(labels, taken, free)
            self._drawn = [
                Picked(ordinal=self._pool[row], weight=weight)
                for row, weight in zip(sample.rows, sample.weights, strict=True)
            ]
            self._draws += 1

    def _draw(self, labels: Mapping[int, str], taken: set[int], free: int) -> Sample:
        if self._draws == 0:
            count = max(1, min(len(self._pool), (self._goal + 1) // 2))
            return spread(self._embedded(), count, seed=_SEED)
        count = max(1, min(free, self._goal - len(labels)))
        rows = {self._row_of[ordinal] for ordinal in taken if ordinal in self._row_of}
        classes = classes_of(self._setting.question)
        if label_shortage(list(labels.values()), classes) is None:
            chances = self._chances(labels, classes)
            return uncertain(chances, count, seed=self._draws, taken=rows)
        match self._setting.question:
            case YesNo():
                likeness = self._embedded() @ self._setting.encoder.encode([self._description])[0]
                return by_score(likeness.astype(np.float64), count, seed=self._draws, taken=rows)
            case OneOf():
                return self._anywhere(rows, count)
            case _:
                assert_never(self._setting.question)

    def _anywhere(self, taken: set[int], count: int) -> Sample:
        left = [row for row in range(len(self._pool)) if row not in taken]
        rows = Random(self._draws).sample(left, count)
        return Sample(rows=tuple(rows), weights=(len(left) / count,) * count)

    def _chances(self, labels: Mapping[int, str], classes: Sequence[str]) -> NDArray[np.float64]:
        encoder = self._setting.encoder
        ordinals = sorted(labels)
        records = self._setting.spool.read(ordinals)
        head = fit_head(
            encoder.encode([record.text for record in records]),
            [labels[ordinal] for ordinal in ordinals],
            classes,
            seed=_SEED,
            origin=HeadOrigin(encoder=encoder.name, encoder_version=encoder.version),
        )
        return head.probabilities(self._embedded())

    def _embedded(self) -> Vectors:
        if self._vectors is None:
            parts: list[Vectors] = []
            for start in range(0, len(self._pool), _BATCH):
                records = self._setting.spool.read(self._pool[start : start + _BATCH])
                parts.append(self._setting.encoder.encode([record.text for record in records]))
                if self._on_batch is not None:
                    self._on_batch(len(records), len(self._pool))
            self._vectors = np.concatenate(parts)
        return self._vectors


def _pool_of(setting: LabelSetting) -> list[int]:
    every: list[int] = distinct(setting.spool).tolist()
    if len(every) <= _POOL:
        return every
    return sorted(Random(setting.spool.fingerprint).sample(every, _POOL))
