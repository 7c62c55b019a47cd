"""Regularised softmax regression and its calibration, in plain numpy.

Two classes are the ordinary logistic regression. Both fits minimise a convex function by limited-memory
BFGS (Nocedal and Wright, Numerical Optimization, 2nd ed., algorithms 7.4 and 3.1), which needs a few
dozen products of small matrices whatever the number of classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Calibration", "Linear", "Numbers", "calibrate", "fit_linear", "softmax"]

Numbers = NDArray[np.float64]
_Objective = Callable[[Numbers], tuple[float, Numbers]]

_MEMORY: Final = 10
_STEPS: Final = 200
_FLAT: Final = 1e-6
_SHIFT_RIDGE: Final = 1e-3  # only ties down the shift that is common to all classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """Scores of classes: `x @ weights + bias`, weights of shape (features, classes)."""

    weights: Numbers
    bias: Numbers

    def scores(self, features: Numbers) -> Numbers:
        """Return one score a row and class."""
        return features @ self.weights + self.bias


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """Makes scores probabilities: softmax of `slope * scores + shift`; Platt scaling, for two classes."""

    slope: float
    shift: Numbers

    def probabilities(self, scores: Numbers) -> Numbers:
        """Return one probability a row and class; rows add up to one."""
        return softmax(self.slope * scores + self.shift)


def softmax(scores: Numbers) -> Numbers:
    """Return probabilities in proportion to exp(score), row by row."""
    lifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    total: Numbers = lifted / lifted.sum(axis=1, keepdims=True)
    return total


def fit_linear(
    features: Numbers, targets: Numbers, *, penalty: float, start: Linear | None = None
) -> Linear:
    """Fit scores by penalised maximum likelihood: half of `penalty` times the squared weights.

    Args:
        features: shape (rows, features).
        targets: shape (rows, classes), the wanted probabilities.
        penalty: above 0; the bias is free.
        start: where to begin, for a fit that resembles one done before.
    """
    size, classes = features.shape[1], targets.shape[1]

    def objective(flat: Numbers) -> tuple[float, Numbers]:
        table = flat.reshape(size + 1, classes)
        weights = table[:size]
        loss, slope = _loss(features @ weights + table[size], targets)
        value = loss + 0.5 * penalty * float(np.vdot(weights, weights))
        ascent = np.vstack([features.T @ slope + penalty * weights, slope.sum(axis=0)])
        return value, ascent.ravel()

    if start is None:
        shares = targets.sum(axis=0) / targets.sum()
        first = np.vstack([np.zeros((size, classes)), np.log(np.maximum(shares, 1e-12))])
    else:
        first = np.vstack([start.weights, start.bias])
    table = _minimise(objective, first.ravel()).reshape(size + 1, classes)
    return Linear(weights=table[:size], bias=table[size])


def calibrate(scores: Numbers, targets: Numbers, counts: Numbers) -> Calibration:
    """Fit slope and shift to held-out scores, against softened targets.

    Platt softens as if one more label of each class had been seen. Here it is one label drawn at the base
    rate: where a class is rare, half a match for nothing would be many times what there is.

    Args:
        scores: of rows that the scoring fit had not seen, shape (rows, classes).
        targets: one-hot times the weight of the row, shape (rows, classes).
        counts: labels of each class: with few of them their share is believed less.
    """
    weight = targets.sum(axis=1, keepdims=True)
    base = targets.sum(axis=0) / targets.sum()
    seen = (targets > 0) @ counts
    soft = (targets * seen[:, None] + weight * base) / (seen[:, None] + 1.0)

    def objective(flat: Numbers) -> tuple[float, Numbers]:
        shift = flat[1:]
        loss, slope = _loss(flat[0] * scores + shift, soft)
        value = loss + 0.5 * _SHIFT_RIDGE * float(shift @ shift)
        ascent = np.empty_like(flat)
        ascent[0] = np.vdot(slope, scores)
        ascent[1:] = slope.sum(axis=0) + _SHIFT_RIDGE * shift
        return value, ascent

    flat = _minimise(objective, np.concatenate([[1.0], np.zeros(scores.shape[1])]))
    if flat[0] < 0.0:  # it would turn the order round: the scores say nothing but the base rate
        return Calibration(slope=0.0, shift=np.log(soft.sum(axis=0) / soft.sum()))
    return Calibration(slope=flat.item(0), shift=flat[1:])


def _loss(scores: Numbers, targets: Numbers) -> tuple[float, Numbers]:
    """Return the cross-entropy and its slope in the scores."""
    lifted = scores - scores.max(axis=1, keepdims=True)
    logs = lifted - np.log(np.exp(lifted).sum(axis=1, keepdims=True))
    weight = targets.sum(axis=1, keepdims=True)
    slope: Numbers = np.exp(logs) * weight - targets
    return -float((targets * logs).sum()), slope


def _minimise(objective: _Objective, point: Numbers) -> Numbers:
    """Return the minimum of a convex function with known slope; deterministic."""
    value, slope = objective(point)
    past: deque[tuple[Numbers, Numbers, float]] = deque(maxlen=_MEMORY)
    for _ in range(_STEPS):
        if np.abs(slope).max() < _FLAT:
            break
        course = -_curved(slope, past)
        length, fall = 1.0, float(course @ slope)
        while True:  # Armijo's rule; a convex function and a falling course end it
            ahead = point + length * course
            next_value, next_slope = objective(ahead)
            if next_value <= value + 1e-4 * length * fall or length < 1e-10:
                break
            length *= 0.5
        moved, turned = ahead - point, next_slope - slope
        bend = float(moved @ turned)
        if bend > 1e-12:
            past.append((moved, turned, 1.0 / bend))
        stuck = value - next_value <= 1e-12 * (1.0 + abs(value))
        point, value, slope = ahead, next_value, next_slope
        if stuck:
            break
    return point


def _curved(slope: Numbers, past: deque[tuple[Numbers, Numbers, float]]) -> Numbers:
    """Multiply a slope by the inverse curvature that past steps showed."""
    course = slope.copy()
    shares: list[float] = []
    for moved, turned, inverse in reversed(past):
        share = inverse * float(moved @ course)
        shares.append(share)
        course -= share * turned
    if past:
        moved, turned, _ = past[-1]
        course *= float(moved @ turned) / float(turned @ turned)
    for (moved, turned, inverse), share in zip(past, reversed(shares), strict=True):
        course += (share - inverse * float(turned @ course)) * moved
    return course
