"""Windows: what a judge is shown at once, bounded by items and by tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from corpus.agenda import Block
from corpus.chunks import split
from corpus.judges.base import Window
from corpus.records import Part
from executors.errors import ValidationError
from executors.makers import maker
from executors.tokens import TokenCounter, estimate

__all__ = ["Cut", "Readable", "windows"]

_window = maker(Window)


class Readable(Protocol):
    """What windows are cut from: the spool, or anything that reads parts by ordinal."""

    def parts(self, ordinals: Sequence[int]) -> Iterator[list[Part]]:
        """Yield the records of these ordinals as whole parts, in their order, some at a time."""
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
    if done is not None:
        judged = done[block.ordinals]
        if judged.all():
            return  # without a look at its texts
        if not judged.any():
            done = None
    groups = _groups(source.parts(block.ordinals.tolist()), cut, count)
    for index, items in enumerate(groups, start=block.first):
        if done is None or not all(done[part.ordinal] for part in items):
            yield _window(index=index, pass_index=block.pass_index, items=tuple(items))


def _groups(parts: Iterator[list[Part]], cut: Cut, count: TokenCounter) -> Iterator[list[Part]]:
    held: list[Part] = []
    weight = 0
    for some in parts:
        tokens = [0 if cut.whole else count(part.text) for part in some]
        if not held and max(tokens) * cut.items <= cut.tokens:
            # However they meet, no window is too heavy: nearly always so.
            full = len(some) - len(some) % cut.items
            for start in range(0, full, cut.items):
                yield some[start : start + cut.items]
            held, weight = some[full:], sum(tokens[full:])
            continue
        for part, heavy in _split(some, tokens, cut, count):
            if held and (len(held) == cut.items or weight + heavy > cut.tokens):
                yield held
                held, weight = [], 0
            held.append(part)
            weight += heavy
    if held:
        yield held


def _split(
    parts: list[Part], tokens: list[int], cut: Cut, count: TokenCounter
) -> Iterator[tuple[Part, int]]:
    for part, heavy in zip(parts, tokens, strict=True):
        if heavy <= cut.tokens:
            yield part, heavy
            continue
        for piece in split(part, max_tokens=cut.tokens, overlap_tokens=cut.overlap, count=count):
            yield piece, count(piece.text)
