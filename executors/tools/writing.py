"""Writing files of a folder: whole, or one place of them; a reader sees the old one or the new one."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from executors.tools.base import Arguments, ToolContext
from executors.tools.rooted import NotDone, Parts, Root

__all__ = ["Writing"]

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Writes below a folder."""

    root: Root
    most: int
    """Bytes of a file."""

    def write(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Write a file whole, and the folders it needs.

        Raises:
            NotDone: it leads elsewhere, is too long, or something else is there.
        """
        del context
        parts, data = self.root.parts(arguments.get("path")), _bytes(arguments.get("content"))
        new = self._replace(parts, data, make=True)
        return {"path": self.root.shown(parts), "bytes": len(data), "new": new}

    def edit(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Replace a text that stands exactly once in a file.

        Raises:
            NotDone: it stands there not at all or more than once, or the file cannot be written.
        """
        del context
        parts = self.root.parts(arguments.get("path"))
        old, new = _bytes(arguments.get("old")), _bytes(arguments.get("new"))
        if not old:
            raise NotDone("old is empty: give the text that is to be replaced")
        data = self._read(parts)
        at = data.find(old)
        if at < 0:
            raise NotDone("old does not stand in the file: give it letter by letter, line ends too")
        if data.find(old, at + 1) >= 0:
            raise NotDone("old stands there more than once: give more of what is around it")
        line = data.count(b"\n", 0, at) + 1
        self._replace(parts, data[:at] + new + data[at + len(old) :], make=False)
        return {"path": self.root.shown(parts), "line": line}

    def _read(self, parts: Parts) -> bytes:
        with self.root.file(parts) as fd, os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(self.most + 1)
        self._bound(data)
        return data

    def _bound(self, data: bytes) -> None:
        if len(data) > self.most:
            raise NotDone(f"it has more than {self.most:,} bytes")

    def _replace(self, parts: Parts, data: bytes, *, make: bool) -> bool:
        """Put a file in its place at once: a link, or another name of the old one, stays as it was."""
        if not parts:
            raise NotDone("the folder itself is no file")
        self._bound(data)
        with self.root.folder(parts[:-1], make=make) as fd:
            mode = self._mode(parts, fd)
            beside = f".{secrets.token_hex(8)}.new"
            try:
                _write(beside, fd, data, 0o666 if mode is None else mode, exact=mode is not None)
                os.replace(beside, parts[-1], src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside, dir_fd=fd)
                raise
        return mode is None

    def _mode(self, parts: Parts, fd: int) -> int | None:
        """Return the rights of the file that is there; None where none is."""
        try:
            found = os.stat(parts[-1], dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise NotDone(f"{self.root.shown(parts)!r} is a link or a folder, and no plain file")
        return stat.S_IMODE(found.st_mode) & 0o777


def _write(name: str, folder: int, data: bytes, mode: int, *, exact: bool) -> None:
    opened = os.open(name, _NEW, mode, dir_fd=folder)
    with os.fdopen(opened, "wb") as file:
        if exact:
            os.fchmod(opened, mode)
        file.write(data)


def _bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise NotDone(f"{type(text).__name__} is no text")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotDone("the text holds half a character, which no file can") from None
