"""Files that results of a run were written to, so that whoever forgets a record knows of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from executors.journal.json_lines import decode
from rlm.runs.home import write_atomically

__all__ = ["exports_of", "note_export"]

_FILE: Final = "exports.json"


def note_export(directory: Path, path: Path) -> None:
    """Note that a file was written; a run that cannot be written to keeps no note of it."""
    known = exports_of(directory)
    named = path.absolute()
    if named not in known:
        with suppress(OSError, UnicodeEncodeError):
            write_atomically(directory / _FILE, json.dumps([str(one) for one in (*known, named)]))


def exports_of(directory: Path) -> tuple[Path, ...]:
    """Return the files, as far as they were noted."""
    try:
        noted = decode((directory / _FILE).read_bytes())
    except (OSError, ValueError):
        return ()
    listed = cast("list[object]", noted) if isinstance(noted, list) else []
    return tuple(Path(name) for name in listed if isinstance(name, str))
