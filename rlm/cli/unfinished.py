"""What is said of a run whose receipt is missing or old: it was killed, or it is still running."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from executors.errors import RunDirError
from executors.journal.json_lines import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["since_receipt", "unfinished"]

_WHY: Final = {"running": "it is still running", "killed": "it was killed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    task: str = ""
    windows: int = 0
    done: int = 0
    """Readings: a record is read once a pass."""
    total: int | None = None
    calls: int = 0
    tasks: int = 0
    """Nodes of a task tree that were begun; none in a count."""
    ended: int = 0

    @property
    def far(self) -> str:
        """How far it came, in words."""
        if self.tasks:
            return f"{self.ended:,} of {self.tasks:,} nodes ended"
        total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.windows:,} windows finished, {self.done:,}{total} readings"


def unfinished(directory: Path) -> RunDirError | None:
    """Return what to say of a run that left a log and no receipt; None where there is no log."""
    log = directory / "events.jsonl"
    try:
        written = datetime.fromtimestamp(log.stat().st_mtime, UTC)
        standing = _standing(log)
    except OSError:
        return None
    from rlm.runs.keeping import read_entry  # opens manifests, which only a look at runs needs

    state = read_entry(directory).state
    resume = f"rlm resume {shlex.quote(str(directory))}"
    hints = {"running": "wait for its receipt", "killed": f"go on with it: {resume}"}
    return RunDirError(
        f"the run in {str(directory)!r} has no receipt: "
        f"{_WHY.get(state, 'it was killed, or is still running')}",
        where=(
            f"its log, last written {written:%Y-%m-%d %H:%M:%S} UTC: {standing.task!r}, "
            f"{standing.far}, {standing.calls:,} calls answered"
        ),
        hint=hints.get(state, f"wait for its receipt if it still runs; otherwise: {resume}"),
    )


def since_receipt(directory: Path) -> str | None:
    """Return what to say of a session that came after the receipt of a run; None where none did."""
    from rlm.runs.keeping import read_entry  # opens manifests, which only a look at runs needs

    match read_entry(directory).state:
        case "running":
            return "this receipt is of an earlier session: the run goes on right now"
        case "killed":
            resume = f"rlm resume {shlex.quote(str(directory))}"
            return f"this receipt is of an earlier session: a later one was killed; {resume}"
        case _:
            return None


def _standing(log: Path) -> _Standing:
    task, windows, done, calls, total = "", 0, 0, 0, None
    tasks: set[str] = set()
    ended: set[str] = set()
    for event in _events(log):
        match event:
            case {"kind": "run_started", "task": str(task)}:
                pass
            case {"kind": "scan_started", "items": int(items), "passes": int(passes)}:
                total = items * passes
            case {"kind": "window_finished", "items": int(items)}:
                windows, done = windows + 1, done + items
            case {"kind": "call_finished", "source": "paid"}:
                calls += 1
            case {"kind": "task_assessed", "node": str(node)}:
                tasks.add(node)
                ended.discard(node)
            case {"kind": "task_ended", "node": str(node)}:
                ended.add(node)
            case _:
                pass
    return _Standing(
        task=task,
        windows=windows,
        done=done,
        total=total,
        calls=calls,
        tasks=len(tasks),
        ended=len(ended & tasks),
    )


def _events(log: Path) -> Iterator[dict[str, object]]:
    with log.open("rb") as lines:
        for raw in lines:
            try:
                event = decode(raw)
            except ValueError:  # the last line of a run that was killed is cut anywhere
                continue
            if isinstance(event, dict):
                yield cast("dict[str, object]", event)
