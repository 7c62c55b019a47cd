"""The one entry: what a caller calls a corpus becomes a source."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from corpus.sources.base import OnBad, Source
from corpus.sources.lines import require_encoding
from corpus.sources.memory import AsyncMemorySource, Item, MemorySource, Opener
from corpus.sources.options import FORMATS, Format, ReadOptions
from corpus.sources.origin import FileOrigin, standard_input
from corpus.sources.tables import open_table
from executors.errors import ValidationError

__all__ = ["SourceLike", "open_source"]

SourceLike = str | Path | Iterable[Item] | Mapping[str, str] | AsyncIterable[Item] | Opener
"""A path, `-` for standard input, or records in memory."""


def open_source(
    source: SourceLike,
    *,
    id: str | None = None,  # noqa: A002 - the caller's own word for it
    text: str | Sequence[str] | None = None,
    query: str | None = None,
    format: str | None = None,  # noqa: A002 - the caller's own word for it
    encoding: str | None = None,
    on_bad: OnBad = "refuse",
) -> Source:
    """Open what is to be read, and decide its format and columns from its first rows.

    Args:
        source: a path, `-`, or records in memory; a plain string is always a path.
        id: the id column; None to detect it.
        text: the text column or columns; None to detect them.
        query: a table or a SELECT, for databases.
        format: None to detect it.
        encoding: None to detect it.
        on_bad: whether rows that are no record refuse the source or are left out and counted.

    Raises:
        SourceError: no such path or column, or no column is clearly the text.
        ValidationError: an unknown format or encoding.
    """
    options = ReadOptions(
        id=id,
        text=(text,) if isinstance(text, str) else tuple(text or ()),
        query=query,
        format=_require_format(format),
        encoding=require_encoding(encoding),
        on_bad=on_bad,
    )
    if isinstance(source, str | Path):
        origin = standard_input() if str(source) == "-" else FileOrigin(source)
        return open_table(origin, options)
    if isinstance(source, Mapping):
        return MemorySource(cast("Mapping[str, str]", source).items(), options)
    if isinstance(source, Iterable):
        return MemorySource(cast("Iterable[Item]", cast("object", source)), options)
    return AsyncMemorySource(source, options)


def _require_format(told: str | None) -> Format | None:
    if told is None or told in FORMATS:
        return told
    raise ValidationError(f"unknown format {told!r}", hint=f"choose one of {', '.join(FORMATS)}")
