"""Which runs there are under the user's data directory, and which of them may go."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, Literal, cast

from executors.errors import ConfigError, OutputError, RunDirError
from executors.journal.json_lines import decode
from executors.journal.lock import RunLock, lock_holder
from rlm.runs.foreign import refuse_links
from rlm.runs.home import data_home
from rlm.runs.manifest import Kind, Manifest

__all__ = [
    "KEEP_DAYS",
    "RunEntry",
    "RunState",
    "delete_run",
    "expire_runs",
    "kept_days",
    "list_runs",
    "outdated",
    "read_entry",
    "size_of",
    "sweep_deleted",
]

KEEP_DAYS: Final = "RLM_KEEP_RUNS_DAYS"
"""Environment variable: after how many days a run that ended is deleted; never, where it is unset."""

RunState = Literal["running", "completed", "incomplete", "killed", "unreadable"]
"""How a run stands.

running     a process holds its lock
completed   its last session completed
incomplete  its last session ended with a blocker
killed      its last session did not end: `rlm resume` goes on with it
unreadable  its manifest is damaged, missing, or of a newer version
"""

_DELETED: Final = ".deleted-"  # how a directory is named that is about to go


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run directory, as far as can be told without reading its records."""

    directory: Path
    id: str
    state: RunState
    kind: Kind = "count"
    blocker: str | None = None
    question: str = ""
    """What is asked of each record, or the task that is taken apart."""
    started: datetime | None = None
    """Of its first session."""
    last: datetime | None = None
    """When its last session ended, or began where it did not end."""
    sessions: int = 0
    records: int | None = None
    """None where its corpus was not read to the end."""
    calls: int | None = None
    """Of all sessions that ended; None where none did."""
    usd: Decimal | None = None
    """Of those calls whose price is known."""
    bytes: int = 0
    """On disk."""
    foreign: bool = False
    """It was made on another account or machine."""


def list_runs(home: Path | None = None) -> list[RunEntry]:
    """Return the runs under the data directory, the newest first."""
    entries = [read_entry(path) for path in _directories(home or data_home())]
    return sorted(entries, key=lambda entry: entry.id, reverse=True)


def read_entry(directory: Path) -> RunEntry:
    """Return what one run directory says of itself; one that says nothing is unreadable."""
    size = size_of(directory)
    try:
        refuse_links(directory)
        manifest = Manifest.load(directory)
    except RunDirError:
        state: RunState = "running" if lock_holder(directory) else "unreadable"
        return RunEntry(directory=directory, id=directory.name, state=state, bytes=size)
    calls, usd = _spent(directory)
    last = manifest.sessions[-1] if manifest.sessions else None
    records = [note.records for note in manifest.sessions if note.records is not None]
    return RunEntry(
        directory=directory,
        id=directory.name,
        state=_state(directory, manifest),
        kind=manifest.kind,
        blocker=None if last is None else last.blocker,
        question=manifest.question,
        started=manifest.sessions[0].started if manifest.sessions else None,
        last=None if last is None else last.ended or last.started,
        sessions=len(manifest.sessions),
        records=records[-1] if records else None,
        calls=calls,
        usd=usd,
        bytes=size,
        foreign=manifest.foreign,
    )


def size_of(directory: Path) -> int:
    """Return the bytes that a directory takes on disk; links count for themselves."""
    found = 0
    folders = [directory]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    found += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
        except OSError:  # it went away under our feet, or is not ours to read
            continue
    return found


def outdated(
    entries: Sequence[RunEntry],
    now: datetime,
    *,
    older_than: timedelta | None = None,
    keep: int | None = None,
) -> list[RunEntry]:
    """Return the runs that may go: none that runs, and none that both rules do not let go.

    Args:
        entries: the newest first.
        older_than: let go what was last worked on longer ago.
        keep: let go all but so many of the newest.
    """
    found = [entry for entry in entries[keep or 0 :] if entry.state != "running"]
    if older_than is not None:
        found = [entry for entry in found if entry.last and now - entry.last > older_than]
    return found


def delete_run(directory: Path) -> bool:
    """Delete a run; False where somebody works on it. No link is followed.

    Raises:
        OutputError: it cannot be deleted.
    """
    lock = RunLock(directory)
    gone = directory.with_name(f"{_DELETED}{directory.name}-{secrets.token_hex(4)}")
    try:
        if (path := directory / "lock").is_symlink():
            path.unlink()  # to take the lock would write to where it leads
        try:
            lock.take()
        except RunDirError:
            return False
        try:
            directory.rename(gone)  # nobody sees half a run
        finally:
            lock.release()
        shutil.rmtree(gone)
    except OSError as error:
        raise OutputError(
            f"the run in {str(directory)!r} cannot be deleted: {error.strerror or error}",
            where=str(error.filename or directory),
        ) from error
    return True


def sweep_deleted(home: Path | None = None) -> None:
    """Delete what is left of runs whose deleting was cut short."""
    for path in (home or data_home()).glob(f"{_DELETED}*"):
        shutil.rmtree(path, ignore_errors=True)  # a link is left as it is


def kept_days() -> int | None:
    """Return for how many days the user keeps runs that ended; None for ever.

    Raises:
        ConfigError: the setting is no number of days.
    """
    days = os.environ.get(KEEP_DAYS, "").strip()
    if not days:
        return None
    if not days.isdecimal() or not 1 <= int(days) <= 36_500:
        raise ConfigError(
            f"{KEEP_DAYS}={days!r} is no number of days",
            where="an environment variable",
            hint="give a whole number from 1 on, or unset it to keep runs until you delete them",
        )
    return int(days)


def expire_runs(now: datetime, days: int | None, home: Path | None = None) -> list[RunEntry]:
    """Delete the runs that ended so many days ago; return them.

    Only runs that were made under the data directory by their id, and that ended: never one that
    was killed, and never one in a directory that somebody named.
    """
    if days is None:
        return []
    sweep_deleted(home)
    ended = [
        entry
        for entry in list_runs(home)
        if entry.state in ("completed", "incomplete") and not entry.foreign and _is_own(entry)
    ]
    return [
        entry for entry in outdated(ended, now, older_than=timedelta(days=days)) if _deleted(entry)
    ]


def _deleted(entry: RunEntry) -> bool:
    try:
        return delete_run(entry.directory)
    except OutputError:  # a count does not fail for what is old
        return False


def _is_own(entry: RunEntry) -> bool:
    """Whether a directory has the name that its run was given."""
    try:
        return Manifest.load(entry.directory).run == entry.id
    except RunDirError:
        return False


def _directories(home: Path) -> Iterator[Path]:
    try:
        with os.scandir(home) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(_DELETED):
                    yield Path(entry.path)
    except FileNotFoundError:
        return


def _state(directory: Path, manifest: Manifest) -> RunState:
    if lock_holder(directory):
        return "running"
    if not manifest.sessions or manifest.last.ended is None:
        return "killed"
    return "completed" if manifest.last.blocker is None else "incomplete"


def _spent(directory: Path) -> tuple[int | None, Decimal | None]:
    """Return calls and USD of a receipt; None where there is none."""
    try:
        receipt = decode((directory / "receipt.json").read_bytes())
    except (OSError, ValueError):
        return None, None
    totals = cast("dict[str, object]", receipt).get("totals") if isinstance(receipt, dict) else None
    if not isinstance(totals, dict):
        return None, None
    fields = cast("dict[str, object]", totals)
    calls, cost, unpriced = (fields.get(name) for name in ("calls", "cost", "unpriced"))
    try:
        usd = Decimal(str(cost)) if calls != unpriced or not calls else None
    except InvalidOperation:
        usd = None
    return calls if isinstance(calls, int) else None, usd
