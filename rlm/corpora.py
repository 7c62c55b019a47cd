"""Opening a corpus: what `count` reads, with its columns named once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus.sources import Source, SourceLike, open_source

__all__ = ["Corpus", "open_corpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A source that was checked and can be read."""

    source: Source
    origin: SourceLike
    id: str | None
    query: str | None
    format: str | None
    encoding: str | None

    def column(self, name: str) -> Source:
        """Return the same source with another column as its text: labels, say.

        Raises:
            SourceError: there is no such column; the message lists those that are there.
        """
        return open_source(
            self.origin,
            id=self.source.info.id_column or self.id,
            text=name,
            query=self.query,
            format=self.format,
            encoding=self.encoding,
        )


def open_corpus(
    source: SourceLike | Corpus,
    *,
    id: str | None = None,  # noqa: A002 - the user's own word for it
    text: str | Sequence[str] | None = None,
    query: str | None = None,
    format: str | None = None,  # noqa: A002 - the user's own word for it
    encoding: str | None = None,
) -> Corpus:
    """Check a source and choose its columns; nothing but its head is read yet.

    Args:
        source: a path or glob, "-" for standard input, a data frame, an open DB-API connection
            (with `query`), or an iterable of records, (id, text) pairs, mappings or strings.
        id: name of the id column; detected, and said, when None.
        text: name or names of the text columns; several are joined by a blank line.
        query: read-only SQL, for databases.
        format: overrules what name and content say: "jsonl", "csv", "text", …
        encoding: overrules the detection of the encoding of text files.

    Raises:
        SourceError: it cannot be read as asked.
    """
    if isinstance(source, Corpus):
        return source
    return Corpus(
        source=open_source(source, id=id, text=text, query=query, format=format, encoding=encoding),
        origin=source,
        id=id,
        query=query,
        format=format,
        encoding=encoding,
    )
