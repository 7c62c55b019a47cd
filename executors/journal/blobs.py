"""What is too long for a line: files named by their hash, each durable before it is named."""

from __future__ import annotations

import os
import secrets
from hashlib import blake2b
from pathlib import Path
from typing import Final

from executors.journal.syncing import sync_folder

__all__ = ["LONGEST_LINE", "blob_name", "read_blob", "write_blob"]

LONGEST_LINE: Final = 32 * 1024  # bytes; what is longer goes to a blob


def blob_name(data: bytes) -> str:
    """Return the name of a blob: 128 bits of BLAKE2b as hex."""
    return blake2b(data, digest_size=16).hexdigest()


def write_blob(folder: Path, data: bytes) -> str:
    """Return the name under which the data is durable. Blocks until it is."""
    name = blob_name(data)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = folder / f".{name}.{secrets.token_hex(4)}"
    try:
        fd = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        half.replace(folder / name)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return name


def read_blob(folder: Path, name: str) -> bytes | None:
    """Return a blob; None when it is gone, or not what was written."""
    try:
        data = (folder / name).read_bytes()
    except OSError:
        return None
    return data if blob_name(data) == name else None
