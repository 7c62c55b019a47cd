"""Which records a person is asked about."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np
import pytest

from corpus.questions import OneOf, Question, YesNo
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from executors.models.encoders.load import Vectors
from rlm.labelling import picking
from rlm.labelling.picking import Picker
from rlm.labels import LabelSetting

ODD = YesNo(text="about 1?")


class Angles:
    """An encoder that turns the number a text starts with into an angle."""

    name = version = "angles"
    dimensions = 2
    max_words = 1

    def __init__(self) -> None:
        self.texts = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        numbers = [float(text.split()[0].removesuffix("?").replace("about", "0")) for text in texts]
        angles = np.array(numbers) / 100
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def close(self) -> None:
        """Hold nothing."""


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    texts = {f"r{n}": f"{n} words" for n in range(120)} | {"blank": " ", "twin": "7 words"}
    return anyio.run(build_spool, open_source(texts), tmp_path / "spool")


def picker(spool: Spool, goal: int, question: Question = ODD) -> Picker:
    setting = LabelSetting(spool=spool, question=question, encoder=Angles(), known=())
    return Picker(setting, goal=goal)


def label(pick: Picker, goal: int, *, rare: int = 60, skip: int = 0) -> dict[int, str]:
    """Label by a threshold until the goal, after skipping the first so many."""
    labels: dict[int, str] = {}
    skipped: set[int] = set()
    while len(labels) < goal and (picked := pick(labels, frozenset(skipped))) is not None:
        assert picked.ordinal not in labels.keys() | skipped
        assert picked.weight is not None
        assert picked.weight > 0
        if len(skipped) < skip:
            skipped.add(picked.ordinal)
        else:
            labels[picked.ordinal] = "yes" if picked.ordinal < rare else "no"
    return labels


def test_the_first_half_is_spread_and_the_rest_lies_where_the_head_is_unsure(spool: Spool) -> None:
    labels = list(label(picker(spool, 24), 24))
    assert len(labels) == 24
    assert max(labels[:12]) > 100
    assert min(labels[:12]) < 20
    spread, unsure = (np.abs(np.array(some) - 60) for some in (labels[:12], labels[12:]))
    assert unsure.mean() < spread.mean()


def test_the_same_labels_lead_to_the_same_choices(spool: Spool) -> None:
    assert label(picker(spool, 30), 30) == label(picker(spool, 30), 30)


def test_a_session_that_goes_on_asks_for_what_is_missing_alone(spool: Spool) -> None:
    whole = label(picker(spool, 20), 20)
    first = dict(list(whole.items())[:6])
    pick = picker(spool, 20)
    picked = pick(first, frozenset())
    assert picked is not None
    assert picked.ordinal == list(whole)[6]


def test_skips_are_made_up_for_until_nothing_is_left(spool: Spool) -> None:
    assert len(label(picker(spool, 30), 30, skip=25)) == 30
    everything = label(picker(spool, 500), 500)
    assert sorted(everything) == list(range(120))


def test_a_rare_class_is_looked_for_where_the_description_points(spool: Spool) -> None:
    """All of the first half are no: the other half is drawn by likeness to the question."""
    question = YesNo(text="0 to 2?")
    pick = picker(spool, 20, question)
    labels = label(pick, 20, rare=3)
    late = list(labels)[10:]
    assert sum(ordinal < 10 for ordinal in late) >= 2


def test_rare_labels_of_many_are_looked_for_anywhere(spool: Spool) -> None:
    labels = label(picker(spool, 20, OneOf(text="0 what?", labels=("yes", "no", "else"))), 20)
    assert len(labels) == 20


def test_a_large_corpus_is_sampled_before_it_is_embedded(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picking, "_POOL", 50)
    told: list[tuple[int, int]] = []
    encoder = Angles()
    setting = LabelSetting(spool=spool, question=ODD, encoder=encoder, known=())
    pick = Picker(setting, goal=8, on_batch=lambda more, of: told.append((more, of)))
    assert len(label(pick, 8)) == 8
    assert told == [(50, 50)]
    assert encoder.texts < 120


def test_nothing_is_embedded_where_nothing_is_asked(tmp_path: Path) -> None:
    empty = anyio.run(build_spool, open_source({"a": " "}), tmp_path / "spool")
    assert picker(empty, 5)({}, frozenset()) is None
