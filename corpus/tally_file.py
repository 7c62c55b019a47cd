"""A tally on disk, so that `rlm show` can list the records of a count that ended long ago."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from corpus.ledger import Ledger
from corpus.results import Tally, assemble
from corpus.spool import Spool

__all__ = ["load_tally", "save_tally"]


def save_tally(tally: Tally, directory: Path) -> None:
    """Write a tally into a directory that is made for it; the spool stays where it is."""
    directory.mkdir(mode=0o700, exist_ok=True)
    tally.ledger.save(directory)
    np.save(directory / "final.npy", tally.codes)
    texts = {
        "votes": tally.votes,
        "judge": tally.judge,
        "notes": tally.notes,
        "by_person": {str(ordinal): who for ordinal, who in tally.by_person.items()},
    }
    (directory / "tally.json").write_text(json.dumps(texts), encoding="utf-8")


def load_tally(directory: Path, spool: Spool) -> Tally:
    """Read what `save_tally` wrote.

    Raises:
        FileNotFoundError: the directory holds no tally.
    """
    texts = json.loads((directory / "tally.json").read_text(encoding="utf-8"))
    return assemble(
        spool,
        Ledger.load(directory),
        np.load(directory / "final.npy"),
        votes=texts["votes"],
        judge=texts["judge"],
        by_person={int(ordinal): who for ordinal, who in texts["by_person"].items()},
        notes=tuple(texts["notes"]),
    )
