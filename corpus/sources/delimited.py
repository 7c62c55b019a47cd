"""CSV and TSV by RFC 4180, with its own line numbers and without limits.

The standard parser's field limit belongs to the whole process, and it cannot say on which line an
open quote began; so fields are cut here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from corpus.sources.base import Complaints, SourceWarnings
from corpus.sources.lines import text_lines
from corpus.sources.origin import Origin
from executors.errors import SourceError

__all__ = ["DelimitedRows", "sniff_delimiter"]

_DELIMITERS = ",\t;|"
_LONGEST_QUOTE = 1 << 28
"""Characters after which an open quote is taken for a forgotten one."""

_Lines = Iterator[tuple[int, str]]


class DelimitedRows:
    """Rows of a CSV or TSV file with a header.

    Args:
        origin: where the bytes come from.
        encoding: as told, None to detect.
        delimiter: None to take it from the header.
    """

    def __init__(
        self,
        origin: Origin,
        encoding: str | None,
        warnings: SourceWarnings,
        complaints: Complaints,
        delimiter: str | None = None,
    ) -> None:
        self._origin = origin
        self._encoding = encoding
        self._warnings = warnings
        self._complaints = complaints
        self.delimiter = delimiter
        self.header: list[str] = []

    def rows(
        self, wanted: Sequence[str] | None = None
    ) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield the line on which each row begins, and the row; `wanted` columns, else all."""
        lines = text_lines(self._origin, self._encoding, self._warnings)
        self.header[:] = self._read_header(lines)
        chosen = self.header if wanted is None else wanted
        missing = [name for name in chosen if name not in self.header]
        if missing and self.header:
            raise SourceError(
                f"no column {missing[0]!r}",
                where=self._origin.name,
                hint=f"the columns are: {', '.join(map(repr, self.header[:30]))}",
            )
        columns = [(name, self.header.index(name)) for name in chosen if name in self.header]
        last = max((index for _, index in columns), default=0)
        width = len(self.header)
        for number, fields, ended in self._split(lines):
            if len(fields) != width and not self._fits(number, fields, last, ended=ended):
                continue
            yield number, {name: fields[index] for name, index in columns if index < len(fields)}

    def _read_header(self, lines: _Lines) -> list[str]:
        for number, line in lines:
            plain = line.strip("\r\n")
            if plain[:4].casefold() == "sep=" and len(plain) == 5:
                self.delimiter = self.delimiter or plain[4]
            elif plain:
                return self._header_of(number, line, lines)
        return []

    def _header_of(self, number: int, line: str, lines: _Lines) -> list[str]:
        if self.delimiter is None:
            self.delimiter = sniff_delimiter(line)
        if '"' in line:
            parsed = self._quoted(number, line, lines)
            names = parsed[0] if parsed else []
        else:
            body = line.removesuffix("\n").removesuffix("\r")
            if "\r" in body:
                raise SourceError(
                    "lines end in bare carriage returns",
                    where=f"{self._origin.name}:{number}",
                    hint="save the file with line feeds",
                )
            names = self._cut(body)
        return [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]

    def _split(self, lines: _Lines) -> Iterator[tuple[int, list[str], bool]]:
        """Yield each record: its first line's number, its fields, whether its line has an end."""
        delimiter = self.delimiter
        for number, line in lines:
            if '"' not in line:
                ended = line.endswith("\n")
                body = line[:-1] if ended else line
                body = body.removesuffix("\r")
                if not body:
                    self._warnings.add("blank-lines", self._place(number))
                    continue
                yield number, body.split(delimiter) if delimiter else [body], ended
            elif (parsed := self._quoted(number, line, lines)) is not None:
                yield number, *parsed

    def _cut(self, body: str) -> list[str]:
        return body.split(self.delimiter) if self.delimiter else [body]

    def _quoted(self, number: int, line: str, lines: _Lines) -> tuple[list[str], bool] | None:
        """Cut a record with quotes, which may go on over lines; None when it is torn."""
        fields: list[str] = []
        position = 0
        while True:
            if line.startswith('"', position):
                closed = self._close(number, line, position, lines)
                if closed is None:
                    return None
                field, line, position = closed
            else:
                end = self._end(line, position)
                field, position = line[position:end], end
            if self.delimiter and line.startswith(self.delimiter, position):
                fields.append(field)
                position += 1
                continue
            fields.append(field)
            return fields, line.endswith("\n")

    def _end(self, line: str, position: int) -> int:
        """Return where the field that begins at `position` ends."""
        if self.delimiter and (end := line.find(self.delimiter, position)) >= 0:
            return end
        return len(line.removesuffix("\n").removesuffix("\r"))

    def _close(
        self, number: int, line: str, start: int, lines: _Lines
    ) -> tuple[str, str, int] | None:
        """Read a quoted field; return it, the line it ends on and where; None when it is torn."""
        parts: list[str] = []
        position, size, opening = start + 1, 0, line
        while (quote := line.find('"', position)) < 0 or line.startswith('""', quote):
            end = len(line) if quote < 0 else quote + 1
            parts.append(line[position:end])
            size += end - position
            position = end + 1
            if quote < 0:
                following = next(lines, None) if size < _LONGEST_QUOTE else None
                if following is None:
                    self._unclosed(number, line, torn=line is opening)
                    return None
                line, position = following[1], 0
        parts.append(line[position:quote])
        end = self._end(line, quote + 1)
        if not line[quote + 1 : end].strip():
            return "".join(parts), line, end
        if line is not opening:
            raise self._open_quote(number)
        self._warnings.add("quotes-inside", self._place(number))
        raw = line[start:end]
        return raw[1:-1] if raw.endswith('"') else raw, line, end

    def _unclosed(self, number: int, line: str, *, torn: bool) -> None:
        if not torn or line.endswith("\n"):
            raise self._open_quote(number)
        self._warnings.add("torn-last-line", self._place(number), f"{line[:40]!r}")

    def _open_quote(self, number: int) -> SourceError:
        return SourceError(
            f"the quote that opens on line {number} is not closed where a field ends",
            where=self._place(number),
            hint='close it, and write quotes inside a field twice: "so ""to"" say"',
        )

    def _fits(self, number: int, fields: list[str], last: int, *, ended: bool) -> bool:
        """Whether a row of another length than the header's is still a record."""
        width, place = len(self.header), self._place(number)
        if len(fields) > width:
            if not any(field.strip() for field in fields[width:]):
                return True
            self._complaints.add(
                place,
                f"{len(fields)} fields, but the header has {width}",
                "quote fields that hold the delimiter",
            )
            return False
        if not ended:
            self._warnings.add("torn-last-line", place, f"{len(fields)} of {width} fields")
            return False
        if last < len(fields):
            self._warnings.add("short-rows", place)
            return True
        self._complaints.add(place, f"{len(fields)} field(s), but the header has {width}")
        return False

    def _place(self, number: int) -> str:
        return f"{self._origin.name}:{number}"


def sniff_delimiter(header: str) -> str | None:
    """Return the delimiter that stands most often outside quotes; None for a single column."""
    bare = re.sub(r'"(?:[^"]|"")*"', "", header)
    best = max(_DELIMITERS, key=bare.count)
    return best if best in bare else None
