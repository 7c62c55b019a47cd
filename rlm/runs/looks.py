"""How one record was judged: in each pass, by which session, in the answer to which call.

Read from the journal's notes as they lie in its segments; no index is opened and no model asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.codes import FIRST_LABEL, read_filed
from corpus.filing import verdict_scope
from corpus.results import state_of
from executors.ids import ContentKey
from executors.journal.lines import Noted, read_line
from executors.journal.reading import SegmentFile, segment_files, whole_lines
from executors.journal.records import NOTE_KEY_BYTES

if TYPE_CHECKING:
    from corpus.records import RecordState
    from corpus.verdicts import Quote
    from executors.replies import JsonValue
    from rlm.runs.manifest import Judging, Manifest

__all__ = ["Look", "looks_at"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One verdict about a record's text."""

    pass_index: int
    """From 0."""
    state: RecordState
    label: str | None
    probability: float | None
    reason: str
    quote: Quote | None
    session: int | None
    """Which one judged it; None where the journal does not tell."""
    segment: str
    """The file of the journal in which it stands."""
    calls: tuple[str, ...]
    """How the keys of the calls begin that showed it: the first one, and those that asked again."""
    holds: bool
    """By the judge and the question of the last session, and not replaced by a later verdict."""


def looks_at(directory: Path, manifest: Manifest, digest: bytes) -> list[Look]:
    """Return the verdicts about a text, by pass, the older ones first.

    Args:
        digest: of the text, as the spool gives it.
    """
    scopes = _scopes(manifest)
    found: list[Look] = []
    for file in segment_files(directory / "journal"):
        for noted, value in _noted(file.path, digest):
            if (scope := scopes.get(noted.scope)) is None:
                continue
            look = _look(manifest, file, noted, value, scope)
            # A verdict is noted once for each call that it took.
            if found and replace(look, calls=()) == replace(found[-1], calls=()):
                look = replace(look, calls=(*found.pop().calls, *look.calls))
            found.append(look)
    found.sort(key=lambda look: look.pass_index)  # those of a pass stay in their order
    last = {look.pass_index: look for look in found if look.holds}
    return [replace(look, holds=last.get(look.pass_index) is look) for look in found]


def _scopes(manifest: Manifest) -> dict[str, tuple[int, bool]]:
    """Return for each scope its pass, and whether the last session that judged has it."""
    found: dict[str, tuple[int, bool]] = {}
    judgings = [note.judging for note in manifest.sessions if note.judging is not None]
    for judging in judgings:
        criterion, judge = ContentKey(judging.criterion), ContentKey(judging.judge)
        for n in range(judging.passes):
            found[verdict_scope(criterion, judge, n)] = n, _same(judging, judgings[-1], n)
    return found


def _same(one: Judging, last: Judging, pass_index: int) -> bool:
    asks = (one.criterion, one.judge) == (last.criterion, last.judge)
    return asks and pass_index < last.passes


def _noted(segment: Path, digest: bytes) -> Iterator[tuple[Noted, JsonValue]]:
    """Yield the notes about a text in a segment."""
    wanted = digest.hex().encode()
    for _, raw in whole_lines(segment):
        if wanted not in raw:  # nearly all lines: they need no reading
            continue
        line = read_line(raw)
        if isinstance(line, Noted):
            for place, value in enumerate(line.values):
                at = place * NOTE_KEY_BYTES
                if line.keys[at : at + NOTE_KEY_BYTES] == digest:
                    yield line, value


def _look(
    manifest: Manifest,
    file: SegmentFile,
    noted: Noted,
    value: JsonValue,
    scope: tuple[int, bool],
) -> Look:
    code, probability, reason, quote = read_filed(value, len(manifest.labels))
    return Look(
        pass_index=scope[0],
        state=state_of(code),
        label=manifest.labels[code - FIRST_LABEL] if code >= FIRST_LABEL else None,
        probability=probability,
        reason=reason,
        quote=quote,
        session=_session(manifest, file),
        segment=file.path.name,
        calls=() if noted.call is None else (noted.call,),
        holds=scope[1],
    )


def _session(manifest: Manifest, file: SegmentFile) -> int | None:
    """Return the session that wrote a segment: by its name, else (of a worker) by its time."""
    made = datetime.fromtimestamp(file.made / 1e9, UTC)
    found: int | None = None
    for note in manifest.sessions:
        if note.segment == file.path.name:
            return note.number
        if note.started <= made:
            found = note.number
    return found
