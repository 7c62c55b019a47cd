"""The agenda of a session: for each pass, which records it set out to judge, and in which blocks.

The windows of a session follow from its agenda, and the keys of its calls from its windows. So
whoever goes on with a session, here, after a crash or on another machine, takes its agenda and
cuts each block by itself: the same windows come out, and what was paid for is found again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from executors.errors import RunDirError
from executors.private import written_durably

__all__ = ["BLOCK", "Agenda", "Block", "Ordinals", "rotate"]

Ordinals = NDArray[np.uint32]

BLOCK: Final = 2_048
"""Records of a block; no window reaches from one into the next."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Records that are cut into windows together."""

    pass_index: int
    first: int
    """Place of its first record in the order of the pass: what its windows are numbered from."""
    ordinals: Ordinals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agenda:
    """For each pass the ordinals to judge, in the order of the spool."""

    passes: tuple[Ordinals, ...]

    @classmethod
    def whole(cls, ordinals: Ordinals, passes: int) -> Self:
        """All of these records in each pass."""
        return cls(passes=(ordinals,) * passes)

    @property
    def items(self) -> int:
        """Records of the longest pass."""
        return max(map(len, self.passes), default=0)

    def blocks(self, pass_index: int, *, items: int) -> Iterator[Block]:
        """Yield the blocks of a pass, in its own order.

        Args:
            items: of a window; decides how far the order of a pass is rotated.
        """
        order = rotate(self.passes[pass_index], pass_index, items=items, passes=len(self.passes))
        for first in range(0, len(order), BLOCK):
            yield Block(pass_index=pass_index, first=first, ordinals=order[first : first + BLOCK])

    def save(self, path: Path) -> None:
        """Write it down."""
        with written_durably(path) as file:
            np.savez(file, *self.passes)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            RunDirError: there is none, or it is damaged.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found = tuple(
                    arrays[f"arr_{n}"].astype(np.uint32) for n in range(len(arrays.files))
                )
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise RunDirError(
                f"the agenda {path.name!r} of the run cannot be read: {error}", where=str(path)
            ) from error
        return cls(passes=found)


def rotate(ordinals: Ordinals, pass_index: int, *, items: int, passes: int) -> Ordinals:
    """Return the order of a pass: pass p starts p * max(1, items // passes) + p places later.

    The same records so meet other neighbours, and another place in their window, in each pass.
    """
    if len(ordinals) == 0 or pass_index == 0:
        return ordinals
    places = pass_index * max(1, items // passes) + pass_index
    return np.roll(ordinals, -(places % len(ordinals)))
