"""Where a path really leads: each link followed by hand, and nothing ever opened.

The file system is asked by `lstat` and `readlink` alone. Nothing here raises for any text.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["LONGEST", "Lost", "Place", "below", "located", "spelled"]

LONGEST: Final = 4096
"""Characters of a path; the kernel takes none that has more bytes."""
_MOST_LINKS: Final = 40
# What a link there says differs from process to process: `self`, `cwd`, `root`, `fd/3`.
_OF_PROCESSES: Final = "proc"

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a path leads."""

    parts: Parts
    """Of the real path; those from the first that is not there are taken as they are written."""
    linked: bool
    """A link was followed on the way."""
    dangling: bool
    """A link on the way points to what is not there."""
    ids: frozenset[tuple[int, int]]
    """Device and number of each file and folder from the top down to it, as far as they are there.

    They tell a folder by other names too: in capital letters, by a bind mount, by a hard link.
    """

    @property
    def text(self) -> str:
        """The real path."""
        return f"/{'/'.join(self.parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A path that cannot be followed to its end."""

    parts: Parts
    """How far it could be followed, and the rest as it is written."""
    reason: str


def below(parts: Parts, root: Parts) -> bool:
    """Return whether a place is another, or is below it: name by name, not letter by letter."""
    return parts[: len(root)] == root


def spelled(path: str) -> Parts:
    """Return the parts of an absolute path by its letters alone."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def located(path: str) -> Place | Lost:
    """Follow an absolute path as the kernel would, and on from the last folder that is there."""
    walk = _Walk([(part, False) for part in reversed(path.split("/"))])
    try:
        while walk.left:
            walk.step()
    except _Astray as astray:
        return walk.lost(str(astray))
    except OSError as error:
        return walk.lost(error.strerror or type(error).__name__)
    except ValueError:  # a zero byte, or half a surrogate pair
        return walk.lost("no file can have this name")
    return walk.found()


class _Astray(Exception):
    """A way that nobody can follow."""


@dataclass(slots=True)
class _Walk:
    """A path, partly walked."""

    left: list[tuple[str, bool]]
    """What is to come, the next one last; whether a link brought it."""
    at: list[str] = field(default_factory=list[str])
    ids: list[tuple[int, int] | None] = field(default_factory=list["tuple[int, int] | None"])
    absent: int | None = None
    """From which part on nothing is there."""
    links: int = 0
    dangling: bool = False

    def step(self) -> None:
        part, brought = self.left[-1]
        if part in ("", "."):
            self.left.pop()
        elif part == "..":
            self.left.pop()
            self._up()
        else:
            self._down(part, brought)

    def _up(self) -> None:
        del self.at[-1:], self.ids[-1:]
        if self.absent is not None and len(self.at) <= self.absent:
            self.absent = None

    def _down(self, part: str, brought: bool) -> None:
        found = None if self.absent is not None else self._seen(part)
        self.dangling = self.dangling or (found is None and brought)
        if found is not None and stat.S_ISLNK(found.st_mode):
            self._follow(part)
            return
        if found is None and self.absent is None:
            self.absent = len(self.at)
        self.left.pop()
        self.at.append(part)
        self.ids.append(None if found is None else (found.st_dev, found.st_ino))

    def _seen(self, part: str) -> os.stat_result | None:
        try:
            return os.lstat(self._path(part))
        except FileNotFoundError:
            return None

    def _follow(self, part: str) -> None:
        self.links += 1
        if self.links > _MOST_LINKS:
            raise _Astray("too many links lead on from one to the next")
        if self.at[:1] == [_OF_PROCESSES]:
            raise _Astray("links in /proc lead elsewhere for each process")
        target = str(Path(self._path(part)).readlink())
        self.left.pop()
        if target.startswith("/"):
            self.at.clear()
            self.ids.clear()
        self.left.extend((one, True) for one in reversed(target.split("/")))

    def _path(self, part: str) -> str:
        return f"/{'/'.join((*self.at, part))}"

    def found(self) -> Place:
        return Place(
            parts=tuple(self.at),
            linked=self.links > 0,
            dangling=self.dangling,
            ids=frozenset(one for one in self.ids if one is not None),
        )

    def lost(self, reason: str) -> Lost:
        rest = "/".join(part for part, _ in reversed(self.left))
        return Lost(parts=spelled(f"{'/'.join(self.at)}/{rest}"), reason=reason)
