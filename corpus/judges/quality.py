"""How good a head is, measured on labels that it had not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corpus.judges.softmax import Numbers

__all__ = ["HeadQuality", "Measure", "area", "measure"]

_BINS: Final = 10
_GROUPS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.error:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadQuality:
    """Quality by cross-validation: each label is judged by a head and a calibration without it.

    For two classes precision, recall, F1 and AUC are those of the first class; for more they are means
    over the classes. None: undefined, since nothing was judged positive, or a class has no label.
    """

    labels: int
    """Labels it was measured on."""
    folds: int
    accuracy: Measure
    majority: float
    """Accuracy of always saying the most frequent class."""
    precision: Measure | None
    recall: Measure | None
    f1: Measure | None
    auc: Measure | None
    """Area under the ROC curve: how often a match is ranked above a non-match."""
    brier: float
    """Mean squared error of the probabilities, summed over the classes; 0 is perfect."""
    calibration_error: float
    """Expected calibration error of the chosen class, in ten bins; rough below 100 labels."""

    def __str__(self) -> str:
        named = {
            "accuracy": self.accuracy,
            "precision": self.precision,
            "recall": self.recall,
            "F1": self.f1,
            "AUC": self.auc,
        }
        shown = ", ".join(f"{name} {value or 'undefined'}" for name, value in named.items())
        return f"cross-validated on {self.labels} labels: {shown}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judged:
    """Held-out probabilities beside the truth; `weight` tells how much each label stands for."""

    probabilities: Numbers
    margins: Numbers
    """By how much a class leads the others; ranks within a class."""
    truth: Numbers
    """One-hot, shape (labels, classes)."""
    weight: Numbers

    def without(self, first: int, step: int) -> _Judged:
        kept = np.ones(len(self.truth), dtype=bool)
        kept[first::step] = False
        return _Judged(
            probabilities=self.probabilities[kept],
            margins=self.margins[kept],
            truth=self.truth[kept],
            weight=self.weight[kept],
        )

    @property
    def chosen(self) -> Numbers:
        hot = np.zeros_like(self.truth)
        hot[np.arange(len(hot)), self.probabilities.argmax(axis=1)] = 1.0
        return hot

    @property
    def positives(self) -> range:
        """Classes to average over: the first of two, or all."""
        return range(1 if self.truth.shape[1] == 2 else self.truth.shape[1])


def measure(
    probabilities: Numbers, margins: Numbers, truth: Numbers, weight: Numbers, *, folds: int
) -> HeadQuality:
    """Measure held-out probabilities, shape (labels, classes), against one-hot truth.

    Args:
        margins: what the area is taken of. Probabilities serve where one fit made them all; those of
            many folds do not compare, since each fold has its own base rate.
        weight: how many records each label stands for, in proportion.
    """
    judged = _Judged(probabilities=probabilities, margins=margins, truth=truth, weight=weight)
    shares = (truth * weight[:, None]).sum(axis=0) / weight.sum()
    return HeadQuality(
        labels=len(truth),
        folds=folds,
        accuracy=_proportion(_accuracy(judged), weight),
        majority=float(shares.max()),
        precision=_jackknifed(_precision, judged),
        recall=_jackknifed(_recall, judged),
        f1=_jackknifed(_f1, judged),
        auc=_jackknifed(_auc, judged),
        brier=float(np.average(((probabilities - truth) ** 2).sum(axis=1), weights=weight)),
        calibration_error=_calibration_error(judged),
    )


def area(score: Numbers, is_match: NDArray[np.bool_], weight: Numbers) -> float | None:
    """Return the area under the ROC curve: the share of (match, non-match) pairs in the right order.

    Ties count half. None when one of the two is missing.
    """
    if is_match.all() or not is_match.any():
        return None
    others = score[~is_match]
    order = np.argsort(others)
    heavy = np.concatenate([[0.0], np.cumsum(weight[~is_match][order])])
    below = heavy[np.searchsorted(others[order], score[is_match], side="left")]
    upto = heavy[np.searchsorted(others[order], score[is_match], side="right")]
    return float(np.average((below + upto) / 2, weights=weight[is_match]) / heavy[-1])


def _proportion(value: float, weight: Numbers) -> Measure:
    """Give a share its error after Agresti and Coull (1998), which is above 0 for 0 % and 100 %."""
    size = float(weight.sum() ** 2 / (weight**2).sum())
    centre = (value * size + 2) / (size + 4)
    return Measure(value=value, error=sqrt(centre * (1 - centre) / (size + 4)))


def _jackknifed(figure: Callable[[_Judged], float | None], judged: _Judged) -> Measure | None:
    """Give a figure its jackknife error (Efron 1982): how it moves as labels are left out.

    One label at a time, or that many groups when there are more labels.
    """
    value = figure(judged)
    if value is None:
        return None
    groups = min(len(judged.truth), _GROUPS)
    found = (figure(judged.without(first, groups)) for first in range(groups))
    parts = [part for part in found if part is not None]
    spread = float(np.var(parts)) if parts else 0.0
    return Measure(value=value, error=sqrt((groups - 1) * spread))


def _accuracy(judged: _Judged) -> float:
    return float(np.average((judged.chosen * judged.truth).sum(axis=1), weights=judged.weight))


def _precision(judged: _Judged) -> float | None:
    return _mean_share(judged, judged.chosen)


def _recall(judged: _Judged) -> float | None:
    return _mean_share(judged, judged.truth)


def _mean_share(judged: _Judged, among: Numbers) -> float | None:
    """Return how much of what is `among` a class was both chosen and true."""
    weight = judged.weight[:, None]
    hits = (judged.chosen * judged.truth * weight).sum(axis=0)
    total = (among * weight).sum(axis=0)
    shares = [hits[k] / total[k] for k in judged.positives if total[k] > 0]
    return float(np.mean(shares)) if shares else None


def _f1(judged: _Judged) -> float | None:
    precision, recall = _precision(judged), _recall(judged)
    if precision is None or recall is None:
        return None
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


def _auc(judged: _Judged) -> float | None:
    found = [
        area(judged.margins[:, k], judged.truth[:, k] > 0, judged.weight) for k in judged.positives
    ]
    known = [one for one in found if one is not None]
    return float(np.mean(known)) if known else None


def _calibration_error(judged: _Judged) -> float:
    sure = judged.probabilities.max(axis=1)
    right = (judged.chosen * judged.truth).sum(axis=1)
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = np.zeros(_BINS)
    np.add.at(gaps, bins, judged.weight * (sure - right))
    return float(np.abs(gaps).sum() / judged.weight.sum())
