"""Erasing the text of records from a spool, so that no byte of it, nor its hash, is left there.

The records stay: their ids, their places, and that their text was erased. A new spool takes the
place of the old one, as when a corpus is read again.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from corpus.identity import digest_of
from corpus.repeats import fingerprint, first_of_each, sorted_order
from corpus.spool import Spool
from corpus.spool_format import pack, read_meta, write_meta
from executors.private import open_private

__all__ = ["erase_texts"]

_BATCH: Final = 4_096
_KEPT: Final = ("ids.bin", "order.bin", "odd.bin")


def erase_texts(spool: Path, ordinals: set[int], target: Path) -> None:
    """Write a spool like another one, without the texts of some records. Linear in the records.

    Args:
        spool: the folder of the one that is read.
        target: the folder of the new one; what is there goes.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o700)
    with Spool.open(spool) as old:
        _write_records(old, ordinals, target)
        for name in _KEPT:
            shutil.copyfile(spool / name, target / name)
            (target / name).chmod(0o600)
        texts = old.digests.copy()
        blank = np.frombuffer(digest_of(""), dtype=np.uint8)
        some = sorted(ordinals)
        texts[some] = blank
        empty = old.is_empty.copy()
        empty[some] = True
        order, repeats = sorted_order(texts)
        mark = fingerprint(old.by_id, old.id_digests, texts)
        for name, array in (
            ("texts.bin", texts),
            ("empty.bin", empty),
            ("first.bin", first_of_each(order, repeats)),
        ):
            with open_private(target / name, "wb") as file:
                file.write(array.tobytes())
    meta = read_meta(spool)
    write_meta(
        target,
        replace(
            meta,
            identical=int(np.count_nonzero(repeats)),
            empty=int(np.count_nonzero(empty)),
            fingerprint=mark,
            forgotten=tuple(sorted({*meta.forgotten, *ordinals})),
        ),
    )


def _write_records(spool: Spool, ordinals: set[int], target: Path) -> None:
    """Write what holds the records, and where each begins."""
    offsets = np.zeros(len(spool) + 1, dtype="<u8")
    with open_private(target / "records.bin", "wb") as file:
        at = 0
        for start in range(0, len(spool), _BATCH):
            some = range(start, min(start + _BATCH, len(spool)))
            for ordinal, record in zip(some, spool.read(some), strict=True):
                erased = ordinal in ordinals
                text = b"" if erased else record.text.encode("utf-8")
                at += file.write(pack(record, text))
                offsets[ordinal + 1] = at
    with open_private(target / "offsets.bin", "wb") as file:
        file.write(offsets.tobytes())
