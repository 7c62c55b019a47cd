"""Physical lines: split at line feeds alone, decoded strictly first, each with its number.

`str.splitlines` and codec readers also split at U+2028, U+0085 and their kin, which stand inside
records; so lines are split as bytes.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from corpus.sources.base import SourceWarnings
from corpus.sources.origin import Origin
from corpus.sources.packed import copied, unpacking
from executors.errors import SourceError, ValidationError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "Decoder",
    "decode_whole",
    "detect_encoding",
    "line_encoding",
    "numbered",
    "require_encoding",
    "text_lines",
    "transparent",
]

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASCII = bytes(range(128))
_PRINTED = b"\t\n\r" + bytes(range(32, 127))
_CONTROLS = frozenset(range(1, 32)) - frozenset(_PRINTED)
_WIDE_HEAD = 4_096  # bytes
_LATIN_HEAD = 16  # bytes: eight characters, of a header or of an opening bracket and a name


def require_encoding(encoding: str | None) -> str | None:
    """Return the encoding's plain name.

    Raises:
        ValidationError: Python knows no such text encoding.
    """
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
        # A sentence, since some codecs fail only where there is something to decode.
        "a, b".encode(name).decode(name).encode("utf-8")
        _ASCII.decode(name, "replace")
    except (LookupError, ValueError) as error:
        raise ValidationError(
            f"unknown encoding {encoding!r}",
            hint="name one as in 'utf-8', 'utf-16', 'cp1252', 'latin-1', 'shift_jis'",
        ) from error
    return name


def detect_encoding(head: bytes) -> str:
    """Return what the first bytes say: a byte order mark's encoding, or UTF-8, or Windows-1252.

    Without a mark, UTF-16 shows itself where every other byte is NUL.
    """
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    if (wide := _unmarked_utf16(head[:_WIDE_HEAD])) is not None:
        return wide
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head, final=False)
    except UnicodeDecodeError:
        # Some sound non-ASCII characters make it damaged UTF-8 rather than another encoding.
        sound = any("\x7f" < char != "\ufffd" for char in head.decode("utf-8", "replace"))
        return "utf-8" if sound else "cp1252"
    return "utf-8"


class Decoder:
    """Decodes lines of one file: as told, else UTF-8, else Windows-1252, else with U+FFFD.

    A line that is not UTF-8 in a file which showed sound non-ASCII UTF-8 before is damaged UTF-8,
    not another encoding.
    """

    __slots__ = ("_told", "_warnings", "encoding", "utf8_seen")

    def __init__(self, encoding: str | None, warnings: SourceWarnings) -> None:
        self._told = encoding
        self.utf8_seen = False
        self._warnings = warnings
        self.encoding = encoding or "utf-8"

    def decode(self, raw: bytes, where: str) -> str:
        """Return the text of one line; what had to be guessed or replaced is counted."""
        try:
            text = raw.decode(self.encoding)
        except UnicodeDecodeError:
            return self._guess(raw, where)
        if not self.utf8_seen and not raw.isascii():
            self.utf8_seen = True
        return text

    def _guess(self, raw: bytes, where: str) -> str:
        if self._told is None:
            with suppress(UnicodeDecodeError):
                # Some exports write surrogates one by one; whoever takes the text joins them.
                return raw.decode("utf-8", "surrogatepass")
        if self._told is None and not self.utf8_seen:
            with suppress(UnicodeDecodeError):
                text = raw.decode("cp1252")
                self._warnings.add("other-encoding", where)
                return text
        self._warnings.add("replaced-bytes", where)
        return raw.decode(self.encoding, "replace")


def numbered(
    origin: Origin, encoding: str | None, warnings: SourceWarnings
) -> Iterator[tuple[int, bytes]]:
    """Yield line numbers (from 1) and lines as bytes in which ASCII is ASCII, ends kept."""
    with transparent(origin, encoding, warnings) as stream:
        yield from enumerate(stream, 1)


@contextmanager
def transparent(
    origin: Origin, encoding: str | None, warnings: SourceWarnings
) -> Generator[BinaryIO]:
    """Open bytes in which ASCII is ASCII, without a byte order mark.

    UTF-16 and UTF-32 are written anew as UTF-8; other encodings are left as they are.
    """
    told = encoding or _wide(origin.head(_WIDE_HEAD))
    with origin.open() as raw, unpacking(origin.name):
        stream = raw
        if told and not _is_transparent(told):
            recoded = _Recoded(raw, told, origin.name, warnings)
            stream = cast(BinaryIO, io.BufferedReader(recoded, buffer_size=1 << 16))
        if cast(io.BufferedReader, stream).peek(3)[:3] == codecs.BOM_UTF8:
            stream.read(3)
        yield stream


def text_lines(
    origin: Origin, encoding: str | None, warnings: SourceWarnings
) -> Iterator[tuple[int, str]]:
    """Yield line numbers (from 1) and decoded lines, ends kept."""
    decoder = Decoder(line_encoding(encoding), warnings)
    name = origin.name
    for number, line in numbered(origin, encoding, warnings):
        yield number, decoder.decode(line, f"{name}:{number}")


def decode_whole(origin: Origin, encoding: str | None, warnings: SourceWarnings) -> str:
    """Return all of a file's text."""
    decoder = Decoder(line_encoding(encoding), warnings)
    with transparent(origin, encoding, warnings) as stream:
        return decoder.decode(stream.read(), origin.name)


def line_encoding(encoding: str | None) -> str | None:
    """Return the encoding of lines as `numbered` yields them."""
    if encoding is None:
        return None
    return encoding if _is_transparent(encoding) else "utf-8"


def _wide(head: bytes) -> str | None:
    """Return the encoding of bytes in which ASCII is not ASCII, as their beginning shows it."""
    found = detect_encoding(head)
    return found if found.startswith(("utf-16", "utf-32")) else None


def _unmarked_utf16(head: bytes) -> str | None:
    even, odd = head[0:_LATIN_HEAD:2], head[1:_LATIN_HEAD:2]
    if len(odd) < 2:
        return None
    if not any(odd) and all(even):
        return "utf-16-le"
    if not any(even) and all(odd):
        return "utf-16-be"
    return _other_script(head) if 0 in head and not _is_plain(head) else None


def _other_script(head: bytes) -> str | None:
    """Tell UTF-16 of other scripts: NUL stands beside printed ASCII alone, and at line feeds."""
    if len(head) < _LATIN_HEAD:
        return None
    even, odd = head[0::2], head[1::2]
    for encoding, high, low in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        beside = bytes(letter for nul, letter in zip(high, low, strict=False) if nul == 0)
        feeds = beside.count(b"\n")
        if (
            len(beside) > 1
            and feeds == head.count(b"\n")
            and not beside.translate(None, _PRINTED)
            and _is_like(head, encoding)
        ):
            return encoding
    return None


def _is_plain(head: bytes) -> bool:
    """Whether it is UTF-8 without control characters, other than the NUL that some exports hold."""
    return _is_like(head, "utf-8") and not _CONTROLS.intersection(head)


def _is_like(head: bytes, encoding: str) -> bool:
    """Whether the first bytes of a file are sound in an encoding."""
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _is_transparent(encoding: str) -> bool:
    """Whether ASCII characters are their own bytes, so that lines can be split as bytes."""
    try:
        return _ASCII.decode(encoding) == _ASCII.decode("ascii")
    except UnicodeDecodeError:
        return False


class _Recoded(io.RawIOBase):
    """The same text in UTF-8, decoded as it comes."""

    def __init__(self, raw: BinaryIO, encoding: str, name: str, warnings: SourceWarnings) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""
        self._name = name
        self._warnings = warnings
        self._done = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._ready and not self._done:
            self._fill()
        taken = copied(self._ready, buffer)
        self._ready = self._ready[taken:]
        return taken

    def _fill(self) -> None:
        chunk = self._raw.read(1 << 16)
        self._done = not chunk
        try:
            text = self._decoder.decode(chunk, final=self._done)
        except UnicodeError as error:
            raise SourceError(f"{self._name!r} cannot be decoded: {error}") from error
        if "\ufffd" in text:
            self._warnings.add("replaced-bytes", self._name)
        self._ready = text.encode("utf-8", "replace")
