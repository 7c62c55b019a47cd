"""Run directories that were not made here: what they hold is looked at, and leads nowhere.

Such a directory may come from an archive that anybody packed. A link in it could have us read, or
write over, what lies elsewhere; a pipe could have us wait for ever. Directories of our own may hold
links: who can put them there can do so much more.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from executors.errors import RunDirError
from rlm.runs.home import MANIFEST

__all__ = ["is_foreign", "refuse_links"]


def is_foreign(directory: Path) -> bool:
    """Return whether a run directory was made elsewhere; also where its manifest cannot be read."""
    from rlm.runs.manifest import Manifest  # pydantic is heavy, and only manifests need it

    path = directory / MANIFEST
    try:
        return not stat.S_ISREG(path.lstat().st_mode) or Manifest.load(directory).foreign
    except (OSError, RunDirError):
        return True


def refuse_links(directory: Path) -> None:
    """Refuse a foreign run directory that holds anything but folders and plain files.

    Raises:
        RunDirError: it does, or it cannot be looked through.
    """
    if not directory.is_dir() or not is_foreign(directory):
        return
    try:
        for entry in _entries(directory):
            mode = entry.stat(follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                what = "a link" if stat.S_ISLNK(mode) else "no plain file"
                raise RunDirError(
                    f"the run in {str(directory)!r} was made elsewhere, and holds {what}",
                    where=entry.path,
                    hint="look where it comes from; then put the file itself in that place",
                )
    except OSError as error:
        raise RunDirError(
            f"the run directory {str(directory)!r} cannot be read: {error.strerror or error}",
            where=str(error.filename or directory),
        ) from error


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    """Yield all there is in a directory; what is a link to a folder is not entered."""
    folders = [directory]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
