"""A folder that tools work in: opened name by name, and over no link, so that nothing leads out of it.

Between a check of a path and its opening somebody may put a link there. Here each name is opened in the
folder that was opened before it, and a link is refused by the very call that opens.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from executors.errors import ValidationError
from executors.tools.base import Arguments

__all__ = ["NotDone", "Parts", "Root"]

_LONGEST: Final = 4096
# To go through a folder needs no right to list it.
_PASS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would wait

Parts = tuple[str, ...]


class NotDone(Exception):
    """What a tool did not do; the text says why, for a model."""


class Root:
    """A folder, by its real path.

    Raises:
        ValidationError: it is no folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path = Path(path).resolve(strict=True)
            if not self.path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
        except (OSError, RuntimeError, ValueError) as error:
            raise ValidationError(
                f"tools cannot work in {os.fspath(path)!r}: {error}"[:400],
                hint="give a folder that is there",
            ) from None

    def parts(self, path: object) -> Parts:
        """Return the names that lead from here to a path, which is relative or below this folder.

        Raises:
            NotDone: it leads elsewhere, or is no path.
        """
        if not isinstance(path, str) or "\0" in path or len(path) > _LONGEST:
            raise NotDone(f"{path!r} is no path"[:200])
        if path.startswith("~"):
            raise NotDone(f"{path[:200]!r}: write it out")
        names = tuple(name for name in path.split("/") if name not in ("", "."))
        if ".." in names:
            raise NotDone(f"{path[:200]!r} holds '..': name the file outright")
        if not path.startswith("/"):
            return names
        own = self.path.parts[1:]
        if names[: len(own)] != own:
            raise NotDone(f"{path[:200]!r} is not below {str(self.path)!r}")
        return names[len(own) :]

    def shown(self, parts: Parts) -> str:
        """Return a path as tools give it: from this folder on."""
        return "/".join(parts) or "."

    def absolute(self, arguments: Arguments) -> Arguments:
        """Return arguments with their path from / on; one that leads elsewhere is empty."""
        try:
            parts = self.parts(arguments.get("path", ""))
        except NotDone:
            return {**arguments, "path": ""}
        return {**arguments, "path": str(self.path.joinpath(*parts))}

    # ---------------------------------------------------------------- opening

    @contextmanager
    def folder(self, parts: Parts, *, make: bool = False) -> Generator[int]:
        """Open a folder to work in by `dir_fd`.

        Args:
            make: make those on the way that are not there.

        Raises:
            NotDone: it is not there, or a link is on the way.
        """
        fd = os.open("/", _PASS)
        try:
            for at, name in enumerate((*self.path.parts[1:], *parts)):
                if make and at >= len(self.path.parts) - 1:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=fd)
                below = os.open(name, _PASS, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        except OSError as error:
            raise self._refused(parts, error) from None
        finally:
            os.close(fd)

    @contextmanager
    def file(self, parts: Parts) -> Generator[int]:
        """Open a plain file for reading.

        Raises:
            NotDone: it is none, is not there, or a link is on the way.
        """
        if not parts:
            raise NotDone("the folder itself is no file")
        with self.folder(parts[:-1]) as fd:
            opened = os.open(parts[-1], _READ, dir_fd=fd)
            try:
                if not stat.S_ISREG(os.fstat(opened).st_mode):
                    raise NotDone(f"{self.shown(parts)!r} is no plain file")
                yield opened
            finally:
                os.close(opened)

    def entries(self, parts: Parts, most: int) -> tuple[Sequence[tuple[str, os.stat_result]], bool]:
        """Return what is in a folder, by name, and whether more than `most` were there.

        Raises:
            NotDone: it is no folder, or a link is on the way.
        """
        found: list[tuple[str, os.stat_result]] = []
        with self.folder(parts) as fd:
            listed = os.open(".", _LIST, dir_fd=fd)
            try:
                with os.scandir(listed) as entries:
                    for entry in entries:
                        if len(found) >= most:
                            return sorted(found, key=lambda one: one[0]), True
                        with suppress(FileNotFoundError):
                            found.append((entry.name, entry.stat(follow_symlinks=False)))
            finally:
                os.close(listed)
        return sorted(found, key=lambda one: one[0]), False

    def _refused(self, parts: Parts, error: OSError) -> NotDone:
        why = error.strerror or type(error).__name__
        if isinstance(error, NotADirectoryError) or error.errno == errno.ELOOP:
            why = "it is a link, which is not followed, or what should be a folder is none"
        return NotDone(f"{self.shown(parts)!r}: {why}")
