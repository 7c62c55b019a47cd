"""Mail: mailboxes, folders of messages and maildirs; subject and body are the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from pathlib import PurePath
from typing import BinaryIO, TypeAlias

from corpus.sources.base import Complaints, SourceInfo, SourceWarnings
from corpus.sources.columns import Columns
from corpus.sources.html_text import text_of_html
from corpus.sources.lines import Decoder
from corpus.sources.options import ReadOptions
from corpus.sources.origin import Origin
from corpus.sources.packed import unpacking
from corpus.sources.rows import Place, RowSource
from executors.errors import SourceError

__all__ = ["open_mail"]

_HEADERS = ("message-id", "subject", "from", "to", "date")
_COLUMNS = (*_HEADERS, "body")
_FOLD = re.compile(r"\r?\n[ \t]+")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)

_Message: TypeAlias = "Message[str, str]"


def open_mail(
    name: str,
    origins: Callable[[SourceWarnings], Iterable[Origin]],
    options: ReadOptions,
    *,
    single: bool,
) -> RowSource:
    """Open mail files, each one message or a mailbox of many.

    Args:
        origins: lists the files anew each time.
        single: one file was named, so ids need no file in them.

    Raises:
        SourceError: a named column is none of a message's.
    """
    columns = _columns_of(options, name)

    def places(warnings: SourceWarnings, complaints: Complaints) -> Iterator[Place]:
        for origin in origins(warnings):
            for where, number, raw in _messages(origin):
                made = origin.name if number is None else str(number)
                if number is not None and not single:
                    made = f"{origin.name}:{number}"
                try:
                    yield where, made, _row(raw, where, warnings)
                except RecursionError:
                    complaints.add(where, "parts are nested deeper than can be read")

    info = SourceInfo(
        name=name,
        format="mail",
        id_column=columns.id,
        text_columns=columns.texts,
        said=columns.said,
        origins=(name,),
    )
    return RowSource(info=info, columns=columns, rows=places, on_bad=options.on_bad)


def _columns_of(options: ReadOptions, name: str) -> Columns:
    for column in (options.id, *options.text):
        if column is not None and column not in _COLUMNS:
            raise SourceError(
                f"no column {column!r}",
                where=name,
                hint=f"a message has: {', '.join(_COLUMNS)}",
            )
    texts = options.text or ("subject", "body")
    said = (
        f"id column {options.id!r} (as asked)"
        if options.id
        else "ids are paths, in mailboxes the message's number (--id message-id for its own)",
        f"text of each message: {' + '.join(texts)}",
    )
    return Columns(id=options.id, texts=texts, said=said)


def _messages(origin: Origin) -> Iterator[tuple[str, int | None, bytes]]:
    """Yield place, number (None for a file of one message) and bytes of each message."""
    with origin.open() as stream, unpacking(origin.name):
        first = stream.readline()
        if first.startswith(b"From "):
            yield from _mailbox(stream, origin.name)
        elif first or not _is_mailbox(origin.path):
            yield origin.name, None, first + stream.read()


def _is_mailbox(path: str) -> bool:
    """Whether an empty file is a mailbox without mail; else it is an empty message."""
    return path == "-" or ".mbox" in PurePath(path.casefold()).suffixes


def _mailbox(stream: BinaryIO, name: str) -> Iterator[tuple[str, int, bytes]]:
    """Part a mailbox at lines that begin with `From ` after a blank one."""
    number, begins, held, blank = 1, 1, list[bytes](), False
    for line_number, line in enumerate(stream, 2):
        if blank and line.startswith(b"From "):
            yield f"{name}:{begins}", number, _unquoted(held[:-1])
            number, begins, held = number + 1, line_number, []
        else:
            held.append(line)
        blank = not line.strip(b"\r\n")
    yield f"{name}:{begins}", number, _unquoted(held)


def _unquoted(lines: list[bytes]) -> bytes:
    return _QUOTED_FROM.sub(rb"\1", b"".join(lines))


def _row(raw: bytes, where: str, warnings: SourceWarnings) -> dict[str, object]:
    # The older policy never raises on headers that no standard allows.
    message: _Message = message_from_bytes(raw)
    row: dict[str, object] = {name: _header(message, name, warnings, where) for name in _HEADERS}
    row["body"] = _body(message, warnings, where)
    return row


def _header(message: _Message, name: str, warnings: SourceWarnings, where: str) -> str:
    raw = next((value for key, value in message.raw_items() if key.lower() == name), "")
    unfolded = _FOLD.sub(" ", raw).strip()
    plain = Decoder(None, warnings).decode(unfolded.encode("utf-8", "surrogateescape"), where)
    if "=?" not in plain:
        return plain
    try:
        pieces = decode_header(plain)
    except (HeaderParseError, ValueError):
        return plain
    return "".join(
        piece if isinstance(piece, str) else _decoded(piece, charset, warnings, where)
        for piece, charset in pieces
    )


def _body(message: _Message, warnings: SourceWarnings, where: str) -> str:
    """Return the plain parts of a message, else its HTML parts as text."""
    plain: list[str] = []
    marked: list[str] = []
    for part in message.walk():
        if part.is_multipart():
            continue
        kind = part.get_content_type()
        if part.get_content_disposition() == "attachment" or not kind.startswith("text/"):
            warnings.add("other-parts", where, kind)
            continue
        payload = part.get_payload(decode=True)
        raw = payload if isinstance(payload, bytes) else b""
        text = _decoded(raw, part.get_content_charset(), warnings, where)
        (marked if kind == "text/html" else plain).append(text)
    return "\n\n".join(plain if any(plain) or not marked else map(text_of_html, marked))


def _decoded(raw: bytes, charset: str | None, warnings: SourceWarnings, where: str) -> str:
    if charset is not None:
        try:
            return raw.decode(charset)
        except (LookupError, UnicodeDecodeError, ValueError):
            pass  # mislabelled, as mail often is
    return Decoder(None, warnings).decode(raw, where)
