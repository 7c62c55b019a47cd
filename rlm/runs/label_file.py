"""The labels of a run, for the sessions that go on with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from executors.errors import RunDirError
from executors.journal.json_lines import decode
from rlm.labels import Label
from rlm.runs.home import write_atomically

__all__ = ["keep_labels", "kept_labels"]

_LABELS: Final = "labels.json"


def keep_labels(directory: Path, labels: Sequence[Label]) -> None:
    """Write them down."""
    rows = [asdict(label) for label in labels]
    write_atomically(directory / _LABELS, json.dumps(rows, ensure_ascii=False))


def kept_labels(directory: Path) -> tuple[Label, ...]:
    """Return those of an earlier session; none where there were none.

    Raises:
        RunDirError: the file cannot be read.
    """
    path = directory / _LABELS
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error
    from pydantic import TypeAdapter  # heavy, and only a session that goes on needs it

    try:
        return TypeAdapter(tuple[Label, ...]).validate_python(decode(raw))
    except ValueError as error:
        raise _damaged(path, "it is damaged") from error


def _damaged(path: Path, why: str) -> RunDirError:
    return RunDirError(
        f"the labels of the run cannot be read: {why}",
        where=str(path),
        hint="give them again: resume(run, labels=…), or: "
        "rlm count SOURCE QUESTION --run RUN_DIR --labels FILE",
    )
