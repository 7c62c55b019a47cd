"""The records of one block, by their place in it: from the spool of a shared disk, or sent along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Self, TypeAlias, cast

import numpy as np

from corpus.agenda import Ordinals
from corpus.identity import DIGEST_SIZE
from corpus.records import Part, Record
from corpus.repeats import Digests
from corpus.spool import Spool
from executors.journal.json_lines import decode, encode

__all__ = ["BlockSource", "Sent", "SpoolBlock"]


class SpoolBlock:
    """Records of a spool that this worker can read."""

    def __init__(self, spool: Spool, ordinals: Ordinals) -> None:
        self._spool = spool
        self._ordinals = ordinals
        self.digests: Digests = spool.digests[ordinals]
        """Of the texts, by place."""

    def __len__(self) -> int:
        return len(self._ordinals)

    def parts(self, ordinals: Sequence[int]) -> Iterator[list[Part]]:
        """See `corpus.windows.Readable`; ordinals are places here."""
        places = iter(ordinals)
        mine = self._ordinals[np.asarray(ordinals, dtype=np.intp)].tolist()
        for some in self._spool.parts(mine):
            yield [replace(part, ordinal=next(places)) for part in some]


class Sent:
    """Records that the coordinator sent."""

    def __init__(self, records: list[Record], digests: Digests) -> None:
        self._records = records
        self.digests = digests
        """Of the texts, by place."""

    def __len__(self) -> int:
        return len(self._records)

    def parts(self, ordinals: Sequence[int]) -> Iterator[list[Part]]:
        """See `corpus.windows.Readable`; ordinals are places here."""
        records = ((place, self._records[place]) for place in ordinals)
        yield [Part(ordinal=place, id=record.id, text=record.text) for place, record in records]

    @staticmethod
    def pack(spool: Spool, ordinals: Ordinals) -> bytes:
        """Return records of a spool as they travel; any text survives, also half a character."""
        records = spool.read(ordinals.tolist())
        rows = [[record.id, record.text] for record in records]
        return encode({"rows": rows, "digests": spool.digests[ordinals].tobytes().hex()})

    @classmethod
    def unpack(cls, raw: bytes) -> Self:
        """Return the records that travelled."""
        fields = cast("dict[str, object]", decode(raw))
        rows = cast("list[tuple[str, str]]", fields["rows"])
        flat = np.frombuffer(bytes.fromhex(cast("str", fields["digests"])), dtype=np.uint8)
        records = [Record(id=id_, text=text) for id_, text in rows]
        return cls(records, flat.reshape(-1, DIGEST_SIZE))


BlockSource: TypeAlias = SpoolBlock | Sent
