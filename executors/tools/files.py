"""Tools that work with the files of one folder: read, list and search them; write and edit on demand."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from executors.tools.base import Arguments, Tool, ToolContext
from executors.tools.grepping import Grep, GrepBounds, check_bounds
from executors.tools.rooted import NotDone, Parts, Root
from executors.tools.writing import Writing

__all__ = ["FileBounds", "file_tools"]

_PATH: Final = {"type": "string", "description": "From the folder on, such as src/a.py."}
_KINDS: Final = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBounds:
    """How much one call reads and gives."""

    lines: int = 400
    """Of a file, a call."""
    characters: int = 32_000
    """Of a file, a call."""
    line: int = 2_000
    """Bytes of one line; what is longer is cut there, and says so."""
    scanned: int = 256 * 1024 * 1024
    """Bytes that are passed over to come to the first line asked for."""
    entries: int = 1_000
    """Of a list."""
    written: int = 4 * 1024 * 1024
    """Bytes of a file that is written or edited."""
    grep: GrepBounds = field(default_factory=GrepBounds)

    def __post_init__(self) -> None:
        check_bounds(self, "lines", "characters", "line", "scanned", "entries", "written")


def file_tools(
    root: str | os.PathLike[str],
    *,
    write: bool = False,
    bounds: FileBounds | None = None,
    check: Callable[[str], str | None] | None = None,
) -> tuple[Tool, ...]:
    """Make tools that read the files below a folder, and write them where that is wanted.

    No link is followed, neither on the way nor at the end, whoever puts it there and when.

    Args:
        write: `write_file` and `edit_file` are among them.
        check: hears the path of each file and folder that a search comes to, and returns why it may not
            be read, or None.

    Raises:
        ValidationError: the folder is not there.
    """
    folder, most = Root(root), bounds or FileBounds()
    reading = _Reading(root=folder, bounds=most)
    search = Grep(root=folder, bounds=most.grep, check=check)
    tools = (_read_tool(reading), _list_tool(reading), _grep_tool(folder, search))
    if not write:
        return tools
    writing = Writing(root=folder, most=most.written)
    return (*tools, _write_tool(writing), _edit_tool(writing))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Reads and lists."""

    root: Root
    bounds: FileBounds

    def read(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Give lines of a file, each with its number."""
        del context
        parts = self.root.parts(arguments.get("path"))
        first = _whole(arguments.get("first", 1), "first")
        most = min(_whole(arguments.get("lines", self.bounds.lines), "lines"), self.bounds.lines)
        lines, more = self._lines(parts, first, most)
        text = "\n".join(f"{first + at}\t{line}" for at, line in enumerate(lines))
        given: dict[str, object] = {"path": self.root.shown(parts), "text": text}
        return {**given, "next": first + len(lines)} if more else given

    def _lines(self, parts: Parts, first: int, most: int) -> tuple[list[str], bool]:
        found: list[str] = []
        passed = room = 0
        with self.root.file(parts) as fd, os.fdopen(os.dup(fd), "rb") as file:
            for number in range(1, first + most):
                line, length = self._line(file.readline)
                if not length:
                    return found, False
                if number < first:
                    passed += length
                    if passed > self.bounds.scanned:
                        raise NotDone(f"line {first:,} is more than {passed:,} bytes into the file")
                    continue
                if number == first and b"\0" in line:
                    raise NotDone(f"{self.root.shown(parts)!r} is no text")
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                text = text if length == len(line) else f"{text}… [{length:,} bytes]"
                room += len(text)
                if found and room > self.bounds.characters:
                    return found, True
                found.append(text)
            return found, bool(file.read(1))

    def _line(self, readline: Callable[[int], bytes]) -> tuple[bytes, int]:
        """Return the beginning of the next line, and how many bytes it has."""
        kept = piece = readline(self.bounds.line)
        length = len(piece)
        while piece and not piece.endswith(b"\n"):
            piece = readline(65_536)
            length += len(piece)
            if piece == b"\n" and length == len(kept) + 1:
                kept += piece
        return kept, length

    def list(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Give what is in a folder, by name."""
        del context
        parts = self.root.parts(arguments.get("path", ""))
        entries, more = self.root.entries(parts, self.bounds.entries)
        listed = [_entry(name, found) for name, found in entries]
        return {"path": self.root.shown(parts), "entries": listed, "more": more}


def _entry(name: str, found: os.stat_result) -> dict[str, object]:
    kind = next((kind for is_one, kind in _KINDS if is_one(found.st_mode)), "other")
    entry: dict[str, object] = {"name": name, "kind": kind}
    return {**entry, "bytes": found.st_size} if kind == "file" else entry


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise NotDone(f"{name} is a whole number from 1, not {value!r}"[:200])
    return value


# ---------------------------------------------------------------- what a model is told


def _read_tool(reading: _Reading) -> Tool:
    count = {"type": "integer", "minimum": 1}
    return Tool(
        name="read_file",
        description="Read lines of a text file, each with its number. Where the file goes on, `next` "
        "says from which line.",
        parameters=_schema({"path": _PATH, "first": count, "lines": count}, "path"),
        execute=reading.read,
        kind="read",
        parallel=True,
        idempotent=True,
        paths=_touching(reading.root),
        judged=reading.root.absolute,
    )


def _list_tool(reading: _Reading) -> Tool:
    return Tool(
        name="list_files",
        description="List a folder: names, what they are, and bytes of files.",
        parameters=_schema({"path": _PATH}),
        execute=reading.list,
        kind="read",
        parallel=True,
        idempotent=True,
        judged=reading.root.absolute,
    )


def _grep_tool(root: Root, search: Grep) -> Tool:
    return Tool(
        name="grep",
        description="Find lines by a regular expression (RE2), in a file or in all files below a "
        "folder. (?i) ignores case.",
        parameters=_schema({"pattern": {"type": "string"}, "path": _PATH}, "pattern"),
        execute=search,
        kind="read",
        parallel=True,
        idempotent=True,
        judged=root.absolute,
    )


def _write_tool(writing: Writing) -> Tool:
    return Tool(
        name="write_file",
        description="Write a file whole; one that is there is replaced.",
        parameters=_schema({"path": _PATH, "content": {"type": "string"}}, "path", "content"),
        execute=writing.write,
        kind="write",
        parallel=True,
        idempotent=True,
        paths=_touching(writing.root),
        judged=writing.root.absolute,
    )


def _edit_tool(writing: Writing) -> Tool:
    text = {"type": "string"}
    return Tool(
        name="edit_file",
        description="Replace the text `old`, which has to stand exactly once in a file, by `new`.",
        parameters=_schema({"path": _PATH, "old": text, "new": text}, "path", "old", "new"),
        execute=writing.edit,
        kind="edit",
        parallel=True,
        paths=_touching(writing.root),
        judged=writing.root.absolute,
    )


def _schema(properties: dict[str, object], *required: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _touching(root: Root) -> Callable[[Arguments], Collection[str]]:
    def touched(arguments: Arguments) -> Collection[str]:
        return (str(root.absolute(arguments)["path"]),)

    return touched
