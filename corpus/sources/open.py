"""The one entry: what a caller calls a corpus becomes a source."""

from __future__ import annotations

import difflib
import io
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast, get_args

from corpus.sources.arrow import open_parquet
from corpus.sources.base import OnBad, Source, SourceWarnings
from corpus.sources.files import FileRecords
from corpus.sources.folder import Folder, is_pattern
from corpus.sources.formats import ROWS, detect_format, format_by_name
from corpus.sources.frames import Frame, frame_of, open_frame
from corpus.sources.intake import encodable
from corpus.sources.lines import require_encoding
from corpus.sources.mail import open_mail
from corpus.sources.memory import AsyncMemorySource, Item, MemorySource, Opener
from corpus.sources.options import FORMATS, Format, ReadOptions
from corpus.sources.origin import FileOrigin, Origin, StreamOrigin, standard_input
from corpus.sources.piped import piped
from corpus.sources.sql import Connection, open_connection, open_sqlite
from corpus.sources.tables import open_table, open_tables
from executors.errors import SourceError, ValidationError

__all__ = ["SourceLike", "open_source"]

SourceLike = (
    str
    | Path
    | BinaryIO
    | Frame
    | Connection
    | Mapping[str, str]
    | Iterable[Item]
    | AsyncIterable[Item]
    | Opener
)
"""A path or pattern, `-` for standard input, a frame, a connection, or records in memory."""

_SNIFFED = 1 << 16


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
    """Open what is to be read; format and columns are decided from its first rows, and said.

    Args:
        source: a file, a folder, a pattern, `-`, an open binary file, a data frame, a database
            connection, a mapping of ids to texts, or an iterable (also asynchronous, or a
            function that returns one) of records, texts, pairs and mappings. A string is a path.
        id: the id column; detected when None, and made from line numbers where there is none.
        text: the text column, or columns, which a blank line parts; detected when None.
        query: a table or a SELECT, for databases.
        format: one of `FORMATS`; detected when None.
        encoding: of files of text; detected when None.
        on_bad: rows that are no record refuse the source, or are left out and counted ("skip").

    Raises:
        SourceError: no such path or column, or no column is clearly the text.
        ValidationError: an option outside its choices, or that has no meaning here.
        MissingExtra: the format needs an extra that is not installed.
    """
    if on_bad not in get_args(OnBad):
        raise ValidationError(f"unknown on_bad {on_bad!r}", hint="choose 'refuse' or 'skip'")
    options = ReadOptions(
        id=id,
        text=(text,) if isinstance(text, str) else tuple(text or ()),
        query=query,
        format=_require_format(format),
        encoding=require_encoding(encoding),
        on_bad=on_bad,
    )
    if isinstance(source, str | Path):
        return _open_path(str(source), options)
    if hasattr(source, "cursor"):
        return open_connection(cast(Connection, source), options)
    options.refuse_query("this is no database")
    return _open_object(cast("object", source), options)


def _require_format(told: str | None) -> Format | None:
    if told is None or told in FORMATS:
        return told
    raise ValidationError(f"unknown format {told!r}", hint=f"choose one of: {', '.join(FORMATS)}")


# ---------------------------------------------------------------- paths


def _open_path(path: str, options: ReadOptions) -> Source:
    if path == "-":
        return _open_stream(standard_input(), options)
    if (stream := piped(path)) is not None:
        return _open_stream(stream, options)
    if is_pattern(path) or Path(path).is_dir():
        return _open_folder(Folder(path), options)
    if not Path(path).exists():
        raise SourceError(f"no file or folder {path!r}", hint=_near(Path(path)))
    return _open_file(FileOrigin(path), options)


def _near(path: Path) -> str:
    """Suggest a name that is nearly the one asked for."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"there is no folder {str(path.parent)!r} either"
    close = difflib.get_close_matches(path.name, names, n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "check the path"


def _open_file(origin: FileOrigin, options: ReadOptions) -> Source:
    format_ = options.format or detect_format(origin.path, origin.head(_SNIFFED))
    if format_ == "sqlite":
        return open_sqlite(origin.path, options)
    options.refuse_query(f"{origin.path!r} is no database")
    if format_ in ROWS:
        return open_table(origin, options)

    def files(warnings: SourceWarnings) -> Iterable[Origin]:
        encodable(Path(origin.path).name, warnings, origin.name)
        return (origin,)

    return _open_files(origin.path, files, format_, options, single=True)


def _open_stream(origin: StreamOrigin, options: ReadOptions) -> Source:
    options.refuse_query("a stream is no database")
    head = origin.head(_SNIFFED)
    format_ = options.format or format_by_name(origin.path) or detect_format("-", head)
    # What a pipe is called may tell nothing, and nobody should have to ask again.
    options = replace(options, format=format_)
    if format_ in ROWS:
        return open_table(origin, options)
    if format_ == "mail":
        return open_mail(origin.name, lambda _: (origin,), options, single=True)
    raise SourceError(f"{format_} cannot be read from a stream", hint="store it in a file first")


def _open_folder(folder: Folder, options: ReadOptions) -> Source:
    options.refuse_query("a folder is no database")
    if options.format is None and _is_maildir(folder.root):
        return open_mail(folder.name, _maildir_files(folder), options, single=False)
    format_ = options.format or _common_format(folder)
    if format_ in ROWS:
        said = "the files are read one after another, as one source"
        return open_tables(folder.name, folder.files, options, said=said)
    if format_ == "sqlite":
        raise SourceError(f"{folder.name!r} holds databases", hint="name one of them")
    return _open_files(folder.name, folder.files, format_, options, single=False)


def _open_files(
    name: str,
    origins: Callable[[SourceWarnings], Iterable[Origin]],
    format_: Format,
    options: ReadOptions,
    *,
    single: bool,
) -> Source:
    match format_:
        case "mail":
            return open_mail(name, origins, options, single=single)
        case "parquet":
            return open_parquet(name, origins, options)
        case _:
            return FileRecords(name, origins, options, single=single)


def _common_format(folder: Folder) -> Format:
    """Return the format of all files, where they have one that holds many records; else text."""
    found: set[Format | None] = {
        format_by_name(origin.path) for origin in folder.files(SourceWarnings())
    }
    common = found.pop() if len(found) == 1 else None
    if common is None or common == "lines":
        return "text"
    return common


def _is_maildir(root: Path) -> bool:
    return all((root / name).is_dir() for name in ("cur", "new"))


def _maildir_files(folder: Folder) -> Callable[[SourceWarnings], Iterable[Origin]]:
    """List the delivered messages; `tmp` holds unfinished ones."""

    def files(warnings: SourceWarnings) -> Iterable[Origin]:
        return (f for f in folder.files(warnings) if f.name.partition("/")[0] in ("cur", "new"))

    return files


# ---------------------------------------------------------------- objects


def _open_object(source: object, options: ReadOptions) -> Source:
    if isinstance(source, bytes | bytearray):
        raise ValidationError("bytes are no source", hint="give a path, or io.BytesIO(…)")
    if isinstance(source, io.TextIOBase):
        raise ValidationError("a file opened as text is no source", hint="open it with mode 'rb'")
    if hasattr(source, "read"):
        stream = cast(BinaryIO, source)
        return _open_stream(StreamOrigin(stream, name=_name_of(stream)), options)
    frame = frame_of(source)
    if frame is not None:
        return open_frame(frame, options)
    if isinstance(source, Mapping):
        items = cast("Mapping[object, object]", source).items()
        return MemorySource(items, options)
    if isinstance(source, Iterable):
        return MemorySource(cast("Iterable[Item]", source), options)
    if isinstance(source, AsyncIterable) or callable(source):
        return AsyncMemorySource(cast("AsyncIterable[Item] | Opener", source), options)
    raise ValidationError(
        f"what has the type {type(source).__name__!r} is no source",
        hint="give a path, '-', a data frame, a database connection, or an iterable of records",
    )


def _name_of(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    return Path(name).name if isinstance(name, str) else "stream"
