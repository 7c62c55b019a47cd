"""The corpus shown: records that stand in a worker's own message, all of them, cut to fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from corpus.agenda import Agenda, Ordinals
from corpus.prompts import inert
from corpus.records import Part
from corpus.scan import distinct
from corpus.spool import Spool
from corpus.windows import Cut, windows
from executors.errors import ValidationError
from executors.fences import fenced
from executors.models.base import Model
from planner.families import chunks

__all__ = ["Slice", "equal_slices", "named", "room_for_answer", "room_to_read", "slices"]

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


def room_for_answer(model: Model, wanted: int) -> int:
    """Return the tokens that an answer may take: a quarter of a small window at most."""
    known = model.info.context_window
    return wanted if known is None else max(16, min(wanted, known // 4))


def room_to_read(model: Model, answer: int) -> int:
    """Return the estimated tokens of records that a message to a model may hold."""
    known = model.info.context_window
    return _TOKENS if known is None else max(64, min(_TOKENS, (known - answer) // 2))


def slices(spool: Spool, *, items: int, tokens: int) -> list[Slice]:
    """Cut a corpus into slices, in its order; identical texts are shown once.

    Args:
        items: records of a slice, at most.
        tokens: estimated tokens of a slice, at most; a longer record is shown in parts.
    """
    return _numbered(_cut(spool, distinct(spool), items=items, tokens=tokens))


def equal_slices(spool: Spool, count: int, *, tokens: int) -> list[Slice]:
    """Cut a corpus into so many slices: of as many records each, or where it has fewer, of its texts.

    Raises:
        ValidationError: so few slices would be too long to read, or the texts too short for so many.
    """
    todo = distinct(spool)
    if len(todo) >= count:
        parts = [todo[part.start : part.stop] for part in chunks(len(todo), count)]
        found = [s for part in parts for s in _cut(spool, part, items=len(part), tokens=tokens)]
    else:
        found = _by_length(spool, todo, count, tokens=tokens)
    if len(found) != count:
        raise ValidationError(
            f"{count:,} slice(s) cannot be made of this corpus: about {tokens:,} tokens of records "
            "fit a worker's message",
            where=f"{len(found):,} slice(s) can",
            hint=f"ask for {len(found):,} (--count {len(found)}), or for --mode partition",
        )
    return _numbered(found)


def _by_length(spool: Spool, todo: Ordinals, count: int, *, tokens: int) -> list[Slice]:
    """Cut a few long texts so that there are `count` slices, or as near to it as can be."""
    low, high = 16, tokens
    found = _cut(spool, todo, items=len(todo), tokens=high)
    while low < high and len(found) != count:
        middle = (low + high) // 2
        found = _cut(spool, todo, items=len(todo), tokens=middle)
        low, high = (middle + 1, high) if len(found) > count else (low, middle)
    return found


def _cut(spool: Spool, todo: Ordinals, *, items: int, tokens: int) -> list[Slice]:
    cut = Cut(items=max(1, items), tokens=tokens, overlap=min(60, tokens // 4))
    agenda = Agenda.whole(todo, 1)
    return [
        Slice(index=0, parts=tuple(window.items))
        for block in agenda.blocks(0, items=cut.items)
        for window in windows(spool, block, cut)
    ]


def _numbered(found: list[Slice]) -> list[Slice]:
    return [Slice(index=n, parts=one.parts) for n, one in enumerate(found)]


def _entry(part: Part) -> str:
    place = "" if part.of == 1 else f" (part {part.index + 1} of {part.of})"
    return f"record {json.dumps(part.id, ensure_ascii=False)}{place}:\n{inert(part.text)}"


def named(ids: Sequence[str]) -> str:
    """Return what people call a slice: its first record and how many there are."""
    return f"{ids[0]} and {len(ids) - 1:,} more" if len(ids) > 1 else (ids[0] if ids else "nothing")
