"""What the log of a run without a receipt says: it was killed, or it is still running."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from executors.errors import RunDirError
from executors.journal.json_lines import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    task: str = ""
    windows: int = 0
    done: int = 0
    """Readings: a record is read once a pass."""
    total: int | None = None
    calls: int = 0


def unfinished(directory: Path) -> RunDirError | None:
    """Return what to say of a run that left a log and no receipt; None where there is no log."""
    log = directory / "events.jsonl"
    try:
        written = datetime.fromtimestamp(log.stat().st_mtime, UTC)
        standing = _standing(log)
    except OSError:
        return None
    total = "" if standing.total is None else f" of {standing.total:,}"
    return RunDirError(
        f"the run in {str(directory)!r} has no receipt: it was killed, or is still running",
        where=(
            f"its log, last written {written:%Y-%m-%d %H:%M:%S} UTC: {standing.task!r}, "
            f"{standing.windows:,} windows finished, {standing.done:,}{total} readings, "
            f"{standing.calls:,} calls answered"
        ),
        hint=f"wait for its receipt if it still runs; otherwise: rlm resume {directory}",
    )


def _standing(log: Path) -> _Standing:
    task, windows, done, calls, total = "", 0, 0, 0, None
    for event in _events(log):
        match event:
            case {"kind": "run_started", "task": str(task)}:
                pass
            case {"kind": "scan_started", "items": int(items), "passes": int(passes)}:
                total = items * passes
            case {"kind": "window_finished", "items": int(items)}:
                windows, done = windows + 1, done + items
            case {"kind": "call_finished"}:
                calls += 1
            case _:
                pass
    return _Standing(task=task, windows=windows, done=done, total=total, calls=calls)


def _events(log: Path) -> Iterator[dict[str, object]]:
    with log.open("rb") as lines:
        for raw in lines:
            try:
                event = decode(raw)
            except ValueError:  # the last line of a run that was killed is cut anywhere
                continue
            if isinstance(event, dict):
                yield cast("dict[str, object]", event)
