"""Finding lines in the files of a folder, in time linear in what is read (RE2)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Protocol, cast

from executors.characters import sound
from executors.errors import ValidationError
from executors.tools.base import Arguments, Execute, ToolContext
from executors.tools.rooted import NotDone, Parts, Root

__all__ = ["Grep", "GrepBounds", "check_bounds"]

_LINE: Final = 300  # characters of a line that are shown
_LONGEST: Final = 1_000  # characters of a pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepBounds:
    """How much one search reads and gives."""

    matches: int = 200
    files: int = 20_000
    file: int = 8 * 1024 * 1024
    """Bytes of one file; the rest of a longer one is not read, and the result says so."""
    total: int = 256 * 1024 * 1024
    """Bytes of all files."""

    def __post_init__(self) -> None:
        check_bounds(self, "matches", "files", "file", "total")


def check_bounds(bounds: object, *names: str) -> None:
    """Refuse bounds that bound nothing.

    Raises:
        ValidationError: one that is no whole number from 1.
    """
    for name in names:
        value: object = getattr(bounds, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValidationError(
                f"{name}={value!r} is no bound of a file tool", hint="give a whole number from 1"
            )


class _Match(Protocol):
    def start(self) -> int: ...


class _Expression(Protocol):
    def finditer(self, text: bytes) -> Iterator[_Match]: ...


@dataclass(slots=True, kw_only=True)
class _Found:
    matches: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    files: int = 0
    bytes: int = 0
    skipped: int = 0
    """Files that are no text, cannot be read, or may not be."""
    full: bool = False
    """A bound ends the search."""
    more: bool = False
    """Something was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grep:
    """Searches the files below a folder."""

    root: Root
    bounds: GrepBounds
    check: Callable[[str], str | None] | None
    """Why a file or folder may not be read, by its path from / on; None where it may."""

    def __call__(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Search, and give the lines that match.

        Raises:
            NotDone: no pattern, or a path that leads elsewhere.
        """
        del context
        expression = _compiled(arguments.get("pattern"))
        found = _Found()
        for parts in self._files(self.root.parts(arguments.get("path", "")), found):
            if found.full or found.files >= self.bounds.files or found.bytes >= self.bounds.total:
                found.more = True
                break
            self._search(parts, expression, found)
        return {
            "matches": found.matches,
            "files": found.files,
            "skipped": found.skipped,
            "more": found.more,
        }

    def checked(self, check: Callable[[str], str | None]) -> Execute:
        """Return one whose every file and folder has to pass another check, too."""
        own = self.check

        def both(path: str) -> str | None:
            return (None if own is None else own(path)) or check(path)

        return replace(self, check=both)

    def _files(self, start: Parts, found: _Found) -> Iterator[Parts]:
        """Go through the files in the order of their names; links are not followed."""
        waiting = [start]
        while waiting:
            parts = waiting.pop()
            if self._is_refused(parts):
                continue
            try:
                entries, more = self.root.entries(parts, self.bounds.files)
            except NotDone:
                if parts == start:
                    yield parts  # it may be a file
                continue
            found.more = found.more or more
            for name, one in entries:
                if stat.S_ISREG(one.st_mode) and not self._is_refused((*parts, name)):
                    yield (*parts, name)
            folders = [(*parts, name) for name, one in entries if stat.S_ISDIR(one.st_mode)]
            waiting.extend(reversed(folders))

    def _is_refused(self, parts: Parts) -> bool:
        return (
            self.check is not None and self.check(str(self.root.path.joinpath(*parts))) is not None
        )

    def _search(self, parts: Parts, expression: _Expression, found: _Found) -> None:
        try:
            data, cut = self._read(parts)
        except NotDone:
            found.skipped += 1
            return
        found.files += 1
        found.bytes += len(data)
        if b"\0" in data[:8192]:
            found.skipped += 1
            return
        found.more = found.more or cut
        line, counted, last = 1, 0, 0
        for match in expression.finditer(data):
            at = match.start()
            line += data.count(b"\n", counted, at)
            counted = at
            if line == last:
                continue
            if len(found.matches) >= self.bounds.matches:
                found.full = found.more = True
                return
            last = line
            text = _line(data, at)
            found.matches.append({"path": self.root.shown(parts), "line": line, "text": text})

    def _read(self, parts: Parts) -> tuple[bytes, bool]:
        if self._is_refused(parts):
            raise NotDone("it may not be read")
        with self.root.file(parts) as fd, os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(self.bounds.file + 1)
        return data[: self.bounds.file], len(data) > self.bounds.file


def _line(data: bytes, at: int) -> str:
    begin = max(data.rfind(b"\n", 0, at) + 1, at - _LINE)
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end
    text = data[begin : min(end, begin + 4 * _LINE)].decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= _LINE else f"{text[:_LINE]}…"


def _compiled(pattern: object) -> _Expression:
    if not isinstance(pattern, str) or not pattern or len(pattern) > _LONGEST:
        raise NotDone(f"a pattern is a text of 1 to {_LONGEST:,} characters")
    re2: Any = import_module("re2")  # it has no types, and loads with the first search
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(b"(?m)" + sound(pattern).encode("utf-8"), options)
    except re2.error as error:
        raise NotDone(f"{pattern[:200]!r} is no pattern: {str(error)[:200]}") from None
    return cast("_Expression", compiled)
