"""Reading a source in a test: what came out, and what was counted on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpus.records import Record
from corpus.sources import Source

__all__ = ["counted", "pairs", "records_of", "stored"]


def records_of(source: Source) -> list[Record]:
    """Return all records of a source that is no asynchronous one."""
    records = source.records()
    assert isinstance(records, Iterator)
    return list(records)


def pairs(source: Source) -> list[tuple[str, str]]:
    """Return ids and texts."""
    return [(record.id, record.text) for record in records_of(source)]


def counted(source: Source) -> dict[str, int]:
    """Return the oddities of a source that was read."""
    return {warning.code: warning.count for warning in source.warnings}


def stored(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file, folders included, and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path
