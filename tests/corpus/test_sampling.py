"""Which records to label: each sampler's promise, and that its weights add up to the corpus."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from corpus.judges.sampling import Sample, by_score, spread, uncertain
from executors.errors import ValidationError


def clusters(sizes: list[int], *, seed: int = 0) -> NDArray[np.float32]:
    """Unit vectors in tight clusters, one after another."""
    random = np.random.default_rng(seed)
    rows = [
        direction + 0.02 * random.normal(size=(size, 16))
        for direction, size in zip(np.eye(16), sizes, strict=False)
    ]
    vectors = np.concatenate(rows).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def fair(sample: Sample, total: int) -> bool:
    """Distinct rows of the corpus whose weights stand for all of it."""
    distinct = len(set(sample.rows)) == len(sample.rows)
    return distinct and abs(sum(sample.weights) - total) < 1e-6


# ---------------------------------------------------------------- spread


def test_spread_takes_one_record_of_each_kind_and_says_how_many_it_stands_for() -> None:
    sizes = [400, 250, 100, 30]
    sample = spread(clusters(sizes), 4, seed=3)
    kinds = np.searchsorted(np.cumsum(sizes), sample.rows, side="right")
    assert kinds.tolist() == [0, 1, 2, 3]
    assert sample.weights == (400.0, 250.0, 100.0, 30.0)


def test_spread_gives_the_same_records_for_the_same_seed() -> None:
    vectors = clusters([50] * 8)
    assert spread(vectors, 20, seed=1) == spread(vectors, 20, seed=1)
    assert fair(spread(vectors, 20, seed=1), 400)


def test_spread_over_copies_labels_each_text_once_at_most() -> None:
    vectors = np.repeat(clusters([1, 1, 1]), 10, axis=0)
    sample = spread(vectors, 8, seed=0)
    assert len({row // 10 for row in sample.rows}) == 3
    assert fair(sample, 30)


def test_spread_over_a_large_corpus_looks_at_a_part_and_stands_for_all() -> None:
    vectors = np.tile(clusters([40] * 8), (70, 1))
    sample = spread(vectors, 5, seed=0)
    assert fair(sample, len(vectors))
    assert max(sample.rows) < len(vectors)


# ---------------------------------------------------------------- uncertain


def test_uncertain_draws_where_the_two_likeliest_classes_are_closest() -> None:
    yes = np.linspace(0.0, 1.0, 1001)
    sample = uncertain(np.stack([yes, 1 - yes], axis=1), 10, seed=0)
    assert np.abs(yes[list(sample.rows)] - 0.5).max() <= 0.026
    assert sample.weights == (5.0,) * 10


def test_uncertain_looks_at_the_best_two_of_many_classes() -> None:
    torn, merely_unsure = [0.5, 0.49, 0.01], [0.45, 0.20, 0.35]
    p = np.array([merely_unsure, torn] * 5)
    assert all(row % 2 for row in uncertain(p, 1, seed=0).rows)


def test_uncertain_never_asks_for_a_label_that_is_there() -> None:
    p = np.full((20, 2), 0.5)
    assert set(uncertain(p, 5, seed=0, taken=range(15)).rows) == set(range(15, 20))


# ---------------------------------------------------------------- by score


def test_by_score_finds_a_rare_class_at_the_top_and_weighs_it_down() -> None:
    """Of 30 matches in 3,000, forty labels at random hold none or one."""
    scores = np.random.default_rng(0).normal(size=3000)
    scores[:30] += 4.0
    sample = by_score(scores, 40, seed=1)
    matches = [weight for row, weight in zip(sample.rows, sample.weights, strict=True) if row < 30]
    assert len(matches) >= 8
    assert sum(matches) == pytest.approx(30, rel=0.5)
    assert fair(sample, 3000)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_by_score_is_fair_whatever_the_sizes(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 400))
    taken = data.draw(st.sets(st.integers(0, total - 1), max_size=total - 1))
    count = data.draw(st.integers(1, total - len(taken)))
    sample = by_score(np.zeros(total), count, seed=0, taken=taken)
    assert len(sample.rows) == count
    assert taken.isdisjoint(sample.rows)
    assert fair(sample, total - len(taken))


@pytest.mark.parametrize("count", [0, 11])
def test_more_labels_than_records_are_refused(count: int) -> None:
    with pytest.raises(ValidationError, match=f"{count} records to label out of 10"):
        spread(clusters([10]), count, seed=0)
    with pytest.raises(ValidationError, match=f"{count} records to label out of 10"):
        uncertain(np.full((10, 2), 0.5), count, seed=0)
    with pytest.raises(ValidationError, match=f"{count} records to label out of 10"):
        by_score(np.zeros(10), count, seed=0)
