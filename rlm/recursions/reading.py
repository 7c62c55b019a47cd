"""The corpus shown: records that stand in a worker's own message, all of them, cut to fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from corpus.agenda import Agenda
from corpus.judges.base import Window
from corpus.records import Part
from corpus.scan import distinct
from corpus.spool import Spool
from corpus.windows import Cut, windows
from executors.errors import ValidationError
from executors.fences import fenced
from executors.models.base import Model

__all__ = ["Slice", "named", "room_to_read", "slices"]

_TOKENS = 12_000
"""Estimated tokens of records in a message, where the model's window is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Records, or parts of long ones, that one worker reads."""

    index: int
    parts: tuple[Part, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Of its records, each once."""
        return tuple(dict.fromkeys(part.id for part in self.parts))

    @property
    def shown(self) -> str:
        """As a worker reads them: each under its id, all between two marks."""
        return fenced("\n\n".join(map(_entry, self.parts)), "records")


def room_to_read(model: Model, answer: int) -> int:
    """Return the estimated tokens of records that a message to a model may hold."""
    known = model.info.context_window
    return _TOKENS if known is None else max(64, min(_TOKENS, (known - answer) // 2))


def slices(spool: Spool, *, items: int, tokens: int, exactly: int | None = None) -> list[Slice]:
    """Cut a corpus into slices, in its order; identical texts are shown once.

    Args:
        items: records of a slice, at most.
        tokens: estimated tokens of a slice, at most; a longer record is shown in parts.
        exactly: how many slices there have to be.

    Raises:
        ValidationError: so many slices would be too long to read.
    """
    cut = Cut(items=items, tokens=tokens, overlap=min(60, tokens // 4))
    agenda = Agenda.whole(distinct(spool), 1)
    found = [
        _slice(window)
        for block in agenda.blocks(0, items=items)
        for window in windows(spool, block, cut)
    ]
    if exactly is not None and len(found) > exactly:
        raise ValidationError(
            f"{exactly:,} slice(s) of this corpus are longer than a worker can read at once",
            where=f"about {tokens:,} tokens of records fit a message; {len(found):,} slices do",
            hint=f"ask for {len(found):,} (--count {len(found)}), or for --mode partition",
        )
    return found


def _slice(window: Window) -> Slice:
    return Slice(index=window.index, parts=tuple(window.items))


def _entry(part: Part) -> str:
    place = "" if part.of == 1 else f" (part {part.index + 1} of {part.of})"
    return f"record {json.dumps(part.id, ensure_ascii=False)}{place}:\n{part.text}"


def named(ids: Sequence[str]) -> str:
    """Return what people call a slice: its first record and how many there are."""
    return f"{ids[0]} and {len(ids) - 1:,} more" if len(ids) > 1 else (ids[0] if ids else "nothing")
