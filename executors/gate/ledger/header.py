"""Whether a file that is in use is still what it was: neither damaged, nor replaced, nor gone.

The descriptors are shared and counted. By POSIX, closing any descriptor of a file drops all locks
that the process has on it, SQLite's too; so one stays open for as long as any connection does.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Final

from executors.gate.ledger.schema import APPLICATION

__all__ = ["Header"]

_MAGIC: Final = b"SQLite format 3\0"
_ID: Final = APPLICATION.to_bytes(4, "big")
_users: dict[tuple[int, int], list[int]] = {}
"""Descriptor and users by device and number of the file."""
_guard = Lock()


class Header:
    """The first bytes of a ledger, watched from `Header(path)` to `close`.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _guard:
            self._file = _identity(path)
            if self._file not in _users:
                _users[self._file] = [os.open(path, os.O_RDONLY | os.O_CLOEXEC), 0]
            _users[self._file][1] += 1
            self._fd = _users[self._file][0]

    def is_intact(self) -> bool:
        """Say whether the path still leads to that file, and it to a ledger."""
        try:
            if _identity(self._path) != self._file:
                return False
            head = os.pread(self._fd, 72, 0)
        except OSError:
            return False
        return head.startswith(_MAGIC) and head[68:72] == _ID

    def close(self) -> None:
        """Let go of the file, after the connection."""
        with _guard:
            user = _users[self._file]
            user[1] -= 1
            if not user[1]:
                del _users[self._file]
                os.close(user[0])


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
