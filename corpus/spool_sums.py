"""Hashes over the files of a spool: what a disk lost or changed is told before anything is judged.

A table of zeros, as a power cut may leave one, is as long as the one that was written, and would
count every record as the first one. So all files are on the disk before the spool is finished, and
whoever goes on with an old one compares them with what was written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final

from executors.errors import RunDirError

__all__ = ["HINT", "check_sums", "settle_files"]

HINT: Final = (
    "read the corpus again: rlm count SOURCE QUESTION --run DIR; what was judged is not paid twice"
)
_FILES: Final = (
    "empty.bin",
    "first.bin",
    "ids.bin",
    "odd.bin",
    "offsets.bin",
    "order.bin",
    "records.bin",
    "texts.bin",
)
_CHUNK: Final = 1 << 20


def settle_files(directory: Path) -> dict[str, str]:
    """Wait until the disk has each file of a spool; return a hash of each. Linear in their bytes."""
    return {name: _sum_of(directory / name, settle=True) for name in _FILES}


def check_sums(directory: Path, sums: Mapping[str, str]) -> None:
    """Compare the files with what was written. Linear in their bytes, about 1 s a GB.

    Args:
        sums: as `settle_files` returned them; none for a spool of before there were any.

    Raises:
        RunDirError: one has other contents, or cannot be read.
    """
    for name in _FILES if sums else ():
        path = directory / name
        try:
            found = _sum_of(path, settle=False)
        except OSError as error:
            what = f"the spool is damaged: {name}: {error.strerror or error}"
            raise RunDirError(what, where=str(path), hint=HINT) from error
        if found != sums.get(name):
            what = f"the spool is damaged: {name} is not what was written"
            raise RunDirError(what, where=str(path), hint=HINT)


def _sum_of(path: Path, *, settle: bool) -> str:
    found = blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        if settle:
            os.fsync(file.fileno())
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
