"""The labels of a run, for the sessions that go on with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rlm.labels import Label
from rlm.runs.home import write_atomically

__all__ = ["keep_labels", "kept_labels"]

_LABELS: Final = "labels.json"


def keep_labels(directory: Path, labels: Sequence[Label]) -> None:
    """Write them down."""
    rows = [asdict(label) for label in labels]
    write_atomically(directory / _LABELS, json.dumps(rows, ensure_ascii=False))


def kept_labels(directory: Path) -> tuple[Label, ...]:
    """Return those of an earlier session; none where there were none."""
    path = directory / _LABELS
    if not path.exists():
        return ()
    return tuple(Label(**row) for row in json.loads(path.read_text(encoding="utf-8")))
