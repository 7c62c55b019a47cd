"""The text of a configuration's file, bounded."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from executors.errors import ConfigError

__all__ = ["read_text"]

_LONGEST: Final = 1_000_000
"""Bytes."""


def read_text(path: Path) -> str:
    """Return what stands in a file.

    Raises:
        ConfigError: it is missing, no plain file, no UTF-8, or longer than 1 MB.
    """
    try:
        # Whoever opens a named pipe otherwise waits for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            raw = _read(handle)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise _refused(path, f"it cannot be read: {said}") from None
    if raw is None:
        raise _refused(path, "it is no plain file")
    if len(raw) > _LONGEST:
        raise _refused(path, f"it is longer than {_LONGEST:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(path, f"byte {error.start:,} is no UTF-8") from None


def _read(handle: int) -> bytes | None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        return None
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(_LONGEST + 1)


def _refused(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{str(path)!r} is no configuration of a gate: {why}",
        hint="name a file of YAML, TOML or JSON with the sections of a gate",
    )
