"""Opening a corpus: what `count` reads, with its columns named once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import iglob
from pathlib import Path
from typing import TypeGuard

from corpus.sources import OnBad, Source, SourceLike, open_source
from corpus.sources.folder import is_pattern
from executors.errors import ValidationError

__all__ = ["Corpus", "Spec", "open_corpus", "require_outside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """How a corpus was opened; see `open_corpus`."""

    source: str
    id: str | None = None
    text: str | tuple[str, ...] | None = None
    query: str | None = None
    format: str | None = None
    encoding: str | None = None
    on_bad: OnBad = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A source that was checked and can be read."""

    source: Source
    column: Callable[[str], Source]
    """Opens the same source with another column as its text: labels, say. Rows without it are
    left out. Raises SourceError where there is no such column, listing those that are there."""
    spec: Spec | None = None
    """How it was opened, where it can be opened again: from a path, a glob or a database file."""


def open_corpus(
    source: SourceLike | Corpus,
    *,
    id: str | None = None,  # noqa: A002 - the user's own word for it
    text: str | Sequence[str] | None = None,
    query: str | None = None,
    format: str | None = None,  # noqa: A002 - the user's own word for it
    encoding: str | None = None,
    on_bad: OnBad = "refuse",
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
        on_bad: "refuse" rows that are no record, or "skip" them: left out, counted and listed.

    Raises:
        SourceError: it cannot be read as asked.
    """
    if isinstance(source, Corpus):
        return source
    opened = open_source(
        source, id=id, text=text, query=query, format=format, encoding=encoding, on_bad=on_bad
    )

    def column(name: str) -> Source:
        return open_source(
            source,
            id=opened.info.id_column or id,
            text=name,
            query=query,
            format=format,
            encoding=encoding,
            on_bad="skip",
        )

    spec: Spec | None = None
    if _is_named(source):
        spec = Spec(
            source=str(Path(source).absolute()),
            id=id,
            text=text if isinstance(text, str | None) else tuple(text),
            query=query,
            format=format,
            encoding=encoding,
            on_bad=on_bad,
        )
    return Corpus(source=opened, column=column, spec=spec)


def _is_named(source: object) -> TypeGuard[str | Path]:
    """Whether a source is one that the same words open again, and that JSON can hold."""
    if not isinstance(source, str | Path) or str(source) == "-":
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in str(source))  # stray bytes


def require_outside(source: str, path: Path, *, option: str) -> None:
    """Refuse a file that would be read as records of the folder or pattern it is written to.

    Raises:
        ValidationError: the source is a folder around it, or a pattern that it matches.
    """
    target = path.resolve()
    if is_pattern(source):
        inside = any(target == Path(found).resolve() for found in iglob(source, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute patterns
    else:
        inside = Path(source).is_dir() and target.is_relative_to(Path(source).resolve())
    if inside:
        raise ValidationError(
            f"{option}={str(path)!r} lies in the source {source!r}",
            where="the next count would read it as records",
            hint="name a place outside of it",
        )
