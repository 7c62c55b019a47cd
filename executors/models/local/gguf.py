"""The header of a GGUF weights file: what it says of itself, read without an engine.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["BadGguf", "GgufHeader", "read_header"]

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING: Final = 8
_ARRAY: Final = 9
_SCALARS: Final = {
    code: struct.Struct("<" + form)
    for code, form in (
        (0, "B"), (1, "b"), (2, "H"), (3, "h"), (4, "I"), (5, "i"),
        (6, "f"), (7, "?"), (10, "Q"), (11, "q"), (12, "d"),
    )
}  # fmt: skip
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
# Real files hold a few dozen keys and token lists of some hundred thousand; a count beyond this is
# damage, and would keep us reading garbage for minutes.
_MOST_KEYS: Final = 65_536
_MOST_ITEMS: Final = 16_777_216

Value = str | int | float | bool


class BadGguf(ValueError):
    """The file is no GGUF, or its header is damaged; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What decides how a model is asked."""

    architecture: str
    name: str
    trained_window: int | None
    """Tokens of context that the model was made for; None when the file does not say."""
    chat_template: str | None
    """Jinja source; None for a base model, which knows no turns."""
    parts: int
    """Number of files that the weights are split over; 1 for a whole one."""


def read_header(path: Path) -> GgufHeader:
    """Read the key-value part of a file's header; the weights themselves stay untouched.

    Raises:
        BadGguf: no GGUF, a version we do not know, or a header that ends too early.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise BadGguf("it does not begin with the GGUF mark")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            try:
                values = _Reader(view).header()
            except struct.error as error:
                raise BadGguf("its header ends too early") from error
    return _header_of(values)


def _header_of(values: dict[str, Value]) -> GgufHeader:
    architecture = str(values.get("general.architecture", ""))
    window = values.get(f"{architecture}.context_length")
    template = values.get("tokenizer.chat_template")
    parts = values.get("split.count", 1)
    return GgufHeader(
        architecture=architecture,
        name=str(values.get("general.name", "")),
        trained_window=window if isinstance(window, int) and window > 0 else None,
        chat_template=template if isinstance(template, str) and template.strip() else None,
        parts=parts if isinstance(parts, int) else 1,
    )


class _Reader:
    """Walks over a mapped file. Arrays are skipped: the token lists are of no use here."""

    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._at = len(_MAGIC)

    def header(self) -> dict[str, Value]:
        version = self._take(_U32)
        if version not in _VERSIONS:
            raise BadGguf(f"its GGUF version {version} is none of {_VERSIONS}")
        self._take(_U64)  # the number of tensors
        count = self._bounded(_MOST_KEYS)
        values: dict[str, Value] = {}
        for _ in range(count):
            key = self._text()
            value = self._value(self._take(_U32))
            if value is not None:
                values[key] = value
        return values

    def _value(self, kind: int) -> Value | None:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            self._skip_array()
            return None
        scalar = _SCALARS.get(kind)
        if scalar is None:
            raise BadGguf(f"its header holds a value of the unknown kind {kind}")
        value: Value = self._unpack(scalar)
        return value

    def _skip_array(self) -> None:
        kind = self._take(_U32)
        count = self._bounded(_MOST_ITEMS)
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            self._skip(count * scalar.size)
            return
        if kind != _STRING:
            raise BadGguf(f"its header holds a list of the unknown kind {kind}")
        for _ in range(count):
            self._skip(self._take(_U64))

    def _text(self) -> str:
        start = self._at + _U64.size
        self._skip(self._take(_U64))
        return self._view[start : self._at].decode("utf-8", "replace")

    def _bounded(self, most: int) -> int:
        count = self._take(_U64)
        if count > most:
            raise BadGguf(f"its header claims {count:,} entries")
        return count

    def _take(self, form: struct.Struct) -> int:
        return int(self._unpack(form))

    def _unpack(self, form: struct.Struct) -> int | float | bool:
        (value,) = form.unpack_from(self._view, self._at)
        self._at += form.size
        number: int | float | bool = value
        return number

    def _skip(self, size: int) -> None:
        self._at += size
        if self._at > len(self._view):
            raise BadGguf("its header ends too early")
