"""Search by meaning: the cosine of an encoder's vectors, every record compared.

An encoder reads the first words of a text alone, so what stands further behind is not found by
meaning. Making the vectors takes long (some hundred texts a second); they are kept by content in the
encoder's own cache, and those of a spool in one file of half-precision numbers, which is mapped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Self

import numpy as np
from anyio import to_thread
from numpy.typing import NDArray

from corpus.repeats import Ordinals
from corpus.search.base import Hit, require_limit
from corpus.search.drafts import drafted
from corpus.search.index import listed, order_key
from corpus.search.terms import shown
from corpus.search.words import read_query
from corpus.spool import Spool
from executors.errors import RunDirError
from executors.models.encoders.base import Encoder
from executors.private import open_private
from executors.threads import to_its_end

__all__ = ["VECTORS", "VectorSearch"]

VECTORS: Final = "vectors.f16"
_BATCH: Final = 256
_COMPARED: Final = 8_192  # vectors that are made single-precision at once, 12 MB

Halves = NDArray[np.float16]


class VectorSearch:
    """Finds records of a spool by meaning. `open` makes one."""

    def __init__(self, spool: Spool, encoder: Encoder, ordinals: Ordinals, rows: Halves) -> None:
        self._spool = spool
        self._encoder = encoder
        self._ordinals = ordinals
        self._rows = rows

    @classmethod
    async def open(
        cls,
        spool: Spool,
        directory: Path,
        encoder: Encoder,
        *,
        fresh: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Open the vectors of a spool in a folder, making them when they are not there.

        Args:
            encoder: best a `CachedEncoder`, which makes each vector once for all spools.
            fresh: make them whatever stands there: no file from elsewhere is read.
            on_progress: is told how many records were encoded so far.

        Raises:
            RunDirError: the file cannot be written.
            ModelError: the encoder failed.
        """
        ordinals = await to_thread.run_sync(listed, spool)
        path = directory / VECTORS
        head = await to_thread.run_sync(_head, spool, encoder)
        size = len(head) + len(ordinals) * encoder.dimensions * 2
        if fresh or not await to_thread.run_sync(_stands, path, head, size):
            await _make(path, head, _Encoding(spool, encoder), ordinals.tolist(), on_progress)
        if not len(ordinals):  # an empty file cannot be mapped
            return cls(spool, encoder, ordinals, np.empty((0, encoder.dimensions), np.float16))
        shape = (len(ordinals), encoder.dimensions)
        rows = np.memmap(path, dtype="<f2", mode="r", offset=len(head), shape=shape)
        return cls(spool, encoder, ordinals, rows)

    @property
    def name(self) -> str:
        return "meaning"

    @property
    def records(self) -> int:
        return len(self._spool)

    async def search(self, query: str, *, limit: int = 8) -> tuple[Hit, ...]:
        require_limit(limit)
        terms = read_query(query).terms
        return await to_thread.run_sync(self._search, query, terms, limit)

    def _search(self, query: str, terms: tuple[str, ...], limit: int) -> tuple[Hit, ...]:
        wanted = self._encoder.encode([query])[0]
        scores = np.empty(len(self._rows), dtype=np.float32)
        for start in range(0, len(scores), _COMPARED):
            some = self._rows[start : start + _COMPARED].astype(np.float32)
            scores[start : start + len(some)] = some @ wanted
        places = _best(scores, limit)
        ordinals = [int(self._ordinals[place]) for place in places]
        records = self._spool.read(ordinals)
        return tuple(
            shown(
                self._spool,
                ordinal,
                record.text,
                id_=record.id,
                score=float(scores[place]),
                how="meaning",
                terms=terms,
            )
            for place, ordinal, record in zip(places, ordinals, records, strict=True)
        )


def _best(scores: NDArray[np.float32], limit: int) -> list[int]:
    """Return the places of the highest scores, ties in their order. Linear but for the few."""
    if len(scores) > limit:
        threshold = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        places = np.flatnonzero(scores >= threshold)
    else:
        places = np.arange(len(scores))
    order = np.argsort(-scores[places], kind="stable")[:limit]
    return [int(place) for place in places[order]]


def _head(spool: Spool, encoder: Encoder) -> bytes:
    about = {"spool": order_key(spool), "encoder": encoder.name, "version": encoder.version}
    line = json.dumps(about, sort_keys=True).encode() + b"\n"
    return line.rjust(-(-len(line) // 64) * 64)  # a mapped array begins at a multiple


def _stands(path: Path, head: bytes, size: int) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head and path.stat().st_size == size
    except OSError:
        return False


class _Encoding:
    """Records of a spool on their way to vectors."""

    def __init__(self, spool: Spool, encoder: Encoder) -> None:
        self._spool = spool
        self._encoder = encoder

    def write(self, file: BinaryIO, ordinals: list[int]) -> None:
        for parts in self._spool.parts(ordinals):
            vectors = self._encoder.encode([part.text for part in parts])
            file.write(vectors.astype("<f2").tobytes())


async def _make(
    path: Path,
    head: bytes,
    encoding: _Encoding,
    ordinals: list[int],
    on_progress: Callable[[int], None] | None,
) -> None:
    """Write the file; one that is not finished does not take its place."""
    try:
        async with drafted(path) as draft:
            with open_private(draft, "wb") as file:
                file.write(head)
                for start in range(0, len(ordinals), _BATCH):
                    some = ordinals[start : start + _BATCH]
                    await to_its_end(partial(encoding.write, file, some))
                    if on_progress is not None:
                        on_progress(start + len(some))
    except OSError as error:
        raise RunDirError(
            f"the vectors cannot be written: {error}",
            where=str(path),
            hint="make room or choose another folder; they are derived and made anew",
        ) from error
