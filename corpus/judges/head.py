"""The head: a regularised logistic layer over unit vectors, calibrated on labels it had not seen.

Measured over seven tasks with 20 to 80 labels each (`tests/bench/accuracy.py`): centring on the labelled
vectors and one common scale do as well as a scale for each dimension; whitening costs up to ten points;
any penalty from 0.02 to 1 is within half a point; balancing the classes changes nothing once the scores
are calibrated, and the calibration adds two to four points. Ten folds do as well as leaving one out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from corpus.judges.quality import HeadQuality, measure
from corpus.judges.softmax import Calibration, Linear, Numbers, calibrate, fit_linear
from executors.errors import LabelsError, ValidationError

__all__ = ["MIN_LABELS", "Head", "HeadOrigin", "fit_head", "label_shortage", "labels_hash"]

MIN_LABELS: Final = 10
"""Fewer teach nothing that is better than always saying the most frequent class."""

_FEW_LABELS: Final = 20
_FEW_OF_A_CLASS: Final = 5
_PENALTY: Final = 0.3
_FOLDS: Final = 10

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadOrigin:
    """Where a head comes from: it fits vectors of this very encoder only."""

    encoder: str
    encoder_version: str
    labels_hash: str = ""
    """See `labels_hash`."""
    created_by: str = ""
    """Who taught it, as shown to people."""
    lesson: str = ""
    """Hash over all that it was taught by: texts, their classes, and what each stands for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Head:
    """Turns vectors of one encoder into calibrated probabilities of classes."""

    classes: tuple[str, ...]
    linear: Linear
    """On the vectors as they come: centring and scale are folded in."""
    calibration: Calibration
    quality: HeadQuality
    counts: tuple[int, ...]
    """Labels of each class."""
    origin: HeadOrigin
    warnings: tuple[str, ...]
    """What a reader of its count has to know: few labels, of one kind."""

    def probabilities(self, vectors: Vectors | Numbers) -> Numbers:
        """Return one probability a row and class, in the order of `classes`."""
        scores = self.linear.scores(np.asarray(vectors, dtype=np.float64))
        return self.calibration.probabilities(scores)

    def require(self, encoder: str, version: str) -> None:
        """Refuse vectors of another encoder.

        Raises:
            ValidationError: the head was taught on vectors of another one.
        """
        if (encoder, version) != (self.origin.encoder, self.origin.encoder_version):
            raise ValidationError(
                f"the head was taught on {self.origin.encoder!r} {self.origin.encoder_version!r}, "
                f"not on {encoder!r} {version!r}",
                hint="teach a new head from the labels, or use that encoder",
            )

    def to_json(self) -> str:
        """Return one line of JSON; the same head gives the same line."""
        return _HeadFile.of(self).model_dump_json()

    @staticmethod
    def from_json(text: str | bytes, *, where: str | None = None) -> Head:
        """Read a head.

        Raises:
            ValidationError: it is not a head, or its tables do not fit together.
        """
        try:
            return _HeadFile.model_validate_json(text).head()
        except (pydantic.ValidationError, ValueError) as error:
            first = str(error).splitlines()
            raise ValidationError(
                f"not a head: {' '.join(line.strip() for line in first[:3])!r}",
                where=where,
                hint="teach a new one from the labels",
            ) from None


def labels_hash(labels: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of (record id, label) pairs, whatever their order."""
    lines = sorted(json.dumps(pair, ensure_ascii=False) for pair in labels)
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def label_shortage(labels: Sequence[str], classes: Sequence[str]) -> str | None:
    """Say what is missing before a head can be taught; None when nothing is."""
    missing = MIN_LABELS - len(labels)
    if missing > 0:
        return f"{len(labels)} label(s) given, at least {MIN_LABELS} are needed: {missing} more"
    scarce = {name: count for name in classes if (count := labels.count(name)) < 2}
    if scarce:
        listed = ", ".join(f"{count} of {name!r}" for name, count in list(scarce.items())[:20])
        return f"labels of one kind teach nothing: {listed}, at least 2 of each are needed"
    return None


def fit_head(
    vectors: Vectors | Numbers,
    labels: Sequence[str],
    classes: Sequence[str],
    *,
    seed: int,
    origin: HeadOrigin,
    weights: Sequence[float] | None = None,
) -> Head:
    """Teach a head from labelled vectors. The same input gives the same head.

    Args:
        vectors: one row a label.
        classes: at least two; every label is one of them. The first one counts as the match.
        seed: decides which labels are held out together.
        weights: how many records each label stands for, when labels were drawn unevenly (see
            `sampling.by_score`). They calibrate; without them rare classes would be overstated.

    Raises:
        LabelsError: too few labels, or (nearly) all of one class.
        ValidationError: a label is no class, or rows and labels do not match.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    _require_fitting(rows, labels, classes, weights)
    truth = np.eye(len(classes))[[classes.index(label) for label in labels]]
    weight = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    weight = weight / weight.mean()

    view = _View.of(rows)
    narrow = view.narrowed(rows)
    whole = fit_linear(narrow, truth, penalty=_PENALTY)
    fold = _folds(truth, seed)
    held_out = np.empty_like(truth)
    for one in np.unique(fold):
        seen = fold != one
        without = fit_linear(narrow[seen], truth[seen], penalty=_PENALTY, start=whole)
        # No bias: it follows the base rate of the labels seen, which leans against those held out.
        # The calibration brings one for all.
        held_out[~seen] = narrow[~seen] @ without.weights

    counts = truth.sum(axis=0)
    weighted = truth * weight[:, None]
    quality = _quality(held_out, truth, weight, fold)
    return Head(
        classes=tuple(classes),
        linear=view.widened(whole.weights),
        calibration=calibrate(held_out, weighted, counts),
        quality=quality,
        counts=tuple(int(count) for count in counts),
        origin=origin,
        warnings=tuple(_warnings(quality, classes, counts)),
    )


def _quality(held_out: Numbers, truth: Numbers, weight: Numbers, fold: Numbers) -> HeadQuality:
    """Judge each label by a calibration that has not seen it either."""
    probabilities = np.empty_like(truth)
    for one in np.unique(fold):
        seen = fold != one
        fit = calibrate(held_out[seen], truth[seen] * weight[seen, None], truth[seen].sum(axis=0))
        probabilities[~seen] = fit.probabilities(held_out[~seen])
    return measure(probabilities, _margins(held_out), truth, weight, folds=int(fold.max()) + 1)


def _margins(scores: Numbers) -> Numbers:
    """Return by how much each class leads the best of the others."""
    ordered = np.sort(scores, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1]
    led: Numbers = scores - np.where(scores == best, second, best)
    return led


def _folds(truth: Numbers, seed: int) -> Numbers:
    """Deal the labels out class by class, so that no fold holds all of a class."""
    random = np.random.default_rng(seed)
    kinds = truth.argmax(axis=1)
    order = np.concatenate(
        [random.permutation(np.flatnonzero(kinds == kind)) for kind in range(truth.shape[1])]
    )
    fold = np.empty(len(truth))
    fold[order] = np.arange(len(truth)) % min(_FOLDS, len(truth))
    return fold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _View:
    """The labelled vectors' own space: centred, scaled, and as wide as there are labels.

    The penalty does not change under rotation, so a fit here is the fit in all dimensions.
    """

    centre: Numbers
    axes: Numbers
    """Shape (dimensions, narrow), the scale divided out."""

    @classmethod
    def of(cls, rows: Numbers) -> _View:
        centre: Numbers = rows.mean(axis=0)
        spread = float(np.sqrt(((rows - centre) ** 2).sum(axis=1).mean()))
        _, _, axes = np.linalg.svd(rows - centre, full_matrices=False)
        return cls(centre=centre, axes=axes.T / (spread or 1.0))

    def narrowed(self, rows: Numbers) -> Numbers:
        return (rows - self.centre) @ self.axes

    def widened(self, narrow: Numbers) -> Linear:
        """Return weights in this space as scores of vectors as they come, nought at the centre."""
        weights = self.axes @ narrow
        return Linear(weights=weights, bias=-(self.centre @ weights))


def _require_fitting(
    rows: Numbers,
    labels: Sequence[str],
    classes: Sequence[str],
    weights: Sequence[float] | None,
) -> None:
    if rows.ndim != 2 or len(rows) != len(labels) or not np.isfinite(rows).all():
        raise ValidationError(
            f"{len(labels)} labels do not go with vectors of shape {rows.shape!r}",
            hint="give one row of finite numbers for each label",
        )
    for label in labels:
        if label not in classes:
            raise ValidationError(
                f"the label {label!r} is none of the classes",
                hint=f"choices: {', '.join(map(repr, list(classes)[:20]))}",
            )
    if weights is not None and (len(weights) != len(labels) or min(weights, default=1) <= 0):
        raise ValidationError("weights: give one number above 0 for each label")
    shortage = label_shortage(labels, classes)
    if shortage:
        raise LabelsError(
            shortage, hint="label more records (--label 40); without labels the judge ranks"
        )


def _warnings(quality: HeadQuality, classes: Sequence[str], counts: Numbers) -> Iterable[str]:
    if quality.labels < _FEW_LABELS:
        yield f"taught by {quality.labels} labels only: {_FEW_LABELS} is little, 40 to 80 are good"
    for name, count in zip(classes, counts, strict=True):
        if count < _FEW_OF_A_CLASS:
            yield f"only {count:.0f} label(s) of {name!r}: its probabilities are rough"
    if quality.accuracy.value <= quality.majority:
        yield (
            f"no better than always saying the most frequent class: accuracy "
            f"{quality.accuracy.value:.2f} against {quality.majority:.2f}"
        )


_Numbers = Annotated[list[float], pydantic.Field(min_length=1)]


class _HeadFile(pydantic.BaseModel):
    """A head as it lies in a file."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: Literal["rlm-head"] = "rlm-head"
    format: Literal[1] = 1
    classes: list[str]
    counts: list[int]
    weights: list[_Numbers]
    bias: _Numbers
    slope: float
    shift: _Numbers
    quality: HeadQuality
    origin: HeadOrigin
    warnings: list[str]

    @classmethod
    def of(cls, head: Head) -> _HeadFile:
        return cls(
            classes=list(head.classes),
            counts=list(head.counts),
            weights=head.linear.weights.tolist(),
            bias=head.linear.bias.tolist(),
            slope=head.calibration.slope,
            shift=head.calibration.shift.tolist(),
            quality=head.quality,
            origin=head.origin,
            warnings=list(head.warnings),
        )

    def head(self) -> Head:
        weights = np.array(self.weights, dtype=np.float64)  # ValueError when rows differ in length
        many = len(self.classes)
        sizes = {weights.shape[-1], len(self.bias), len(self.shift), len(self.counts)}
        if many < 2 or sizes != {many}:
            raise ValueError(f"{many} classes, but tables for {sorted(sizes)}")
        return Head(
            classes=tuple(self.classes),
            linear=Linear(weights=weights, bias=np.array(self.bias)),
            calibration=Calibration(slope=self.slope, shift=np.array(self.shift)),
            quality=self.quality,
            counts=tuple(self.counts),
            origin=self.origin,
            warnings=tuple(self.warnings),
        )
