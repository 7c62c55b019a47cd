"""The spool of a run: a new one takes the place of an old one as a whole, whenever a process dies."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from executors.errors import RunDirError, SourceError

__all__ = ["NEXT", "SPOOL", "erase_ids", "settle_spool", "swap_spool"]

SPOOL: Final = "spool"
NEXT: Final = "spool.next"
"""Where the one is made that takes the other's place."""
_OLD: Final = "spool.old"


def settle_spool(directory: Path) -> None:
    """End what a killed session left half done: a spool that was about to take another's place.

    Raises:
        RunDirError: it cannot be moved or deleted.
    """
    try:
        _settle(*(directory / name for name in (SPOOL, NEXT, _OLD)))
    except OSError as error:
        raise RunDirError(
            f"the spool of the run cannot be settled: {error.strerror or error}",
            where=str(error.filename or directory / SPOOL),
            hint="name a run directory that you may write to, whose spool is a folder and no link",
        ) from error


def _settle(spool: Path, new: Path, old: Path) -> None:
    if not spool.exists():
        for candidate in (new, old):
            if (candidate / "meta.json").exists():
                candidate.rename(spool)
                break
    elif not (spool / "meta.json").exists():
        shutil.rmtree(spool)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)


def swap_spool(directory: Path) -> None:
    """Put the new spool in the place of the old one, which goes."""
    spool, new, old = (directory / name for name in (SPOOL, NEXT, _OLD))
    spool.rename(old)
    new.rename(spool)
    shutil.rmtree(old)


def erase_ids(directory: Path, ids: Iterable[str]) -> bool:
    """Erase the texts of records from the spool of a run; False where there is none to erase."""
    # The spool needs numpy; most sessions have nothing to erase.
    from corpus.erasing import erase_texts
    from corpus.spool import Spool

    found: set[int] = set()
    with Spool.open(directory / SPOOL) as spool:
        for id_ in ids:
            with suppress(SourceError):  # it is none of these ids any more, but like several
                if (ordinal := spool.find(id_)) is not None:
                    found.add(ordinal)
        found -= set(spool.forgotten.tolist())
    if not found:
        return False
    erase_texts(directory / SPOOL, found, directory / NEXT)
    swap_spool(directory)
    return True
