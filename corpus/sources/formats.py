"""Which format a file has: by the magic of its first bytes, by its name, by what it begins with."""

from __future__ import annotations

from pathlib import PurePath
from typing import cast

import orjson

from corpus.sources.options import FORMATS, Format
from executors.errors import SourceError

__all__ = ["ROWS", "detect_format", "format_by_name", "looks_binary"]

ROWS: tuple[Format, ...] = ("csv", "json", "jsonl", "lines", "tsv")
"""Formats whose files hold many records, line by line or value by value."""

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".db": "sqlite",
    ".eml": "mail",
    ".json": "json",
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".log": "lines",
    ".mbox": "mail",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".tab": "tsv",
    ".tsv": "tsv",
    ".txt": "lines",
}
_PACKED = (".gz", ".gzip", ".zst", ".zstd")
_BINARY = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"BZh", b"\xfd7zXZ")
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def format_by_name(path: str) -> Format | None:
    """Return what the suffix says, that of a packed file standing before `.gz` or `.zst`."""
    suffixes = [s.casefold() for s in PurePath(path).suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def detect_format(path: str, head: bytes) -> Format:
    """Return the format of a file with these first bytes.

    Raises:
        SourceError: neither magic nor name nor content tells.
    """
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head.startswith(b"PAR1"):
        return "parquet"
    named = format_by_name(path)
    if named == "json" and _is_lines_of_json(head):
        return "jsonl"
    if named is not None:
        return named
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        return "jsonl" if _is_lines_of_json(head) else "json"
    if start.startswith((b"[{", b'["', b"[\n", b"[\r")):
        return "json"
    if head.startswith(b"From "):
        return "mail"
    if path == "-":
        return "lines"
    raise SourceError(
        f"cannot tell the format of {path!r}",
        hint=f"say it with --format (format=…), one of: {', '.join(FORMATS)}",
    )


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes are no text: a known magic, or NUL outside UTF-16 and UTF-32."""
    return head.startswith(_BINARY) or (b"\0" in head and not head.startswith(_MARKS))


def _is_lines_of_json(head: bytes) -> bool:
    """Whether the first line is a whole object that is a row, not the envelope of an array."""
    first, _, rest = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    try:
        value: object = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(value, dict):
        return False
    cells = cast("dict[str, object]", value).values()
    return rest.lstrip().startswith(b"{") or not any(isinstance(cell, list) for cell in cells)
