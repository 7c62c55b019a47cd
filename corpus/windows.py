"""Windows: what a judge is shown at once, bounded by items and by tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from corpus.agenda import Block, Ordinals
from corpus.chunks import split
from corpus.judges.base import Window
from corpus.records import Part, Record
from executors.errors import ValidationError
from executors.tokens import TokenCounter, estimate

__all__ = ["Cut", "Readable", "windows"]

_READ_AHEAD = 1024


class Readable(Protocol):
    """What windows are cut from: the spool, or anything that reads records by ordinal."""

    def read(self, ordinals: Sequence[int]) -> list[Record]:
        """Return the records of these ordinals, in their order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How windows are cut."""

    items: int = 8
    tokens: int = 6_000
    """Estimated tokens of all texts of a window; a longer record is read in parts."""
    overlap: int = 60
    """Tokens that two neighbouring parts of a record share."""
    whole: bool = False
    """Records are never split and tokens do not bound a window: the judge reads what it wants."""

    def __post_init__(self) -> None:
        for name, low in (("items", 1), ("tokens", 16), ("overlap", 0)):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ValidationError(
                    f"window {name}={value!r} is not a bound", hint=f"give an integer >= {low}"
                )
        if self.overlap * 2 > self.tokens:
            raise ValidationError(
                f"window overlap={self.overlap!r} is more than half of tokens={self.tokens!r}",
                hint="give a smaller overlap or a longer window",
            )


def windows(
    source: Readable,
    block: Block,
    cut: Cut,
    *,
    done: NDArray[np.bool_] | None = None,
    count: TokenCounter = estimate,
) -> Iterator[Window]:
    """Yield the windows of a block, each cut only when it is asked for.

    Args:
        done: by ordinal, records that need no judging. A window of nothing else is left out; one
            that holds others too stays whole, so that it is the window that it always was.
    """
    if done is not None and bool(done[block.ordinals].all()):
        return  # without a look at its texts
    for index, items in enumerate(_groups(source, block.ordinals, cut, count), start=block.first):
        if done is None or not all(done[part.ordinal] for part in items):
            yield Window(index=index, pass_index=block.pass_index, items=tuple(items))


def _groups(
    source: Readable, order: Ordinals, cut: Cut, count: TokenCounter
) -> Iterator[list[Part]]:
    parts = _whole(source, order) if cut.whole else _parts(source, order, cut, count)
    held: list[Part] = []
    weight = 0
    for part, tokens in parts:
        if held and (len(held) == cut.items or weight + tokens > cut.tokens):
            yield held
            held, weight = [], 0
        held.append(part)
        weight += tokens
    if held:
        yield held


def _read(source: Readable, order: Ordinals) -> Iterator[tuple[int, Record]]:
    for start in range(0, len(order), _READ_AHEAD):
        some = order[start : start + _READ_AHEAD].tolist()
        yield from zip(some, source.read(some), strict=True)


def _whole(source: Readable, order: Ordinals) -> Iterator[tuple[Part, int]]:
    for ordinal, record in _read(source, order):
        yield (
            Part(ordinal=ordinal, id=record.id, text=record.text, where=record.where),
            0,
        )


def _parts(
    source: Readable, order: Ordinals, cut: Cut, count: TokenCounter
) -> Iterator[tuple[Part, int]]:
    for ordinal, record in _read(source, order):
        tokens = count(record.text)
        if tokens <= cut.tokens:
            yield (
                Part(ordinal=ordinal, id=record.id, text=record.text, where=record.where),
                tokens,
            )
            continue
        for part in split(
            record, ordinal, max_tokens=cut.tokens, overlap_tokens=cut.overlap, count=count
        ):
            yield part, count(part.text)
