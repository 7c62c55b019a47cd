"""The files of a folder as records: which are read, and of all others why they are not.

A link is never followed: what it leads to lies outside, or is met under its own name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from corpus.records import Record
from corpus.sources.base import SourceInfo, SourceWarnings, sound
from corpus.sources.folder import is_run_directory
from corpus.sources.formats import looks_binary
from corpus.sources.intake import encodable
from corpus.sources.lines import decode_whole
from corpus.sources.origin import FileOrigin
from executors.errors import SourceError, UsageError, ValidationError
from rlm.auditing.ignores import Ignores, Patterns
from rlm.auditing.withheld import begins_like_a_key, is_withheld

__all__ = ["AuditFolder", "Skip", "SkipReason"]

SkipReason = Literal[
    "binary",
    "excluded",
    "holds-secrets",
    "ignored",
    "link",
    "no-regular-file",
    "not-included",
    "outside-link",
    "run-directory",
    "too-big",
    "unreadable",
    "version-control",
]
"""Why something is not read.

binary           no text
excluded         the caller excludes it
holds-secrets    its name or its beginning is that of keys, passwords or the environment
ignored          a .gitignore says so
link             a link to something in the folder, which is met under its own name
no-regular-file  a device, a pipe or a socket
not-included     the caller includes others
outside-link     a link out of the folder, or to nothing
run-directory    a run of ours
too-big          more bytes than are read
unreadable       the system refuses it, or it is no text in any encoding known here
version-control  what a version control system keeps for itself
"""

_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_HEAD: Final = 8_192
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A file that was not read, or a folder that was not gone into."""

    path: str
    """Below the folder; that of a folder ends in a slash."""
    reason: SkipReason
    detail: str = ""


class AuditFolder:
    """A source whose records are the text files of a folder, each under its path below it.

    Args:
        include: patterns as `.gitignore` has them; none includes all files.
        exclude: patterns of files and folders to leave out.
        max_file_bytes: of a file that is read.

    Attributes:
        skips: what was not read, filled while the records are read.

    Raises:
        UsageError: there is no such folder.
        ValidationError: a pattern that is none, or a bound below 1.
    """

    in_loop = False

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_file_bytes: int = 1_000_000,
    ) -> None:
        self.root = Path(folder)
        if not self.root.is_dir():
            raise UsageError(
                f"{str(folder)!r} is no folder", hint="name the folder whose files to audit"
            )
        if isinstance(max_file_bytes, bool) or max_file_bytes < 1:
            raise ValidationError(f"max_file_bytes={max_file_bytes!r}", hint="give bytes from 1 on")
        self._include = Patterns(include, option="include")
        self._exclude = Patterns(exclude, option="exclude")
        self._most = max_file_bytes
        self._inside = self.root.resolve()
        self.skips: list[Skip] = []
        self.warnings = SourceWarnings()

    @property
    def info(self) -> SourceInfo:
        """What was decided; what was skipped is complete once all is read."""
        said = [f"each file is a record, its id is its path below {str(self.root)!r}"]
        reasons = Counter(skip.reason for skip in self.skips)
        if reasons:
            shown = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
            said.append(f"{len(self.skips):,} file(s) or folder(s) skipped: {shown}")
        name = str(self.root)
        return SourceInfo(name=name, format="text", said=tuple(said), origins=(name,))

    def records(self) -> Iterator[Record]:
        """Return the records, by path: the files of a folder before those of the folders in it."""
        self.warnings.clear()
        self.skips.clear()
        ignores = Ignores(self.root)
        waiting = [""]
        while waiting:
            below = waiting.pop()
            ignores.enter(below)
            folders: list[str] = []
            for entry in self._entries(below):
                path = f"{below}/{entry.name}" if below else entry.name
                if (skip := self._skip(entry, path, ignores)) is not None:
                    self.skips.append(skip)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif isinstance(found := self._read(entry, path), Skip):
                    self.skips.append(found)
                else:
                    yield found
            waiting.extend(reversed(folders))

    def _entries(self, below: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / below) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.skips.append(_skip(f"{below}/", "unreadable", error.strerror or ""))
            return []

    def _skip(self, entry: os.DirEntry[str], path: str, ignores: Ignores) -> Skip | None:
        folder = entry.is_dir(follow_symlinks=False)
        reason: SkipReason | None = None
        shown = f"{path}/" if folder else path
        if entry.name in _VERSION_CONTROL:
            reason = "version-control"
        elif is_withheld(entry.name, folder=folder):
            reason = "holds-secrets"
        elif entry.is_symlink():
            reason = self._link(Path(entry.path))
        elif ignores.match(path, folder=folder):
            reason = "ignored"
        elif self._exclude.match(shown):
            reason = "excluded"
        elif folder:
            reason = "run-directory" if is_run_directory(Path(entry.path)) else None
        elif self._include and not self._include.match(path):
            reason = "not-included"
        elif not entry.is_file(follow_symlinks=False):
            reason = "no-regular-file"
        return None if reason is None else _skip(shown, reason)

    def _link(self, path: Path) -> SkipReason:
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # it leads nowhere, or in a circle
            return "outside-link"
        return "link" if target.is_relative_to(self._inside) else "outside-link"

    def _read(self, entry: os.DirEntry[str], path: str) -> Record | Skip:
        try:
            size = entry.stat(follow_symlinks=False).st_size
            if size > self._most:
                return _skip(path, "too-big", f"{size:,} bytes; {self._most:,} are read")
            with Path(entry.path).open("rb") as file:
                head = file.read(_HEAD)
        except OSError as error:
            return _skip(path, "unreadable", error.strerror or "")
        if begins_like_a_key(head):
            return _skip(path, "holds-secrets", "it begins like a private key")
        if looks_binary(head) or head.startswith(_PACKED):
            return _skip(path, "binary")
        try:
            text = decode_whole(FileOrigin(entry.path, name=path), None, self.warnings)
        except SourceError as error:
            return _skip(path, "unreadable", error.what)
        name = encodable(path, self.warnings, path)
        return Record(id=name, text=encodable(text, self.warnings, name), where=name)


def _skip(path: str, reason: SkipReason, detail: str = "") -> Skip:
    return Skip(path=sound(path), reason=reason, detail=sound(detail))
