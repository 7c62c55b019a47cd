"""The manifest of a run: what it is about, and what each of its sessions did.

One JSON file, written anew as a whole at each step, so that a reader sees one that holds. It says
nothing that is secret: of keys only the name of the environment variable.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from corpus.questions import OneOf, Question, YesNo
from corpus.windows import Cut
from executors.errors import RunDirError
from executors.ids import RunId
from rlm.corpora import Spec
from rlm.runs.home import MANIFEST, data_home, write_atomically

__all__ = ["Judging", "Kind", "Manifest", "SessionNote", "mark_of", "question_of", "same_judging"]

Kind = Literal["count", "recurse"]
_FORMAT: Final = 1
_FROZEN: Final = ConfigDict(frozen=True, extra="ignore")


class Judging(BaseModel):
    """What decides which windows a session cuts and under which keys its verdicts are filed."""

    model_config = _FROZEN

    criterion: str
    judge: str
    passes: int
    items: int
    tokens: int
    overlap: int
    whole: bool

    @classmethod
    def of(cls, *, criterion: str, judge: str, passes: int, cut: Cut) -> Self:
        """Put it together."""
        return cls(
            criterion=criterion,
            judge=judge,
            passes=passes,
            items=cut.items,
            tokens=cut.tokens,
            overlap=cut.overlap,
            whole=cut.whole,
        )


class SessionNote(BaseModel):
    """One sitting of a run."""

    model_config = _FROZEN

    number: int
    """From 1."""
    started: datetime
    version: str
    segment: str | None = None
    """Name of its file in the journal; None where no model is asked."""
    fingerprint: str | None = None
    """Of its corpus, whatever the order; None until it was read."""
    order: str | None = None
    """Hash over the texts of its corpus in their order."""
    records: int | None = None
    judging: Judging | None = None
    agenda: str | None = None
    """Name of the file that lists what it set out to judge; None for all there is."""
    restored: int = 0
    """Verdicts that earlier sessions had made already."""
    ended: datetime | None = None
    """None while it runs, and for ever when it was killed."""
    blocker: str | None = None


class Manifest(BaseModel):
    """What a run is about."""

    model_config = _FROZEN

    format: Literal[1] = _FORMAT
    run: str
    mark: str
    """Tells a run that was made here from one that came from elsewhere."""
    kind: Kind = "count"
    question: str
    """What is asked of each record, or the task that is taken apart."""
    labels: tuple[str, ...] = ()
    """Of a OneOf; none for a YesNo."""
    source: Spec | None
    """None for what is in memory alone."""
    options: dict[str, object]
    """Options by name, those that JSON can hold."""
    objects: dict[str, str] = {}
    """Options that were objects of the caller's, by name, with what they were."""
    governed: str | None = None
    """Hash of the configuration, kept in the run, of the gate that governs it; None where none does."""
    sessions: tuple[SessionNote, ...] = ()
    forgotten: tuple[str, ...] = ()
    """Ids of records whose texts were erased on request; they stay so when the corpus is read again."""
    content_root: str | None = None
    """Of the last session that ended; see `rlm.runs.roots`."""

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the manifest of a run directory.

        Raises:
            RunDirError: there is none, or it is none that this version reads.
        """
        path = directory / MANIFEST
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise RunDirError(
                f"{str(directory)!r} is no run directory: {MANIFEST}: {error.strerror}",
                hint="name the directory of a run, as `rlm count` prints it; see: rlm runs list",
            ) from None
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the whole"
            raise RunDirError(
                f"the manifest of {str(directory)!r} cannot be read: {field}: {first['msg']}",
                where=str(path),
                hint="it is damaged, or made by a newer version of rlm",
            ) from None

    def save(self, directory: Path) -> None:
        """Write it."""
        write_atomically(directory / MANIFEST, self.model_dump_json(indent=2) + "\n")

    @property
    def last(self) -> SessionNote:
        """The session that is running or ran last."""
        return self.sessions[-1]

    def with_last(self, **changes: object) -> Self:
        """Return it with changes to its last session."""
        last = self.last.model_copy(update=changes)
        return self.model_copy(update={"sessions": (*self.sessions[:-1], last)})

    @property
    def foreign(self) -> bool:
        """Whether it was made on another account or machine."""
        mark = mark_of(RunId(self.run)).encode("ascii")
        return not hmac.compare_digest(self.mark.encode("utf-8"), mark)


def same_judging(
    sessions: Sequence[SessionNote], judging: Judging, order: str | None
) -> SessionNote | None:
    """Return the last session that judged, where it did so in this way and over these records."""
    before = [note for note in sessions if note.judging is not None]
    if not before or before[-1].judging != judging or before[-1].order != order:
        return None
    return before[-1]


def question_of(manifest: Manifest) -> Question:
    """Return the question of a run."""
    if manifest.labels:
        return OneOf(text=manifest.question, labels=manifest.labels)
    return YesNo(text=manifest.question)


def mark_of(run: RunId) -> str:
    """Return what a manifest of ours carries: a keyed hash of the run's id.

    It keeps nobody out who can read our files. It tells whether a directory came from elsewhere,
    so that what it says is not acted upon: another's model, URL or key name.
    """
    return blake2b(run.encode(), key=_secret(), digest_size=16).hexdigest()


def _secret() -> bytes:
    path = data_home().parent / "mark"
    try:
        return path.read_bytes()[:64]
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    made = secrets.token_bytes(32)
    temporary = path.with_name(f".mark.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(made)
        try:
            os.link(temporary, path)  # of several that come at once the first one wins
        except FileExistsError:
            return path.read_bytes()[:64]
    finally:
        temporary.unlink(missing_ok=True)
    return made
