"""Which tool calls of a round may run side by side. Pure."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from typing import TypeVar

__all__ = ["batches", "chains"]

T = TypeVar("T")


def batches(calls: Iterable[T], parallel: Callable[[T], bool]) -> Iterator[list[T]]:
    """Yield what may begin together, in order: neighbours that are all parallel, others alone.

    A call that is not parallel waits for those before it and holds up those after it, so that what
    it writes is read by nobody too early.
    """
    for together, run in groupby(calls, parallel):
        if together:
            yield list(run)
        else:
            yield from ([call] for call in run)


def chains(calls: Sequence[T], paths: Callable[[T], Collection[str]]) -> list[list[T]]:
    """Split parallel calls so that those which touch the same path, or one inside it, stay in order.

    Each chain runs one after another, the chains side by side. O(n log n) in the paths, which are
    compared as they are written: all of them relative to one folder, or all of them absolute.
    """
    parent = list(range(len(calls)))
    touched = sorted(
        (PurePosixPath(posixpath.normpath(path)).parts, index)
        for index, call in enumerate(calls)
        for path in paths(call)
    )
    outer: tuple[tuple[str, ...], int] | None = None
    for parts, index in touched:
        # Sorted by their parts, all that lies inside a folder follows right behind it.
        if outer is not None and parts[: len(outer[0])] == outer[0]:
            _join(parent, outer[1], index)
        else:
            outer = (parts, index)
    found: defaultdict[int, list[T]] = defaultdict(list)
    for index, call in enumerate(calls):
        found[_root(parent, index)].append(call)
    return list(found.values())


def _root(parent: list[int], index: int) -> int:
    while parent[index] != index:
        parent[index] = index = parent[parent[index]]
    return index


def _join(parent: list[int], one: int, other: int) -> None:
    first, second = sorted((_root(parent, one), _root(parent, other)))
    parent[second] = first
