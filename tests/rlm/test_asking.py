"""Asking a person for labels, as the labels of a count."""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest

from corpus.questions import YesNo
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from executors.clock import VirtualClock
from executors.models.encoders.load import Vectors
from rlm.labelling import asking
from rlm.labelling.asking import ask_in_terminal
from rlm.labelling.file import read_labels
from rlm.labelling.session import Session
from rlm.labels import AskLabels, Label, LabelSetting

TEXTS = {"a": "one", "b": "", "c": "two", "d": "one", "e": "three", "f": "four"}


class Lengths:
    """An encoder that looks at nothing but the length of a text."""

    name = version = "none"
    dimensions = 2
    max_words = 1

    def encode(self, texts: Sequence[str]) -> Vectors:
        angles = np.array([len(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def close(self) -> None:
        """Hold nothing."""


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return anyio.run(build_spool, open_source(TEXTS), tmp_path / "spool")


def setting(spool: Spool, *known: Label) -> LabelSetting:
    return LabelSetting(spool=spool, question=YesNo(text="odd?"), encoder=Lengths(), known=known)


def asker(file: Path, goal: int) -> AskLabels:
    return ask_in_terminal(
        file, goal=goal, by="ann", stdin=sys.stdin, out=sys.stderr, clock=VirtualClock()
    )


def ask(asks: AskLabels, about: LabelSetting) -> tuple[Label, ...]:
    """Ask in a worker thread, as a count does."""
    return tuple(anyio.run(anyio.to_thread.run_sync, asks, about))


class Person:
    """Presses keys in place of a person, and remembers what was shown."""

    def __init__(self, keys: str) -> None:
        self.keys = keys
        self.shown: list[str] = []

    def __call__(self, session: Session, **_streams: object) -> None:
        for key in self.keys:
            assert session.shown is not None
            self.shown.append(session.shown.id)
            session.press(key)


def test_answers_are_saved_and_returned_with_those_known_before(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "labels.csv"
    person = Person("yn")
    monkeypatch.setattr(asking, "label_in_terminal", person)
    known = Label(id="a", label="yes", by="column x")
    found = ask(asker(file, 3), setting(spool, known))
    assert found[0] == known
    assert list(found[1:]) == read_labels(file)
    assert [label.id for label in found[1:]] == person.shown
    assert "a" not in person.shown


@pytest.mark.case("K6-10", "K6-20")
def test_a_second_session_goes_on_where_the_first_stopped(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a person or a spreadsheet wrote an id with white space around it."""
    file = tmp_path / "labels.csv"
    file.write_text("id,label\n \u200bc\u00a0,no\n", encoding="utf-8")
    person = Person("y")
    monkeypatch.setattr(asking, "label_in_terminal", person)
    first = ask(asker(file, 2), setting(spool, *read_labels(file)))
    assert len(first) == 2
    assert person.shown != ["c"]
    monkeypatch.setattr(asking, "label_in_terminal", Person(""))
    again = ask(asker(file, 2), setting(spool, *read_labels(file)))
    assert [(label.id, label.label) for label in again] == [(x.id, x.label) for x in first]
