"""Files below a folder, or of a pattern: in a fixed order, links out of it passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import has_magic, iglob
from pathlib import Path

from corpus.sources.base import SourceWarnings
from corpus.sources.intake import encodable
from corpus.sources.origin import FileOrigin
from executors.errors import SourceError

__all__ = ["Folder", "is_pattern", "is_run_directory"]


def is_pattern(path: str) -> bool:
    """Whether this is a glob pattern and no file of that very name."""
    return has_magic(path) and not Path(path).exists()


def is_run_directory(path: Path) -> bool:
    """Whether a folder is the directory of a run of ours: its records would be counted again."""
    if not (path / "events.jsonl").is_file():
        return False
    return (path / "receipt.json").is_file() or (path / "spool" / "records.bin").is_file()


class Folder:
    """Files below a folder, or those that match a pattern below its fixed part.

    Hidden files, links that lead out of the folder, links to folders and directories of our own
    runs are passed over and counted; what a pattern does not match is not asked for.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._pattern = is_pattern(path)
        self.root = _fixed_part(path) if self._pattern else Path(path)
        self._inside = self.root.resolve()
        self._runs: dict[Path, bool] = {}

    def files(self, warnings: SourceWarnings) -> Iterator[FileOrigin]:
        """List the files, each named by its path below the folder.

        Raises:
            SourceError: nothing matches the pattern.
        """
        if not self._pattern:
            yield from self._below(warnings)
            return
        found, runs = False, set[Path]()
        for path in sorted(iglob(self.name, recursive=True)):  # noqa: PTH207 - Path.glob takes no absolute patterns
            if (run := self._run_of(Path(path).parent)) is not None:
                runs.add(run)
            elif (origin := self._checked(Path(path), warnings)) is not None:
                found = True
                yield origin
        for run in sorted(runs):
            warnings.add("run-directories", self._below_root(run))
        if not found:
            raise SourceError(
                f"no file matches {self.name!r}",
                hint="quote the pattern, so that the shell leaves it",
            )

    def _below(self, warnings: SourceWarnings) -> Iterator[FileOrigin]:
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                warnings.add("unreadable-files", self._below_root(folder), error.strerror or "")
                continue
            below: list[Path] = []
            for entry in entries:
                path = Path(entry.path)
                if entry.name.startswith("."):
                    warnings.add("hidden-files", self._below_root(path))
                elif not entry.is_dir(follow_symlinks=False):
                    if (origin := self._checked(path, warnings)) is not None:
                        yield origin
                elif is_run_directory(path):
                    warnings.add("run-directories", self._below_root(path))
                else:
                    below.append(path)
            waiting.extend(reversed(below))

    def _checked(self, path: Path, warnings: SourceWarnings) -> FileOrigin | None:
        """Return the file, or None when it is a link out, a folder, or no plain file."""
        name = encodable(self._below_root(path), warnings, self._below_root(path))
        if path.is_symlink():
            target = path.resolve()
            if target.is_dir() or not target.is_relative_to(self._inside):
                warnings.add("outside-links", name)
                return None
        if path.is_dir():
            return None
        if not path.is_file():
            warnings.add("unreadable-files", name, "no plain file")
            return None
        return FileOrigin(path, name=name)

    def _run_of(self, folder: Path) -> Path | None:
        """Return the directory of a run that the folder is, or is in, below the root."""
        while folder not in (self.root, folder.parent):
            if folder not in self._runs:
                self._runs[folder] = is_run_directory(folder)
            if self._runs[folder]:
                return folder
            folder = folder.parent
        return None

    def _below_root(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path != self.root else path.as_posix()


def _fixed_part(pattern: str) -> Path:
    """Return the folder before the first part of a pattern that has wildcards."""
    fixed: list[str] = []
    for part in Path(pattern).parts[:-1]:
        if has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)
