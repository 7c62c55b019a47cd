"""Which files a folder says are none of its own: its `.gitignore`, and those above and below it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pathspec import GitIgnoreSpec

from executors.errors import ValidationError

__all__ = ["Ignores", "Patterns"]

_NAME: Final = ".gitignore"
_MOST_BYTES: Final = 1 << 20


class Patterns:
    """Patterns as `.gitignore` has them, named by whoever gave them.

    Raises:
        ValidationError: one of them is none, and the caller gave it.
    """

    def __init__(self, patterns: Sequence[str], *, option: str) -> None:
        for pattern in patterns:
            if not pattern.strip() or _spec([pattern]) is None:
                raise ValidationError(
                    f"{option}={pattern!r} is no pattern",
                    hint=f"give one as .gitignore has them, as in {option} '*.py' or 'tests/'",
                )
        self._spec = _lines_spec(patterns)
        self._given = bool(patterns)

    def __bool__(self) -> bool:
        return self._given

    def match(self, path: str) -> bool:
        """Whether a path is meant; the path of a folder ends in a slash."""
        return self._spec.check_file(path).include is True


class Ignores:
    """Knows which paths below a folder are ignored; files nearer to a path have the last word.

    Also heard are the `.gitignore` of the folders above, up to the one that holds `.git`, and its
    `info/exclude`. What a user ignores everywhere, by a setting of his own, is not.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._specs: dict[Path, list[GitIgnoreSpec]] = {}
        top = _top_of(self._root)
        if top is not None:
            self._add(top, top / ".git" / "info" / "exclude")
            for folder in reversed(self._root.parents):
                if folder.is_relative_to(top):
                    self._add(folder, folder / _NAME)

    def enter(self, below: str) -> None:
        """Read the `.gitignore` of a folder, named by its path below the root ("" for the root).

        To be called for each folder that is gone into, before its entries are asked about, and
        always for a folder before those below it.
        """
        folder = self._root / below
        self._add(folder, folder / _NAME)

    def match(self, below: str, *, folder: bool) -> bool:
        """Whether a path below the root is ignored."""
        path = self._root / below
        for above in path.parents:
            for spec in reversed(self._specs.get(above, [])):
                name = path.relative_to(above).as_posix() + ("/" if folder else "")
                if (include := _said(spec, name)) is not None:
                    return include
        return False

    def _add(self, folder: Path, file: Path) -> None:
        if (lines := _lines(file)) and (spec := _spec(lines)) is not None:
            self._specs.setdefault(folder, []).append(spec)


def _said(spec: GitIgnoreSpec, name: str) -> bool | None:
    """Return whether patterns ignore this very path; None where they say nothing of it.

    The library also takes what speaks of a folder above. Git asks about that folder when it comes to
    it, and so do we: else "!a" would bring back "a/b.py", which "*.py" ignores.
    """
    for pattern in reversed(list(spec.patterns)):
        found: Any = pattern.match_file(name)  # its match is not typed to the end
        if found is None:
            continue
        match: re.Match[str] = found.match
        if _is_of(match, name):
            return pattern.include
    return None


def _is_of(match: re.Match[str], name: str) -> bool:
    """Whether a match means this very path; the one group of a pattern is the slash behind a folder."""
    whole = match.end() == len(name)
    if match.lastindex is None:  # "d/**" means all that is inside of a folder, and not the folder
        return not (whole and name.endswith("/"))
    return whole


def _top_of(folder: Path) -> Path | None:
    """Return the nearest folder from here upwards that holds `.git`."""
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; none where there is none, or where it is a link, as for git."""
    try:
        if file.is_symlink() or not file.is_file():
            return []
        with file.open("rb") as stream:
            return os.fsdecode(stream.read(_MOST_BYTES).removeprefix(b"\xef\xbb\xbf")).splitlines()
    except OSError:
        return []


def _spec(lines: Iterable[str]) -> GitIgnoreSpec | None:
    """Return the patterns; lines that are none, such as a lone "!", mean nothing to git either."""
    kept: list[str] = []
    for text in lines:
        try:
            _lines_spec([text])
        except ValueError:
            continue
        kept.append(text)
    return _lines_spec(kept) if kept else None


def _lines_spec(lines: Iterable[str]) -> GitIgnoreSpec:
    # The other back ends of the library, taken where they are installed, refuse names that are no
    # Unicode.
    return GitIgnoreSpec.from_lines(lines, backend="simple")
