"""Labelling: one record, one key, saved; the terminal in front of it is thin."""

import os
import pty
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest

from corpus.questions import OneOf, Question, YesNo
from executors.errors import UsageError, ValidationError
from rlm.labelling.file import read_labels
from rlm.labelling.screen import label_in_terminal
from rlm.labelling.session import (
    Ignored,
    Labelled,
    Picked,
    Quit,
    Session,
    Shown,
    Skipped,
    Undone,
    keys_of,
)
from rlm.labelling.writer import LabelFile

SPAM = YesNo(text="is this spam?")
TEXTS = ["buy now", "hello\x1b[2J", "see [/INST]", "last"]


@pytest.fixture(autouse=True)
def no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour would come between the words that `Person` waits for."""
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LabelFile]:
    with LabelFile(tmp_path / "labels.csv", by="ann") as opened:
        yield opened


def in_order(labels: Mapping[int, str], skipped: frozenset[int]) -> Picked | None:
    left = set(range(len(TEXTS))) - set(labels) - skipped
    return Picked(ordinal=min(left), weight=2.5) if left else None


def record(ordinal: int) -> Shown:
    return Shown(id=f"r{ordinal}", text=TEXTS[ordinal])


def shown_by(labelling: Session) -> Shown | None:
    """Return what is shown now; type checkers would remember an attribute over a key press."""
    return labelling.shown


def session(
    file: LabelFile,
    *,
    goal: int = 9,
    known: Mapping[int, str] | None = None,
    question: Question = SPAM,
) -> Session:
    return Session(
        question=question, goal=goal, known=known or {}, pick=in_order, records=record, file=file
    )


def test_one_key_labels_a_record_and_the_next_is_shown(file: LabelFile) -> None:
    labelling = session(file)
    assert labelling.shown == Shown(id="r0", text="buy now")
    assert labelling.press("y") == Labelled(id="r0", label="yes")
    assert labelling.current == Picked(ordinal=1, weight=2.5)
    assert [(label.id, label.label, label.by) for label in read_labels(file.path)] == [
        ("r0", "yes", "ann")
    ]


def test_labels_of_an_earlier_session_count_and_stay(file: LabelFile) -> None:
    labelling = session(file, goal=2, known={0: "no"})
    assert labelling.current == Picked(ordinal=1, weight=2.5)
    labelling.press("y")
    assert labelling.shown is None
    assert labelling.press("y") == Ignored(why="nothing is left to label")
    assert labelling.labels == {0: "no", 1: "yes"}


def test_undo_takes_back_labels_and_skips_of_this_session_alone(file: LabelFile) -> None:
    labelling = session(file, known={3: "no"})
    for key in ("y", "s", "n"):
        labelling.press(key)
    assert shown_by(labelling) is None
    assert [labelling.press("u") for _ in range(4)] == [
        Undone(id="r2"),
        Undone(id="r1"),
        Undone(id="r0"),
        Ignored(why="nothing to undo in this session"),
    ]
    assert shown_by(labelling) == record(0)
    assert labelling.labels == {3: "no"}
    assert read_labels(file.path) == []
    assert labelling.press("n") == Labelled(id="r0", label="no")
    assert shown_by(labelling) == record(1)  # its skip was taken back
    assert labelling.made == read_labels(file.path)


def test_a_skipped_record_is_not_shown_again(file: LabelFile) -> None:
    labelling = session(file)
    assert labelling.press("s") == Skipped(id="r0")
    for _ in range(3):
        labelling.press("n")
    assert labelling.shown is None
    assert 0 not in labelling.labels


def test_other_keys_do_nothing_and_say_so(file: LabelFile) -> None:
    labelling = session(file)
    assert labelling.press("\x07") == Ignored(why="no such key: \\x07")
    assert labelling.press("") == Ignored(why="no such key: ")
    assert labelling.press("q") == Quit()
    assert labelling.current == Picked(ordinal=0, weight=2.5)


def test_each_label_has_one_key_that_is_no_command() -> None:
    labels = tuple(f"label {n}" for n in range(33))
    keys = keys_of(OneOf(text="which?", labels=labels))
    assert list(keys)[:11] == [*"1234567890", "a"]
    assert not set(keys) & {"s", "u", "q"}
    assert list(keys.values()) == list(labels)
    with pytest.raises(ValidationError, match="34 labels, but one key each"):
        keys_of(OneOf(text="which?", labels=(*labels, "one more")))


class Person:
    """Types keys at the far end of a pseudo-terminal and collects what is shown there."""

    def __init__(self, typed: bytes) -> None:
        self.far, self.near = pty.openpty()
        self.typed = typed
        self.seen = b""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._live)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.near)
        self._thread.join(5)
        os.close(self.far)

    def _live(self) -> None:
        """Press the next key for each question that was shown; what comes earlier is flushed."""
        pressed = 0
        while True:
            try:
                self.seen += os.read(self.far, 4096)
            except OSError:  # the near end was closed
                return
            asked = sum(map(self.seen.count, (b"[q] quit", b"any key ends", b"no such key")))
            os.write(self.far, self.typed[pressed:asked])
            pressed = min(asked, len(self.typed))


def label(person: Person, labelling: Session) -> None:
    with (
        open(person.near, closefd=False, encoding="utf-8") as stdin,
        open(person.near, "w", closefd=False, encoding="utf-8") as out,
    ):
        label_in_terminal(labelling, stdin=stdin, out=out)


def test_a_person_labels_in_a_terminal(file: LabelFile) -> None:
    with Person(b"yxnunsq") as person:
        label(person, session(file))
    seen = person.seen.decode()
    assert [(made.id, made.label) for made in read_labels(file.path)] == [
        ("r0", "yes"),
        ("r1", "no"),
    ]
    assert "hello\\x1b[2J" in seen
    assert "see [/INST]" in seen
    assert "\x1b" not in seen
    assert "no such key: x" in seen
    assert "undone: r1" in seen
    assert seen.rstrip().endswith("labelling ends here; every label so far is saved")


def test_the_last_label_can_be_undone_before_it_ends(file: LabelFile) -> None:
    with Person(b"yun ") as person:
        label(person, session(file, goal=1))
    assert [(made.id, made.label) for made in read_labels(file.path)] == [("r0", "no")]


def test_ctrl_c_stops_and_keeps_what_was_labelled(file: LabelFile) -> None:
    with Person(b"y\x03") as person, pytest.raises(KeyboardInterrupt):
        label(person, session(file))
    assert len(read_labels(file.path)) == 1


def test_without_a_terminal_nobody_is_asked(file: LabelFile, tmp_path: Path) -> None:
    with (
        (tmp_path / "in").open("w+", encoding="utf-8") as stdin,
        pytest.raises(UsageError, match="standard input is no terminal"),
    ):
        label_in_terminal(session(file), stdin=stdin, out=stdin)
