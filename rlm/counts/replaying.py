"""Why a recorded run may not answer all that its replay asks: it had stopped before its end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from executors.errors import ReplayMiss, RunDirError
from rlm.runs.manifest import Manifest

__all__ = ["explain"]

_WHOLE: Final = frozenset({"uncalibrated-judge", "unresolved-records"})
"""Blockers of a run that asked all it had to ask."""


def explain(miss: ReplayMiss, recorded: Path) -> None:
    """Say in a miss that the recorded run stopped early, where it did."""
    try:
        last = Manifest.load(recorded).last
    except RunDirError:
        return
    how = "killed" if last.ended is None else last.blocker
    if how is None or how in _WHOLE:
        return
    whole = f"rlm resume {shlex.quote(str(recorded))}"
    miss.where = f"{miss.where}: this run stopped early itself ({how})"
    miss.hint = f"finish it first: {whole}; or else {miss.hint}"
