"""Files that their owner alone may read, whatever the process would leave open to others."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

__all__ = ["open_private", "written_durably"]


def open_private(path: Path, mode: Literal["wb", "ab"], *, buffering: int = -1) -> BinaryIO:
    """Open a file for writing; where it is not there, it is made with mode 0600."""
    end = os.O_TRUNC if mode == "wb" else os.O_APPEND
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | end, 0o600)
    return os.fdopen(fd, mode, buffering)


@contextmanager
def written_durably(path: Path) -> Generator[BinaryIO]:
    """Write a new file, and wait until the disk has it."""
    with open_private(path, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
