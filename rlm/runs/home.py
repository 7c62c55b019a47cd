"""Where runs live: one directory a run, private to its owner."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from executors.errors import RunDirError
from executors.ids import RunId
from executors.private import written_durably

__all__ = [
    "MANIFEST",
    "data_home",
    "how_to_go_on",
    "named_run",
    "run_directory",
    "write_atomically",
]

MANIFEST: Final = "manifest.json"
"""What makes a directory that of a run."""
_LOCK: Final = "lock"  # alone it is of a session that was killed before it began


def data_home() -> Path:
    """Return the directory of our runs: under XDG_DATA_HOME, or ~/.local/share."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "rlm" / "runs"


def named_run(run: str | os.PathLike[str]) -> Path:
    """Return the directory of a run that is named by it, by its receipt, or by its id."""
    named = Path(run)
    if named.name == "receipt.json":
        return named.parent
    kept = data_home() / named
    return kept if not named.exists() and kept.is_dir() else named


def how_to_go_on(directory: Path) -> str:
    """Say how a run that was cut off goes on."""
    named = str(directory)
    return f"the run can go on: rlm resume {shlex.quote(named)}, or rlm.resume({named!r})"


def run_directory(run: RunId, directory: str | os.PathLike[str] | None = None) -> Path:
    """Make the directory of a run, readable by its owner alone; one that is a run stays as it is.

    Args:
        run: names the directory when none is given.
        directory: where the caller wants it; a run, empty, or not there yet.

    Raises:
        RunDirError: it holds something else, or cannot be made.
    """
    path = Path(directory) if directory is not None else data_home() / run
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        others = {entry.name for entry in path.iterdir()} - {_LOCK}
        if others and MANIFEST not in others:
            raise RunDirError(
                f"the directory {str(path)!r} holds something already, and no run",
                hint="name another one with --run",
            )
        path.chmod(0o700)
    except OSError as error:
        raise RunDirError(
            f"the run directory {str(path)!r} cannot be made: {error.strerror or error}",
            hint="name a directory that you may write to with --run",
        ) from error
    return path


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with written_durably(temporary) as file:
        file.write(text.encode("utf-8"))
    temporary.replace(path)
