"""Appending to the audit: whole lines in one write(2) each, so that many processes may share a file.

A writer that is killed, or whose disk is full, may leave half a line. Nobody's next line is joined to
it: whoever appends looks at the last byte first, unless the file is as they left it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Final

from executors.errors import DiskFault

__all__ = ["AuditFile"]

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class AuditFile:
    """The open file. Folders that are made for it are 0700, it is 0600. Not safe in threads.

    Raises:
        DiskFault: it cannot be opened for writing, or is a link, or no file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fault: DiskFault | None = None
        self._fd = -1
        self._end = -1
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(path, _FLAGS, 0o600)
            status = os.fstat(self._fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError("it is no plain file")
            if status.st_uid == os.geteuid() and status.st_mode & 0o077:
                os.fchmod(self._fd, 0o600)
        except (OSError, ValueError) as error:
            self.close()
            raise self._failed(error) from error

    def append(self, lines: bytes) -> None:
        """Append whole lines, all of them or none that a reader takes for one.

        Raises:
            DiskFault: they could not be written; nothing is written any more from then on.
        """
        if self._fault is not None:
            raise copy(self._fault)
        try:
            begin = self._begin()
            data = lines if begin else b"\n" + lines
            written = os.write(self._fd, data)
            if written != len(data):
                raise OSError(f"only {written:,} of {len(data):,} bytes could be written")
            self._end = os.lseek(self._fd, 0, os.SEEK_CUR)
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the file; nothing happens where it is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)
        self._fault = self._fault or DiskFault("the audit is closed", where=str(self.path))

    def _begin(self) -> bool:
        """Whether the end of the file is the begin of a line."""
        status = os.fstat(self._fd)
        if status.st_nlink == 0:
            raise OSError("somebody deleted it")
        size = status.st_size
        return size in (0, self._end) or os.pread(self._fd, 1, size - 1) == b"\n"

    def _failed(self, error: Exception) -> DiskFault:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self._fault = DiskFault(
            f"the audit cannot be written: {why}",
            where=str(self.path),
        )
        return copy(self._fault)
