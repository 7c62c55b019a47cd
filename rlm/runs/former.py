"""What a run was before a session of it began: one that never begins to spend leaves it so."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rlm.runs.home import MANIFEST, write_atomically

__all__ = ["Former"]

_EVENTS: Final = "events.jsonl"
_LABELS: Final = "labels.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A directory under lock, before anything is written there."""

    directory: Path
    made: bool
    """The session made the directory."""
    run: bool
    """It held a run already."""
    events: int
    """Bytes of its log."""
    labels: str | None

    @classmethod
    def of(cls, directory: Path, *, made: bool) -> Self:
        """Look at a directory. Blocking."""
        events, labels = directory / _EVENTS, directory / _LABELS
        run = (directory / MANIFEST).exists()
        return cls(
            directory=directory,
            made=made,
            run=run,
            events=events.stat().st_size if events.exists() else 0,
            labels=labels.read_text(encoding="utf-8") if run and labels.exists() else None,
        )

    def restore(self) -> None:
        """Take back what a session left: all of a new run, and log and labels of one that was there.

        Its manifest is its owner's.
        """
        if self.made:
            shutil.rmtree(self.directory, ignore_errors=True)
        elif self.run:
            self._log()
            self._labels()
        else:
            self._clear()

    def _log(self) -> None:
        path = self.directory / _EVENTS
        if not self.events:
            path.unlink(missing_ok=True)
        elif path.stat().st_size > self.events:
            os.truncate(path, self.events)

    def _labels(self) -> None:
        path = self.directory / _LABELS
        if self.labels is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, self.labels)

    def _clear(self) -> None:
        for entry in self.directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):
                    entry.unlink()
