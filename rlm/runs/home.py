"""Where runs live: one directory a run, private to its owner."""

from __future__ import annotations

import os
from pathlib import Path

from executors.errors import RunDirError
from executors.ids import RunId

__all__ = ["data_home", "new_run_directory", "write_atomically"]


def data_home() -> Path:
    """Return the directory of our runs: under XDG_DATA_HOME, or ~/.local/share."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "rlm" / "runs"


def new_run_directory(run: RunId, directory: str | os.PathLike[str] | None = None) -> Path:
    """Make the directory of a new run, readable by its owner alone.

    Args:
        run: names the directory when none is given.
        directory: where the caller wants it; it must not exist, or be empty.

    Raises:
        RunDirError: it holds something already, or cannot be made.
    """
    path = Path(directory) if directory is not None else data_home() / run
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if any(path.iterdir()):
            raise RunDirError(
                f"the run directory {str(path)!r} holds something already",
                hint="name another one with --run, or look at it with: rlm show DIR",
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
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
